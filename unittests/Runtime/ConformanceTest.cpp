//===- ConformanceTest.cpp - What every driver must do --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Device 0 is of the kind under test, its peer a host device, of the same
/// process or of another rank (RankThreads.h). A new driver adds rows to
/// `subjects`; what it cannot do it must skip with a reason.
///
//===----------------------------------------------------------------------===//

#include "RankThreads.h"
#ifdef BAECHI_FAKE_CUDA
#include "CudaPrograms.h"
#include "drivers/cuda/CudaApi.h"
#endif

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

/// A kind of devices, and where the two devices are.
struct Subject {
  const char *name;
  const char *kind;
  int32_t ranks = 1;
  /// GPUs that are needed; the fake driver has so many.
  int gpus = 0;

  friend void PrintTo(const Subject &subject, std::ostream *os) {
    *os << subject.name;
  }
};

/// A session over one rank or more.
struct Started {
  ~Started() {
    session.reset();
    if (!threads.members.empty())
      threads.end();
  }
  Session *operator->() const { return session.get(); }

  RankThreads threads;
  std::unique_ptr<Session> session;
};

class ConformanceTest : public testing::TestWithParam<Subject> {
protected:
  void SetUp() override {
    kind = findDriver(GetParam().kind);
    ASSERT_TRUE(kind);
    if (overRanks() && kind->memory == Memory::None)
      GTEST_SKIP() << "a device of this kind holds no data to exchange with "
                      "another process (RanksTest.RefusesDevicesWithoutData)";
#ifdef BAECHI_FAKE_CUDA
    fakecuda::FakeOptions machine;
    machine.devices = std::max(1, GetParam().gpus);
    resetCuda(machine);
    int gpus = 0;
    (*cuda::loadApi())->deviceGetCount(&gpus);
    if (gpus < GetParam().gpus)
      GTEST_SKIP() << "there are not " << GetParam().gpus << " GPUs";
#endif
    program = makeProgram(2, 2 * half);
    program.devices[0].kind = GetParam().kind;
    program.devices[0].name = "tested";
    for (int32_t device = 0; device < 2; ++device) {
      addQueue(program, device, 1 - device,
               std::vector<int64_t>(messages, bytes));
      // All are offered before one is awaited.
      for (MessageInfo &message : program.queues.back().messages)
        message.group = 0;
      addArgument(program, device, 0, half);
      addResult(program, device, half, half);
    }
  }

  bool overRanks() const { return GetParam().ranks > 1; }
  /// What rank `rank` says, where there are several.
  std::string by(int32_t rank, const std::string &text) const {
    return overRanks() ? "rank " + std::to_string(rank) + ": " + text : text;
  }

  /// Null with the reason in `refused`.
  std::unique_ptr<Started> create(const Program &given) {
    auto started = std::make_unique<Started>();
    if (!overRanks()) {
      auto session = Session::create(given, resolveBody);
      if (session)
        started->session = std::move(*session);
      else
        refused = session.error().message();
    } else {
      started->threads.build(GetParam().ranks);
      started->threads.program = given;
      auto session = started->threads.begin();
      if (session)
        started->session = std::move(*session);
      else
        refused = session.error().message();
    }
    return started->session ? std::move(started) : nullptr;
  }

  std::unique_ptr<Started> make(Body first = exchangeFirst,
                                Body second = exchangeSecond) {
    bodies[0] = std::move(first);
    bodies[1] = std::move(second);
    auto started = create(program);
    EXPECT_TRUE(started) << refused;
    return started;
  }

  /// Sets arguments, steps, and compares what has been exchanged.
  void movesTheRightBytes() {
    auto session = make();
    ASSERT_TRUE(session);
    std::vector<char> values[2], got(half);
    for (int device = 0; device < 2; ++device) {
      for (int64_t i = 0; i < half; ++i)
        values[device].push_back(char(i * (device + 3) % 127 + 1));
      ASSERT_SUCCESS(
          (*session)->setArgument(device, values[device].data(), half));
    }
    ASSERT_SUCCESS((*session)->step());
    for (int device = 0; device < 2; ++device) {
      ASSERT_SUCCESS((*session)->getResult(device, got.data(), half));
      for (int64_t i = 0; i < half; ++i)
        ASSERT_EQ(i % slot < bytes ? values[1 - device][i] : 0, got[i]);
    }
  }

