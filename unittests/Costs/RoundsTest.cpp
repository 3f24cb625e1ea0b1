//===- RoundsTest.cpp - Budgets and disturbances, by a clock of our own ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/Rounds.h"
#include "gmock/gmock.h"

using namespace baechi;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

namespace {
constexpr double kMs = 1e6;

/// Code that takes what the test says, on a machine that only it moves on.
class Rounds : public testing::Test {
protected:
  /// One alternative of a computation; a call takes \p ns.
  void add(size_t computation, double ns, double estimatedNs, double calls) {
    codes.push_back({computation, estimatedNs, estimatedNs * calls});
    times.push_back(ns);
    options.estimatedStepNs += codes.back().weightNs;
  }
  bool run() {
    calls.assign(codes.size(), 0);
    return timeInRounds(
        codes, options, clocks,
        [&](size_t number) -> std::function<void()> {
          if (times[number] < 0)
            return {};
          begun.push_back(number);
          return [this, number] { call(number); };
        },
        [&](size_t) { return ++told < stopAt; });
  }
  void call(size_t number) {
    ++calls[number];
    wall += times[number];
    cpu += times[number];
    if (interrupted(number, calls[number]))
      wall += 4 * kMs;
  }

  double wall = 0, cpu = 0;
  Clocks clocks{[this] { return wall; }, [this] { return cpu; }};
  RoundOptions options;
  std::vector<TimedCode> codes;
  std::vector<double> times;
  std::vector<size_t> calls, begun;
  size_t told = 0, stopAt = SIZE_MAX;
  std::function<bool(size_t, size_t)> interrupted = [](size_t, size_t) {
    return false;
  };
};

TEST_F(Rounds, WithoutABudgetEachIsTimedThrice) {
  add(0, 1 * kMs, 1 * kMs, 1);
  add(1, 0.001 * kMs, 1 * kMs, 1);
  ASSERT_TRUE(run());
  EXPECT_THAT(begun, ElementsAre(0, 1, 0, 1, 0, 1));
  for (auto [code, ns] : llvm::zip_equal(codes, times)) {
    EXPECT_GE(code.samples.size(), size_t(options.samplesEach));
    EXPECT_THAT(code.samples, Each(testing::DoubleNear(ns, 1e-3)));
    EXPECT_FALSE(code.disturbed);
  }
  // Times below the clock's own are of many calls.
  EXPECT_GE(calls[1], 20 * codes[1].samples.size());
}

TEST_F(Rounds, TheCostliestAreFirstAndTheRestIsLeftOut) {
  add(0, 10 * kMs, 10 * kMs, 1);
  add(1, 10 * kMs, 10 * kMs, 9);
  add(2, 10 * kMs, 10 * kMs, 3);
  options.floorSeconds = 0.06;
  ASSERT_TRUE(run());
  EXPECT_THAT(begun, ElementsAre(1, 2));
  EXPECT_TRUE(codes[0].samples.empty());
  // What was begun when the budget ended ends with a sample.
  EXPECT_LE(wall, 100 * kMs);
}

TEST_F(Rounds, TheBudgetFollowsTheStep) {
  for (size_t i = 0; i < 20; ++i)
    add(i, 10 * kMs, 1 * kMs, 2); // ten times slower than thought
  options.floorSeconds = 0.001;
  options.steps = 2;
  ASSERT_TRUE(run());
  // A step takes 400 ms; what overlaps the end is the last one's calls.
  EXPECT_THAT(wall, AllOf(Ge(800 * kMs), Le(840 * kMs)));
  EXPECT_THAT(begun.size(), Ge(8U));
}

TEST_F(Rounds, SlowOnesAreRepeatedLess) {
  add(0, 500 * kMs, 500 * kMs, 1);
  add(1, 1 * kMs, 1 * kMs, 1);
  ASSERT_TRUE(run());
  EXPECT_EQ(codes[0].samples.size(), 3U);
  EXPECT_THAT(codes[1].samples.size(), AllOf(Ge(27U), Le(33U)));
}

TEST_F(Rounds, AlternativesAreTimedTogether) {
  add(0, 10 * kMs, 10 * kMs, 1);
  add(0, 10 * kMs, 10 * kMs, 1);
  add(0, 90 * kMs, 10 * kMs, 1);
  options.floorSeconds = 0.001;
  ASSERT_TRUE(run());
  EXPECT_THAT(begun, ElementsAre(0, 1, 2));
  // Hopeless at once: the call that warms is the only one.
  EXPECT_EQ(calls[2], 1U);
  EXPECT_THAT(codes[2].samples, ElementsAre(90 * kMs));
}

TEST_F(Rounds, HopelessAlternativesAreNotTimedAgain) {
  add(0, 10 * kMs, 10 * kMs, 1);
  add(0, 20 * kMs, 10 * kMs, 1);
  ASSERT_TRUE(run());
  EXPECT_THAT(begun, ElementsAre(0, 1, 0, 0));
}

TEST_F(Rounds, InterruptedSamplesAreTakenAgain) {
  add(0, 1 * kMs, 1 * kMs, 1);
  interrupted = [](size_t, size_t call) { return call % 3 == 0; };
  ASSERT_TRUE(run());
  EXPECT_FALSE(codes[0].disturbed);
  EXPECT_THAT(codes[0].samples, Each(1 * kMs));
  EXPECT_GE(codes[0].samples.size(), 9U);
}

TEST_F(Rounds, WhatIsAlwaysInterruptedSaysSo) {
  add(0, 1 * kMs, 1 * kMs, 1);
  interrupted = [](size_t, size_t) { return true; };
  ASSERT_TRUE(run());
  EXPECT_TRUE(codes[0].disturbed);
  // What it computed is known all the same.
  EXPECT_THAT(codes[0].samples, Each(1 * kMs));
  // Not for ever.
  EXPECT_LE(calls[0], 40U);
}

TEST_F(Rounds, OneUndisturbedSampleReplacesAllOthers) {
  add(0, 200 * kMs, 200 * kMs, 1);
  interrupted = [](size_t, size_t call) { return call != 7; };
  times[0] = 50 * kMs;
  ASSERT_TRUE(run());
  EXPECT_FALSE(codes[0].disturbed);
  EXPECT_THAT(codes[0].samples, ElementsAre(50 * kMs));
}

TEST_F(Rounds, WithoutMemoryNothingIsTimed) {
  add(0, -1, 1 * kMs, 1);
  add(1, 1 * kMs, 1 * kMs, 1);
  ASSERT_TRUE(run());
  EXPECT_TRUE(codes[0].impossible);
  EXPECT_FALSE(codes[1].impossible);
  EXPECT_FALSE(codes[1].samples.empty());
}

TEST_F(Rounds, StopsWhenTold) {
  add(0, 1 * kMs, 1 * kMs, 1);
  stopAt = 2;
  EXPECT_FALSE(run());
  EXPECT_EQ(begun.size(), 1U);
}

TEST_F(Rounds, WhatTheBudgetCannotReachIsNotWorthCompiling) {
  add(0, 1, 1 * kMs, 1);
  add(1, 1, 100 * kMs, 1);
  add(1, 1, 100 * kMs, 1);
  options.floorSeconds = 0.001;
  EXPECT_THAT(worthTiming(codes, options), ElementsAre(1, 2));
  options.floorSeconds = 1;
  EXPECT_THAT(worthTiming(codes, options), ElementsAre(1, 2, 0));
  options = RoundOptions();
  options.estimatedStepNs = 201 * kMs;
  EXPECT_THAT(worthTiming(codes, options), ElementsAre(1, 2, 0));
  // One millisecond is less than a hundredth.
  options.leastShare = 0.01;
  EXPECT_THAT(worthTiming(codes, options), ElementsAre(1, 2));
  options.leastShare = 1;
  EXPECT_THAT(worthTiming(codes, options), ElementsAre());
  options = RoundOptions();
  EXPECT_THAT(worthTiming(codes, options), ElementsAre(1, 2, 0));
}

TEST(Disturbed, IsWhatTakesLongerThanItComputes) {
  EXPECT_FALSE(isDisturbed(20000, 17000));
  EXPECT_FALSE(isDisturbed(100 * kMs, 99 * kMs));
  EXPECT_TRUE(isDisturbed(100 * kMs, 90 * kMs));
  EXPECT_TRUE(isDisturbed(4.02 * kMs, 0.02 * kMs));
  // Several threads compute more than there is time.
  EXPECT_FALSE(isDisturbed(100 * kMs, 190 * kMs));
}

TEST(Disturbed, TheClocksGoOn) {
  for (const Clocks &clocks : {Clocks::ofThisThread(), Clocks::ofThisProcess(),
                               Clocks::ofTheWorld()}) {
    double wall = clocks.wall(), cpu = clocks.cpu();
    while (clocks.wall() < wall + 1e5)
      ;
    EXPECT_GT(clocks.cpu(), cpu);
  }
}
} // namespace
