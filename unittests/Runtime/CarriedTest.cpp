//===- CarriedTest.cpp - Messages across the step's border ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Messages that one step offers and the next awaits, in any order and in
/// slices: values are those of the same steps without devices.
///
//===----------------------------------------------------------------------===//

#include "GivenCalls.h"
#include "TrainingProgram.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t ms = 1'000'000;

void checkTraining(uint32_t seed) {
  std::mt19937 random(seed);
  Training training = randomTraining(random);
  Program program = makeTraining(training, random);
  std::vector<Body> given;
  for (int32_t device = 0; device < training.devices; ++device)
    given.push_back(trainingBody(training, device));
  SessionOptions options;
  options.pinThreads = random() % 2;
  auto session = makeSession(std::move(program), given, options);
  ASSERT_TRUE(session);
  Values values;
  for (size_t i = 0; i < training.parameters(); ++i) {
    values.push_back(randomValues(training.numbers[i], random));
    ASSERT_SUCCESS(session->setArgument(i, values[i].data(),
                                        size_t(8 * training.numbers[i])));
  }
  for (int round = 0; round < 4; ++round) {
    int64_t steps = 1 + int64_t(random() % 8);
    bool byCalls = round % 2 == 1;
    if (byCalls) {
      trainByCalls(*session, training, values, steps, random);
    } else if (round == 2) {
      for (int64_t step = 0; step < steps; ++step)
        ASSERT_SUCCESS(session->step());
    } else {
      ASSERT_SUCCESS(session->steps(steps));
    }
    for (int64_t step = 0; step < steps && !byCalls; ++step)
      trainAlone(training, values);
    for (size_t i = 0; i < training.parameters(); ++i) {
      std::vector<uint64_t> got(values[i].size());
      ASSERT_SUCCESS(session->getArgument(i, got.data(), 8 * got.size()));
      ASSERT_EQ(got, values[i]) << "seed " << seed << ", parameter " << i;
    }
  }
}

/// BAECHI_EXCHANGES makes them others, the first and how many (1000,100000).
TEST(Carried, ValuesAreThoseWithoutDevices) {
  uint32_t first = 0, count = 150;
  if (const char *asked = std::getenv("BAECHI_EXCHANGES"))
    ASSERT_EQ(std::sscanf(asked, "%u,%u", &first, &count), 2) << asked;
  for (uint32_t seed = first; seed - first < count && !HasFailure(); ++seed)
    checkTraining(seed);
}

/// A parameter of the first device's that the second reads.
Program makeCarrying(int64_t bytes) {
  Program program = makeProgram(2, 4 * bytes);
  addQueue(program, 0, 1, {bytes});
  program.queues[0].messages[0].carried = true;
  addArgument(program, 0, 0, bytes);
  program.arguments[0].copies = {{1, 0}};
  return program;
}

TEST(Carried, AnAwaitWithoutItsOfferIsAnError) {
  auto skipsSend = [step = std::make_shared<int>(0)](Context context,
                                                     char *arena) -> int32_t {
    if (baechi_await_send(context, 0, 0))
      return 1;
    return ++*step == 3 ? 0 : baechi_send(context, 0, 0, arena);
  };
  auto reads = [](Context context, char *arena) {
    return int32_t(baechi_await_recv(context, 0, 0) ||
                   baechi_recv(context, 0, 0, arena));
  };
  auto session = makeSession(makeCarrying(64), {skipsSend, reads});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->steps(10).message(),
              HasSubstr("awaited a message that the step before did not offer: "
                        "message 0 'm0' of queue 0"));
  ASSERT_SUCCESS(session->steps(5));
  auto neverSends = [](Context context, char *) {
    return baechi_await_send(context, 0, 0);
  };
  session = makeSession(makeCarrying(64), {neverSends, reads});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->step().message(),
              HasSubstr("ended a step without offering a message"));
}

/// Its calls have ended, so none of them can tell.
TEST(Carried, WhatDoesNotArriveEndsTheSession) {
  Program program = makeCarrying(64);
  program.queues[0].link = SimulatedLink{10'000 * ms, 200, {0}};
  auto sends = [](Context context, char *arena) {
    return int32_t(baechi_await_send(context, 0, 0) ||
                   baechi_send(context, 0, 0, arena));
  };
  auto reads = [](Context context, char *arena) {
    return int32_t(baechi_await_recv(context, 0, 0) ||
                   baechi_recv(context, 0, 0, arena));
  };
  SessionOptions options;
  options.watchdogSeconds = 0.2;
  auto session = makeSession(std::move(program), {sends, reads}, options);
  ASSERT_TRUE(session);
  std::vector<char> values(64, 3), got(64);
  ASSERT_SUCCESS(session->setArgument(0, values.data(), values.size()));
  Calls calls(0, {{nullptr}}, {{}});
  EXPECT_THAT(session->overlapCalls(0, calls).message(),
              HasSubstr("no device made progress"));
  EXPECT_EQ(calls.endedCalls, 1);
  EXPECT_THAT(session->step().message(),
              HasSubstr("values that the last calls sent did not reach all "
                        "devices, so this session cannot run another step: "
                        "create a new one (no device made progress"));
  ASSERT_SUCCESS(session->getArgument(0, got.data(), got.size()));
  EXPECT_EQ(got, values);
}

TEST(Carried, WhatCannotBeCarriedIsRefused) {
  Program program = makeCarrying(64);
  program.queues[0].messages[0].lent = true;
  EXPECT_THAT(creationError(program),
              HasSubstr("it is lent, and awaited in the next step"));
  program = makeCarrying(64);
  program.devices[1].kind = "cuda";
  EXPECT_THAT(creationError(program), HasSubstr("is between host devices"));
  program = makeCarrying(64);
  program.arguments[0].copies = {{1, 256}};
  EXPECT_THAT(creationError(program), HasSubstr("exceed the 256 bytes"));
  program.arguments[0].copies = {{0, 0}};
  EXPECT_THAT(creationError(program), HasSubstr("it overlaps"));
  program.arguments[0].copies = {{2, 0}};
  EXPECT_THAT(creationError(program), HasSubstr("there is no device 2"));
  program = makeCarrying(64);
  program.exchange = ExchangeOrder{0};
  EXPECT_THAT(creationError(program), HasSubstr("slices have no bytes"));
  auto nothing = [](Context context, char *arena) {
    return int32_t(baechi_await_send(context, 0, 0) ||
                   baechi_send(context, 0, 0, arena));
  };
  auto session = makeSession(makeCarrying(64), {nothing, nothing});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->steps(1, std::vector<Feed>{{0, nullptr}}).message(),
              HasSubstr("has copies that each step brings up to date"));
}