  const DriverKind *kind = nullptr;
  Program program;
  std::string refused;
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
    ASSERT_SUCCESS((*session)->step());
    const Timeline &timeline = (*session)->timeline();
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
  program.devices[1].kind = GetParam().kind;
  auto session = make();
  ASSERT_TRUE(session);
  for (int step = 0; step < 200; ++step)
    ASSERT_SUCCESS((*session)->step());
}

TEST_P(ConformanceTest, MovesTheRightBytes) {
  SKIP_WITHOUT_DATA();
  movesTheRightBytes();
}

TEST_P(ConformanceTest, MovesTheRightBytesToItsOwnKind) {
  SKIP_WITHOUT_DATA();
  program.devices[1].kind = GetParam().kind;
  movesTheRightBytes();
}

TEST_P(ConformanceTest, KeepsArguments) {
  SKIP_WITHOUT_DATA();
  auto session = make();
  ASSERT_TRUE(session);
  std::vector<char> value(half, 5), got(half);
  ASSERT_SUCCESS((*session)->setArgument(0, value.data(), half));
  ASSERT_SUCCESS((*session)->step());
  ASSERT_SUCCESS((*session)->getArgument(0, got.data(), half));
  EXPECT_EQ(value, got);
}

TEST_P(ConformanceTest, ArgumentsAreZeroAtFirst) {
  auto session = make();
  ASSERT_TRUE(session);
  std::vector<char> got(half, 1);
  ASSERT_SUCCESS((*session)->getArgument(0, got.data(), half));
  EXPECT_EQ(std::vector<char>(half, 0), got);
}

TEST_P(ConformanceTest, IsWokenByAPeersFailure) {
  auto session = make(exchangeFirst, [](Context context, char *) {
    return baechi_fail(context, "peer lost");
  });
  ASSERT_TRUE(session);
  // A failed step of several ranks ends their session.
  for (int step = 0; step < (overRanks() ? 1 : 20); ++step)
    ASSERT_EQ(by(1, "device host1, before its first operator: peer lost"),
              (*session)->step().message());
}

TEST_P(ConformanceTest, NamesWhatItWaitsFor) {
  if (overRanks())
    GTEST_SKIP() << "ranks that wait for each other are the watchdog's";
  auto session = make(exchangeFirst, doNothing);
  ASSERT_TRUE(session);
  EXPECT_EQ("deadlock: tested waits to send message 0 'm0' of queue 0 (tested "
            "to host1) after operator 1 'b'",
            (*session)->step().message());
}

TEST_P(ConformanceTest, ReportsItsOwnFailure) {
  SKIP_WITHOUT_ENTRY();
  auto session = make([](Context context, char *) {
    baechi_operator_begin(context, 1);
    return baechi_fail(context, "out of memory");
  });
  ASSERT_TRUE(session);
  EXPECT_EQ(by(0, "device tested, in operator 1 'b': out of memory"),
            (*session)->step().message());
}

TEST_P(ConformanceTest, KeepsItsLimit) {
  program.devices[0].memory = 2 * half - 1;
  EXPECT_FALSE(create(program));
  EXPECT_THAT(refused, StartsWith(by(0, "device tested: the program needs")));
}

TEST_P(ConformanceTest, NeedsItsEntry) {
  SKIP_WITHOUT_ENTRY();
  program.devices[0].entry = "nowhere";
  EXPECT_FALSE(create(program));
  EXPECT_EQ(by(0, "device tested: the program has no symbol 'nowhere'"),
            refused);
}

TEST_P(ConformanceTest, WorksWithoutAnArena) {
  program = makeProgram(size_t(GetParam().ranks), 0);
  for (DeviceInfo &device : program.devices)
    device.kind = GetParam().kind;
  auto session = make(doNothing, doNothing);
  ASSERT_TRUE(session);
  EXPECT_SUCCESS((*session)->step());
}

TEST_P(ConformanceTest, ComesAndGoes) {
  for (int i = 0; i < 20; ++i) {
    auto session = make();
    ASSERT_TRUE(session);
    ASSERT_SUCCESS((*session)->step());
  }
}

const Subject subjects[] = {
#ifdef BAECHI_FAKE_CUDA
    {"cuda", "cuda"},
    {"cudaOnARankEach", "cuda", 2, 1},
    {"cudaOnAGpuEach", "cuda", 2, 2},
#else
    {"host", "host"}, {"hostOnARankEach", "host", 2},
    {"pool", "pool"}, {"disk", "disk"},
    {"null", "null"}, {"nullOnARankEach", "null", 2},
#endif
};

INSTANTIATE_TEST_SUITE_P(Drivers, ConformanceTest, testing::ValuesIn(subjects),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
