//===- SessionTest.cpp - Steps, messages and values -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

int32_t load(const char *place) {
  int32_t value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}
void store(char *place, int32_t value) {
  std::memcpy(place, &value, sizeof(value));
}

/// Argument 0 goes round all devices, each adds one; result 0 is the sum.
Program ringProgram(int32_t devices) {
  Program program = makeProgram(devices);
  for (int32_t i = 0; i < devices; ++i)
    addQueue(program, i, (i + 1) % devices, {4});
  addArgument(program, 0, 0, 4);
  addResult(program, 0, 64, 4);
  return program;
}

std::vector<Body> ringBodies(int32_t devices) {
  std::vector<Body> ring;
  ring.push_back([=](Context context, char *arena) {
    if (sendAndWait(context, 0, 0, arena) ||
        recvAndWait(context, devices - 1, 0, arena + 64))
      return 1;
    store(arena + 64, load(arena + 64) + 1);
    return 0;
  });
  for (int32_t i = 1; i < devices; ++i)
    ring.push_back([=](Context context, char *arena) {
      if (recvAndWait(context, i - 1, 0, arena))
        return 1;
      store(arena, load(arena) + 1);
      return sendAndWait(context, i, 0, arena);
    });
  return ring;
}

void runRing(Session &session, int32_t devices, int32_t steps) {
  for (int32_t value = 0; value < steps; ++value) {
    ASSERT_SUCCESS(session.setArgument(0, &value, 4));
    ASSERT_SUCCESS(session.step());
    int32_t result = 0;
    ASSERT_SUCCESS(session.getResult(0, &result, 4));
    ASSERT_EQ(value + devices, result);
  }
}

TEST(Session, TwoDevicesThousandSteps) {
  auto session = makeSession(ringProgram(2), ringBodies(2));
  ASSERT_TRUE(session);
  runRing(*session, 2, 1000);
}

TEST(Session, FourDevicesThousandSteps) {
  auto session = makeSession(ringProgram(4), ringBodies(4));
  ASSERT_TRUE(session);
  runRing(*session, 4, 1000);
}

TEST(Session, FourDevicesOnOneProcessor) {
  cpu_set_t before, one;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before))
      CPU_SET(i, &one);
  ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
  auto session = makeSession(ringProgram(4), ringBodies(4));
  ASSERT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
  ASSERT_TRUE(session);
  runRing(*session, 4, 200);
}

TEST(Session, RunsWithoutPinning) {
  SessionOptions options;
  options.pinThreads = false;
  auto session = makeSession(ringProgram(3), ringBodies(3), options);
  ASSERT_TRUE(session);
  runRing(*session, 3, 100);
}

TEST(Session, FanOut) {
  constexpr int32_t receivers = 3;
  Program program = makeProgram(receivers + 1);
  addArgument(program, 0, 0, 4);
  std::vector<Body> fan = {[](Context context, char *arena) {
    for (int32_t q = 0; q < receivers; ++q)
      if (baechi_send(context, q, 0, arena))
        return 1;
    for (int32_t q = 0; q < receivers; ++q)
      if (baechi_await_send(context, q, 0))
        return 1;
    return 0;
  }};
  for (int32_t q = 0; q < receivers; ++q) {
    addQueue(program, 0, q + 1, {4});
    addResult(program, q + 1, 0, 4);
    fan.push_back([q](Context context, char *arena) {
      return recvAndWait(context, q, 0, arena);
    });
  }
  auto session = makeSession(program, fan);
  ASSERT_TRUE(session);
  int32_t value = 42;
  ASSERT_SUCCESS(session->setArgument(0, &value, 4));
  ASSERT_SUCCESS(session->step());
  for (size_t q = 0; q < receivers; ++q) {
    int32_t got = 0;
    ASSERT_SUCCESS(session->getResult(q, &got, 4));
    EXPECT_EQ(value, got);
  }
}

