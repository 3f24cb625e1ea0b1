//===- CudaRepeatsTest.cpp - Operators timed by repeats ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
constexpr int64_t count = Ring::count;
constexpr size_t bytes = size_t(count) * sizeof(int32_t);

/// Operator a doubles the argument where it lies, b adds it to itself and
/// copies that: repeats that were not taken back would show.
int32_t doubleTwice(Context context, char *arena) {
  baechi_operator_begin(context, 0);
  launch("double_numbers", {arena, arena});
  baechi_operator_end(context, 0);
  baechi_operator_begin(context, 1);
  launch("add_numbers", {arena + Ring::slot, arena, arena});
  baechi_cuda_copy(arena, arena + Ring::slot, bytes);
  baechi_operator_end(context, 1);
  return 0;
}

Program oneDevice() {
  Program program = makeProgram(1, 4 * Ring::slot);
  program.devices[0].kind = "cuda";
  addArgument(program, 0, 0, int64_t(bytes));
  addResult(program, 0, 0, int64_t(bytes));
  return program;
}

/// One step, whose result must be four times its argument.
void stepsRight(Session &session) {
  std::vector<int32_t> numbers(count), got(count);
  std::iota(numbers.begin(), numbers.end(), 5);
  ASSERT_SUCCESS(session.setArgument(0, numbers.data(), bytes));
  ASSERT_SUCCESS(session.step());
  ASSERT_SUCCESS(session.getResult(0, got.data(), bytes));
  for (size_t i = 0; i < size_t(count); ++i)
    ASSERT_EQ(4 * numbers[i], got[i]) << i;
}
} // namespace

TEST(CudaRepeats, ChangeNothingAndTellTimes) {
  resetCuda();
  auto session = makeSession(oneDevice(), {doubleTwice});
  ASSERT_TRUE(session);
  session->repeatOperators();
  for (int step = 0; step < 3; ++step) {
    stepsRight(*session);
    const DeviceRecord &record = session->timeline().devices[0];
    ASSERT_EQ(2u, record.operators.size());
    EXPECT_EQ(0, record.operators[0].beginNs);
    // One after the other.
    EXPECT_EQ(record.operators[0].endNs, record.operators[1].beginNs);
    EXPECT_GE(record.operators[1].endNs, record.operators[1].beginNs);
  }
  if (usesFakeCuda())
    EXPECT_EQ(12, fakeCudaGraphLaunches())
        << "a graph an operator and step, which runs once before it is timed";
}

/// Steps without times are replayed; one that has them in between is not, and
/// leaves the replays as they were.
TEST(CudaRepeats, OnlyStepsWithTimes) {
  resetCuda();
  auto session = makeSession(oneDevice(), {doubleTwice});
  ASSERT_TRUE(session);
  session->repeatOperators();
  session->recordTimes(false);
  int launched = 0;
  auto launches = [&] {
    int before = launched;
    launched = usesFakeCuda() ? fakeCudaGraphLaunches() : 0;
    return launched - before;
  };
  std::vector<int> graphs;
  for (bool timed : {false, false, true, false}) {
    session->recordTimes(timed);
    stepsRight(*session);
    graphs.push_back(launches());
  }
  if (usesFakeCuda())
    EXPECT_EQ((std::vector<int>{0, 1, 4, 1}), graphs);
}

/// Events have to do, with the same results.
TEST(CudaRepeats, NoneWithoutMemoryForThem) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "a GPU's memory is not the test's";
  fakecuda::FakeOptions options;
  options.failWith = 2; // CUDA_ERROR_OUT_OF_MEMORY
  resetCuda(options);
  auto session = makeSession(oneDevice(), {doubleTwice});
  ASSERT_TRUE(session);
  session->repeatOperators();
  fakeCudaFail("cuMemAlloc");
  stepsRight(*session);
  fakeCudaFail(nullptr);
  EXPECT_EQ(0, fakeCudaGraphLaunches());
}

/// With another device, whose copies would meet the repeats, there are none.
TEST(CudaRepeats, NoneBesideOtherDevices) {
  resetCuda();
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session);
  session->repeatOperators();
  for (int64_t step = 0; step < 3; ++step)
    ring.stepsRight(*session, step);
  if (usesFakeCuda())
    EXPECT_EQ(0, fakeCudaGraphLaunches());
}

TEST(CudaRepeats, AFailureEndsTheStep) {
  if (!usesFakeCuda())
    GTEST_SKIP() << "only the fake driver can be made to fail";
  resetCuda();
  auto session = makeSession(oneDevice(), {doubleTwice});
  ASSERT_TRUE(session);
  session->repeatOperators();
  fakeCudaFail("cuGraphLaunch");
  std::vector<int32_t> numbers(count);
  ASSERT_SUCCESS(session->setArgument(0, numbers.data(), bytes));
  EXPECT_THAT(session->step().message(),
              HasSubstr("in operator 0 'a': a graph of repeats cannot be "
                        "launched"));
  fakeCudaFail(nullptr);
}