/// A long message is on its way when one of higher priority is offered: in
/// slices it is overtaken.
TEST(Carried, TheUrgentOvertakeBetweenSlices) {
  for (bool sliced : {false, true}) {
    constexpr int64_t large = 131072, all = large + 64;
    Program program = makeProgram(2, all);
    addQueue(program, 0, 1, {large, 64});
    program.queues[0].link = SimulatedLink{20 * ms, 1, {0}}; // 151 ms
    program.queues[0].messages[0].priority = 1;
    program.exchange = ExchangeOrder{};
    if (sliced)
      program.exchange->sliceBytes = 4096;
    addArgument(program, 0, 0, all);
    addResult(program, 1, 0, all);
    auto sends = [](Context context, char *arena) {
      if (baechi_send(context, 0, 0, arena))
        return 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return baechi_send(context, 0, 1, arena + large);
    };
    auto takes = [](Context context, char *arena) {
      return int32_t(baechi_recv(context, 0, 0, arena) ||
                     baechi_recv(context, 0, 1, arena + large) ||
                     baechi_await_recv(context, 0, 1) ||
                     baechi_await_recv(context, 0, 0));
    };
    auto session = makeSession(std::move(program), {sends, takes});
    ASSERT_TRUE(session);
    std::vector<char> values(all), got(all);
    for (size_t i = 0; i < all; ++i)
      values[i] = char(i * 31 >> 3);
    ASSERT_SUCCESS(session->setArgument(0, values.data(), values.size()));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, got.data(), got.size()));
    EXPECT_EQ(got, values);
    const std::vector<CopyRecord> &copies = session->timeline().queues[0];
    EXPECT_EQ(copies[1].endNs < copies[0].endNs, sliced);
    EXPECT_GE(copies[0].endNs - copies[0].beginNs, 151 * ms);
  }
}

/// What the step before offered is needed before all that this one offers,
/// however urgent that is within its step.
TEST(Carried, EarlierStepsMessagesAreNotOvertaken) {
  constexpr int64_t large = 131072, all = large + 64;
  Program program = makeProgram(3, all);
  addQueue(program, 0, 1, {large});
  addQueue(program, 0, 2, {64});
  for (QueueInfo &queue : program.queues)
    queue.link = SimulatedLink{20 * ms, 1, {0}}; // 151 ms, and 20
  program.queues[0].messages[0].carried = true;
  program.queues[0].messages[0].priority = 1;
  program.exchange = ExchangeOrder{4096};
  addArgument(program, 0, 0, large);
  program.arguments[0].copies = {{1, 0}};
  using Clock = std::chrono::steady_clock;
  auto arrived = std::make_shared<std::atomic<Clock::time_point>>();
  auto sends = [](Context context, char *arena) {
    return int32_t(baechi_send(context, 1, 0, arena + large) ||
                   baechi_await_send(context, 0, 0) ||
                   baechi_send(context, 0, 0, arena));
  };
  auto takesLate = [](Context context, char *arena) {
    return int32_t(baechi_await_recv(context, 0, 0) ||
                   baechi_recv(context, 0, 0, arena));
  };
  auto takesNow = [arrived](Context context, char *arena) {
    if (baechi_recv(context, 1, 0, arena + large) ||
        baechi_await_recv(context, 1, 0))
      return 1;
    *arrived = Clock::now();
    return 0;
  };
  auto session = makeSession(std::move(program), {sends, takesLate, takesNow});
  ASSERT_TRUE(session);
  std::vector<char> values(large, 7);
  ASSERT_SUCCESS(session->setArgument(0, values.data(), values.size()));
  Clock::time_point begin = Clock::now();
  ASSERT_SUCCESS(session->steps(2));
  // The large one's bytes alone take 131 ms; ahead of them it were there after
  // 40. Which thread wakes first says nothing.
  EXPECT_GE(arrived->load() - begin, std::chrono::milliseconds(131));
}

} // namespace