TEST(Session, MessagesOfManySizes) {
  std::vector<int64_t> sizes = {0, 1, 3, 64, 65, 4096, 100000, 1 << 20};
  constexpr int64_t slot = 1 << 20;
  int64_t arenaBytes = slot * int64_t(sizes.size());
  Program program = makeProgram(2, arenaBytes);
  addQueue(program, 0, 1, sizes);
  addArgument(program, 0, 0, arenaBytes);
  addResult(program, 1, 0, arenaBytes);
  auto session = makeSession(
      program, {[&](Context context, char *arena) {
                  for (int32_t i = 0; i < int(sizes.size()); ++i)
                    if (sendAndWait(context, 0, i, arena + i * slot))
                      return 1;
                  return 0;
                },
                [&](Context context, char *arena) {
                  for (int32_t i = 0; i < int(sizes.size()); ++i)
                    if (recvAndWait(context, 0, i, arena + i * slot))
                      return 1;
                  return 0;
                }});
  ASSERT_TRUE(session);
  std::vector<char> sent(arenaBytes), got(arenaBytes, 1);
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = char(i % 251 + 1);
  ASSERT_SUCCESS(session->setArgument(0, sent.data(), sent.size()));
  ASSERT_SUCCESS(session->step());
  ASSERT_SUCCESS(session->getResult(0, got.data(), got.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto at = sent.begin() + std::ptrdiff_t(i) * slot;
    auto to = got.begin() + std::ptrdiff_t(i) * slot;
    EXPECT_TRUE(std::equal(at, at + sizes[i], to)) << sizes[i] << " bytes";
    // Not a byte more: the rest of the receiver's arena is still zero.
    EXPECT_TRUE(std::all_of(to + sizes[i], to + slot,
                            [](char byte) { return byte == 0; }))
        << sizes[i] << " bytes";
  }
}

/// Both ends offer and await the messages of both directions in orders of their
/// own, so that every way of arriving comes up.
TEST(Session, AnyOrderOfArrival) {
  constexpr int32_t messages = 16;
  constexpr int32_t steps = 300;
  Program program = makeProgram(2);
  addQueue(program, 0, 1, std::vector<int64_t>(messages, 4));
  addQueue(program, 1, 0, std::vector<int64_t>(messages, 4));
  for (int32_t device = 0; device < 2; ++device)
    addResult(program, device, 2048, messages * 64);

  auto makeBody = [](int32_t device) -> Body {
    auto random = std::make_shared<std::mt19937>(device);
    return [=](Context context, char *arena) {
      std::vector<int32_t> order(2 * messages);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), *random);
      for (int32_t k : order) {
        int32_t seq = k % messages;
        if (k < messages) {
          store(arena + seq * 64, 1000 * device + seq);
          if (baechi_send(context, device, seq, arena + seq * 64))
            return 1;
        } else if (baechi_recv(context, 1 - device, seq,
                               arena + 2048 + seq * 64)) {
          return 1;
        }
        if ((*random)() % 4 == 0)
          std::this_thread::yield();
      }
      std::shuffle(order.begin(), order.end(), *random);
      for (int32_t k : order)
        if (k < messages ? baechi_await_send(context, device, k)
                         : baechi_await_recv(context, 1 - device, k - messages))
          return 1;
      return 0;
    };
  };
  auto session = makeSession(program, {makeBody(0), makeBody(1)});
  ASSERT_TRUE(session);
  for (int32_t step = 0; step < steps; ++step) {
    ASSERT_SUCCESS(session->step());
    for (int32_t device = 0; device < 2; ++device) {
      std::vector<char> got(messages * 64);
      ASSERT_SUCCESS(session->getResult(device, got.data(), got.size()));
      for (int32_t seq = 0; seq < messages; ++seq)
        ASSERT_EQ(1000 * (1 - device) + seq, load(got.data() + seq * 64));
    }
  }
}

TEST(Session, ArgumentsStayAndAreUpdated) {
  Program program = makeProgram(1);
  addArgument(program, 0, 0, 4);
  addResult(program, 0, 0, 4);
  program.arguments[0].updatedBy = 0;
  auto session = makeSession(program, {[](Context, char *arena) {
                               store(arena, load(arena) + 3);
                               return 0;
                             }});
  ASSERT_TRUE(session);
  int32_t value = -1;
  ASSERT_SUCCESS(session->getArgument(0, &value, 4));
  EXPECT_EQ(0, value);
  for (int32_t step = 1; step <= 5; ++step) {
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getArgument(0, &value, 4));
    EXPECT_EQ(3 * step, value);
  }
}

TEST(Session, TensorsInPiecesAreCutAndPutTogether) {
  Program program = makeProgram(2);
  addArgument(program, 0, 64, 20);
  addResult(program, 0, 64, 20);
  // 2 rows of 10, of two parts each: a piece has columns of both.
  auto cut = [](BufferInfo &buffer) {
    buffer.shape = {2, 10};
    buffer.dim = 1;
    buffer.outer = 2;
    buffer.pieces = {{"p0", 0, 64, 8, 0, 2}, {"p1", 1, 128, 12, 2, 3}};
  };
  cut(program.arguments[0]);
  cut(program.results[0]);
  program.arguments[0].updatedBy = 0;
  std::string seen[2];
  auto body = [&](int32_t device, size_t at, size_t size) {
    return [&seen, device, at, size](Context, char *arena) {
      seen[device].assign(arena + at, size);
      for (size_t i = 0; i < size; ++i)
        ++arena[at + i];
      return 0;
    };
  };
  auto session = makeSession(program, {body(0, 64, 8), body(1, 128, 12)});
  ASSERT_TRUE(session);
  std::string given = "abcdefghijklmnopqrst", found(20, ' ');
  ASSERT_SUCCESS(session->setArgument(0, given.data(), 20));
  ASSERT_SUCCESS(session->getArgument(0, found.data(), 20));
  EXPECT_EQ(given, found);
  ASSERT_SUCCESS(session->step());
  EXPECT_EQ("abfgklpq", seen[0]);
  EXPECT_EQ("cdehijmnorst", seen[1]);
  ASSERT_SUCCESS(session->getResult(0, found.data(), 20));
  EXPECT_EQ("bcdefghijklmnopqrstu", found);
}

