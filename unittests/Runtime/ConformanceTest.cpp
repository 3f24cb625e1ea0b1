//===- ConformanceTest.cpp - What every driver must do --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Device 0 is of the kind under test, its peer a host device. A new driver
/// adds a row to `kinds`; what it cannot do it must skip with a reason.
///
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include "core/Driver.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

constexpr int32_t messages = 4;
constexpr int64_t bytes = 1000;
constexpr int64_t slot = 1024;
constexpr int64_t half = messages * slot;

/// Offers all messages, passes through the operators, waits for all messages.
/// What leaves lies in the arena's first half, what comes in its second.
int32_t exchange(Context context, char *arena, int32_t out, int32_t in) {
  for (int32_t seq = 0; seq < messages; ++seq)
    if (baechi_send(context, out, seq, arena + slot * seq) ||
        baechi_recv(context, in, seq, arena + half + slot * seq))
      return 1;
  for (int32_t op = 0; op < 2; ++op) {
    baechi_operator_begin(context, op);
    baechi_operator_end(context, op);
  }
  for (int32_t seq = 0; seq < messages; ++seq)
    if (baechi_await_send(context, out, seq) ||
        baechi_await_recv(context, in, seq))
      return 1;
  return 0;
}

int32_t exchangeFirst(Context context, char *arena) {
  return exchange(context, arena, 0, 1);
}
int32_t exchangeSecond(Context context, char *arena) {
  return exchange(context, arena, 1, 0);
}

class ConformanceTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    kind = findDriver(GetParam());
    ASSERT_TRUE(kind);
    program = makeProgram(2, 2 * half);
    program.devices[0].kind = GetParam();
    program.devices[0].name = "tested";
    for (int32_t device = 0; device < 2; ++device) {
      addQueue(program, device, 1 - device,
               std::vector<int64_t>(messages, bytes));
      addArgument(program, device, 0, half);
      addResult(program, device, half, half);
    }
  }

  std::unique_ptr<Session> make(Body first = exchangeFirst,
                                Body second = exchangeSecond) {
    return makeSession(program, {std::move(first), std::move(second)});
  }

  const DriverKind *kind = nullptr;
  Program program;
};

#define SKIP_WITHOUT_DATA()                                                    \
  if (kind->memory == Memory::None)                                            \
  GTEST_SKIP() << "a device of this kind holds no data"
#define SKIP_WITHOUT_ENTRY()                                                   \
  if (!kind->runsEntry)                                                        \
  GTEST_SKIP() << "a device of this kind runs no code"

TEST_P(ConformanceTest, ExchangesWithAHostDevice) {
  auto session = make();
  ASSERT_TRUE(session);
  for (int step = 0; step < 200; ++step) {
    ASSERT_SUCCESS(session->step());
    const Timeline &timeline = session->timeline();
    for (int device = 0; device < 2; ++device) {
      for (const Interval &interval : timeline.devices[device].operators)
        ASSERT_TRUE(interval.happened());
      for (const CopyRecord &copy : timeline.queues[device])
        ASSERT_TRUE(copy.happened());
      ASSERT_EQ(messages * bytes, timeline.devices[device].bytesSent);
    }
  }
}

TEST_P(ConformanceTest, ExchangesWithItsOwnKind) {
  program.devices[1].kind = GetParam();
  auto session = make();
  ASSERT_TRUE(session);
  for (int step = 0; step < 200; ++step)
    ASSERT_SUCCESS(session->step());
}

TEST_P(ConformanceTest, MovesTheRightBytes) {
  SKIP_WITHOUT_DATA();
  auto session = make();
  ASSERT_TRUE(session);
  std::vector<char> values[2], got(half);
  for (int device = 0; device < 2; ++device) {
    for (int64_t i = 0; i < half; ++i)
      values[device].push_back(char(i * (device + 3) % 127 + 1));
    ASSERT_SUCCESS(session->setArgument(device, values[device].data(), half));
  }
  ASSERT_SUCCESS(session->step());
  for (int device = 0; device < 2; ++device) {
    ASSERT_SUCCESS(session->getResult(device, got.data(), half));
    for (int64_t i = 0; i < half; ++i)
      ASSERT_EQ(i % slot < bytes ? values[1 - device][i] : 0, got[i]);
  }
}

TEST_P(ConformanceTest, KeepsArguments) {
  SKIP_WITHOUT_DATA();
  auto session = make();
  ASSERT_TRUE(session);
  std::vector<char> value(half, 5), got(half);
  ASSERT_SUCCESS(session->setArgument(0, value.data(), half));
  ASSERT_SUCCESS(session->step());
  ASSERT_SUCCESS(session->getArgument(0, got.data(), half));
  EXPECT_EQ(value, got);
}

TEST_P(ConformanceTest, ArgumentsAreZeroAtFirst) {
  auto session = make();
  ASSERT_TRUE(session);
  std::vector<char> got(half, 1);
  ASSERT_SUCCESS(session->getArgument(0, got.data(), half));
  EXPECT_EQ(std::vector<char>(half, 0), got);
}

TEST_P(ConformanceTest, IsWokenByAPeersFailure) {
  auto session = make(exchangeFirst, [](Context context, char *) {
    return baechi_fail(context, "peer lost");
  });
  ASSERT_TRUE(session);
  for (int step = 0; step < 20; ++step)
    ASSERT_EQ("device host1, before its first operator: peer lost",
              session->step().message());
}

TEST_P(ConformanceTest, NamesWhatItWaitsFor) {
  auto session = make(exchangeFirst, doNothing);
  ASSERT_TRUE(session);
  EXPECT_EQ("deadlock: tested waits to send message 0 'm0' of queue 0 (tested "
            "to host1) after operator 1 'b'",
            session->step().message());
}

TEST_P(ConformanceTest, ReportsItsOwnFailure) {
  SKIP_WITHOUT_ENTRY();
  auto session = make([](Context context, char *) {
    baechi_operator_begin(context, 1);
    return baechi_fail(context, "out of memory");
  });
  ASSERT_TRUE(session);
  EXPECT_EQ("device tested, in operator 1 'b': out of memory",
            session->step().message());
}

TEST_P(ConformanceTest, KeepsItsLimit) {
  program.devices[0].memory = 2 * half - 1;
  EXPECT_THAT(creationError(program),
              StartsWith("device tested: the program needs"));
}

TEST_P(ConformanceTest, NeedsItsEntry) {
  SKIP_WITHOUT_ENTRY();
  program.devices[0].entry = "nowhere";
  EXPECT_EQ("device tested: the program has no symbol 'nowhere'",
            creationError(program));
}

TEST_P(ConformanceTest, WorksWithoutAnArena) {
  Program empty = makeProgram(1, 0);
  empty.devices[0].kind = GetParam();
  auto session = makeSession(empty, {doNothing});
  ASSERT_TRUE(session);
  EXPECT_SUCCESS(session->step());
}

TEST_P(ConformanceTest, ComesAndGoes) {
  for (int i = 0; i < 20; ++i) {
    auto session = make();
    ASSERT_TRUE(session);
    ASSERT_SUCCESS(session->step());
  }
}

#ifndef BAECHI_CONFORMANCE_KINDS
#define BAECHI_CONFORMANCE_KINDS "host", "null"
#endif
constexpr const char *kinds[] = {BAECHI_CONFORMANCE_KINDS};

INSTANTIATE_TEST_SUITE_P(Drivers, ConformanceTest, testing::ValuesIn(kinds),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
