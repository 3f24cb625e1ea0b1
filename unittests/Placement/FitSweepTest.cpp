//===- FitSweepTest.cpp - The step over the memory ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/FitSweep.h"
#include "Baechi/Placement/Model/Pool.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

#include <random>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

constexpr FitWay FitPoint::*means[] = {&FitPoint::order, &FitPoint::again,
                                       &FitPoint::pool, &FitPoint::both};

FitSweepOptions sharesFrom(double most, double step) {
  FitSweepOptions options;
  for (double share = most; share > 0; share -= step)
    options.memory.push_back({SweepMemory::Kind::Share, share});
  options.place.budget = Budget::ofEvaluations(100);
  return options;
}

/// One device, and a pool of \p bytes.
Machine withPool(int64_t bytes, Link link) {
  Machine machine = makeMachine(2, 1 << 20, link);
  machine.devices[1] = {"pool0", kPool, bytes};
  return machine;
}

Problem trainingChain(int32_t layers) {
  Problem problem;
  problem.machine = withPool(int64_t(1) << 40, {1, 1000});
  Graph &graph = problem.graph;
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(makeOp("f" + std::to_string(i), 10'000, {5000}));
    if (i > 0)
      graph.edges.push_back({i - 1, 0, i});
  }
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("b" + std::to_string(i), 20'000, {5000}));
    graph.edges.push_back({i, 0, id});
    if (i + 1 < layers)
      graph.edges.push_back({id - 1, 0, id});
  }
  graph.ops.back().result = true;
  return problem;
}

Problem randomGraph(std::mt19937 &random) {
  auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  Problem problem;
  problem.machine = withPool(int64_t(1) << 40, {draw(0, 500), draw(100, 9000)});
  auto count = static_cast<int32_t>(draw(4, 30));
  for (int32_t op = 0; op < count; ++op) {
    problem.graph.ops.push_back(
        makeOp("o" + std::to_string(op), draw(1, 9000), {draw(1, 90) * 64}));
    Operator &made = problem.graph.ops.back();
    made.scratch = draw(0, 3) * 64;
    made.resident = op < count / 4 ? draw(0, 9) * 64 : 0;
    made.result = draw(0, 5) == 0;
    if (op > 0)
      problem.graph.edges.push_back(
          {static_cast<int32_t>(draw(0, op - 1)), 0, op});
    if (op > 1 && problem.graph.edges.back().from != op - 1)
      problem.graph.edges.push_back({op - 1, draw(0, 4) > 0 ? 0 : -1, op});
  }
  return problem;
}

TEST(FitSweep, LessMemoryIsNeverFaster) {
  std::mt19937 random(5);
  int32_t rewritten = 0;
  for (int32_t round = 0; round < 20; ++round) {
    Problem problem = randomGraph(random);
    FitSweep sweep = fitSweep(problem, sharesFrom(110, 10));
    ASSERT_EQ(sweep.error, "");
    ASSERT_EQ(sweep.points.size(), 11U);
    for (FitWay FitPoint::*way : means) {
      const FitWay *more = nullptr;
      for (const FitPoint &point : sweep.points) {
        const FitWay &now = point.*way;
        if (more && now.fits) {
          EXPECT_TRUE(more->fits);
          EXPECT_GE(now.stepNs, more->stepNs);
        }
        more = &now;
        if (!now.fits)
          continue;
        // Each was replayed by the rules of placements, within its limit.
        EXPECT_LE(now.peakBytes, point.memoryBytes);
        EXPECT_GE(point.memoryBytes, sweep.floor.bytes);
        EXPECT_GE(now.stepNs, sweep.unlimitedNs);
        EXPECT_LE(point.best()->stepNs, now.stepNs);
        rewritten += now.movedBytes > 0 || now.againNs > 0;
      }
    }
    EXPECT_TRUE(sweep.points.front().order.fits);
    EXPECT_EQ(sweep.points.front().best()->stepNs, sweep.unlimitedNs);
  }
  EXPECT_GT(rewritten, 40);
}

TEST(FitSweep, AChainByEachOfTheMeans) {
  FitSweep sweep = fitSweep(trainingChain(20), sharesFrom(100, 20));
  ASSERT_EQ(sweep.points.size(), 5U);
  EXPECT_EQ(sweep.unlimitedNs, 600'000);
  const FitPoint &least = sweep.points.back(); // 20 %
  EXPECT_FALSE(least.order.fits);
  ASSERT_TRUE(least.again.fits && least.pool.fits && least.both.fits);
  EXPECT_EQ(least.again.stepNs, sweep.unlimitedNs + least.again.againNs);
  EXPECT_GT(least.again.againBytes, 0);
  EXPECT_EQ(least.pool.againNs, 0);
  // 5 us for a tensor to the pool or back, beside operators of 10 and 20 us.
  EXPECT_EQ(least.pool.stepNs, sweep.unlimitedNs);
  EXPECT_GT(least.pool.movedBytes, 0);
  EXPECT_STREQ(least.bestName(), "pool");
}

TEST(FitSweep, AFullPoolDoesNotFit) {
  Problem problem = trainingChain(20);
  problem.machine = withPool(5000, {1, 1000});
  FitSweep sweep = fitSweep(problem, sharesFrom(100, 20));
  EXPECT_FALSE(sweep.points.back().pool.fits);
  EXPECT_TRUE(sweep.points.back().again.fits);
}

TEST(FitSweep, NothingFitsBelowTheFloor) {
  FitSweepOptions options;
  options.memory = {{SweepMemory::Kind::Bytes, 14'999},
                    {SweepMemory::Kind::Bytes, 15'000}};
  FitSweep sweep = fitSweep(trainingChain(10), options);
  EXPECT_EQ(sweep.floor.bytes, 15'000);
  EXPECT_EQ(sweep.floor.op, "b8");
  EXPECT_TRUE(sweep.points.front().pool.fits);
  EXPECT_STREQ(sweep.points.back().bestName(), "none");
}

TEST(FitSweep, TheSameEachTime) {
  std::mt19937 random(9);
  Problem problem = randomGraph(random);
  FitSweep one = fitSweep(problem, sharesFrom(100, 10));
  FitSweep two = fitSweep(problem, sharesFrom(100, 10));
  for (size_t k = 0; k < one.points.size(); ++k)
    for (FitWay FitPoint::*way : means) {
      EXPECT_EQ((one.points[k].*way).stepNs, (two.points[k].*way).stepNs);
      EXPECT_EQ((one.points[k].*way).peakBytes, (two.points[k].*way).peakBytes);
    }
}

TEST(FitSweep, CanBeCancelled) {
  FitSweepOptions options = sharesFrom(100, 10);
  options.place.cancelled = [] { return true; };
  EXPECT_EQ(fitSweep(trainingChain(10), options).error, cancelledError);
}

} // namespace