TEST(Session, WrongAccessIsAnError) {
  Program program = makeProgram(1);
  addArgument(program, 0, 0, 4);
  addResult(program, 0, 0, 4);
  auto session = makeSession(program, {doNothing});
  ASSERT_TRUE(session);
  char buffer[8] = {};
  EXPECT_EQ("argument 1 does not exist: the program has 1",
            session->setArgument(1, buffer, 4).message());
  EXPECT_EQ("argument 0 'argument' has 4 bytes, not 8",
            session->setArgument(0, buffer, 8).message());
  EXPECT_EQ("argument 0 'argument' has 4 bytes, not 3",
            session->getArgument(0, buffer, 3).message());
  EXPECT_EQ("result 7 does not exist: the program has 1",
            session->getResult(7, buffer, 4).message());
  EXPECT_THAT(session->getResult(0, buffer, 4).message(),
              HasSubstr("no step has succeeded"));
  ASSERT_SUCCESS(session->step());
  EXPECT_SUCCESS(session->getResult(0, buffer, 4));
}

TEST(Session, SeveralAtOnce) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(makeSession(ringProgram(2), ringBodies(2)));
    ASSERT_TRUE(sessions.back());
  }
  std::vector<std::thread> users;
  for (auto &session : sessions)
    users.emplace_back([&session] { runRing(*session, 2, 200); });
  for (std::thread &user : users)
    user.join();
  // They end one by one while the others work.
  sessions.erase(sessions.begin());
  runRing(*sessions.front(), 2, 10);
}

TEST(Session, ArenasAreAlignedAndZero) {
  for (int64_t bytes : {int64_t(0), int64_t(64), int64_t(4) << 20}) {
    Program program = makeProgram(1, bytes);
    auto session =
        makeSession(program, {[bytes](Context, char *arena) {
                      bool zero = std::all_of(arena, arena + bytes,
                                              [](char c) { return c == 0; });
                      return zero && uintptr_t(arena) % 64 == 0 ? 0 : 1;
                    }});
    ASSERT_TRUE(session);
    EXPECT_SUCCESS(session->step());
  }
}

TEST(Session, DenormalNumbersAreZero) {
  Program program = makeProgram(1, 64);
  auto session = makeSession(program, {[](Context, char *) {
                               volatile float tiny = 1e-40f, one = 1;
                               return tiny * one == 0 ? 0 : 1;
                             }});
  ASSERT_TRUE(session);
  EXPECT_SUCCESS(session->step());
  // Only there.
  volatile float tiny = 1e-40f, one = 1;
  EXPECT_NE(tiny * one, 0);
}

TEST(Session, AbiSymbolsAreComplete) {
  std::vector<std::string> names;
  for (const AbiSymbol &symbol : abiSymbols()) {
    EXPECT_NE(nullptr, symbol.address);
    names.push_back(symbol.name);
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre(
                  "baechi_send", "baechi_recv", "baechi_await_send",
                  "baechi_await_recv", "baechi_borrow", "baechi_give_back",
                  "baechi_argument", "baechi_operator_begin",
                  "baechi_operator_end", "baechi_host_call", "baechi_fail",
                  "baechi_divided_by_zero", "baechi_disk_copy",
                  "baechi_cuda_launch", "baechi_cuda_launch_accesses",
                  "baechi_cuda_multiply", "baechi_cuda_convolve",
                  "baechi_cuda_copy", "baechi_cuda_constant"));
}

/// A step that one of the devices has no part in.
TEST(Session, AnIdleDeviceIsNotWoken) {
  Program program = makeProgram(2);
  program.devices[1].arenaBytes = 0;
  program.devices[1].operators.clear();
  int busy = 0, idle = 0;
  bodies[0] = [&](Context, char *) { return ++busy, 0; };
  bodies[1] = [&](Context, char *) { return ++idle, 0; };
  auto session = Session::create(program, resolveBody);
  ASSERT_TRUE(session) << session.error().message();
  for (int i = 0; i < 3; ++i)
    ASSERT_FALSE((*session)->step());
  EXPECT_EQ(3, busy);
  EXPECT_EQ(0, idle);
  // Its failure is that of the other one.
  bodies[0] = [](Context, char *) { return 5; };
  Error error = (*session)->step();
  ASSERT_TRUE(error);
  EXPECT_THAT(error.message(), StartsWith("device host0"));
}

} // namespace
