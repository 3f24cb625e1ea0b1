//===- MemoryOrdersTest.cpp - Orders of steps that need little --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/LimitedSchedule.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Model/Random.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using baechi::placement::Random;
using testing::IsEmpty;

namespace {

/// Whether any order at all fits, by trying them one after the other.
bool someOrderFits(const memory::Steps &steps, std::vector<uint8_t> &done,
                   const memory::Levels &levels) {
  bool all = true;
  for (memory::Step s = 0; s < steps.size(); ++s) {
    bool ready = !done[s];
    all &= done[s] != 0;
    steps.forEachPrevious(s, [&](memory::Step p) { ready &= done[p] != 0; });
    int32_t d = steps.deviceOf(s);
    if (!ready ||
        levels.level[d] + levels.need(s) > steps.model.deviceMemory(d))
      continue;
    memory::Levels next = levels;
    next.begin(s);
    next.end(s);
    done[s] = 1;
    bool found = someOrderFits(steps, done, next);
    done[s] = 0;
    if (found)
      return true;
  }
  return all;
}

TEST(Orders, SearchFindsAnOrderWhereThereIsOne) {
  Random random(5);
  int32_t possible = 0, impossible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Problem problem;
    problem.machine = makeMachine(2, 20 + random.below(30));
    for (int32_t i = 0; i < 6; ++i) {
      problem.graph.ops.push_back(makeOp("op" + std::to_string(i),
                                         random.below(3), {random.below(20)}));
      problem.graph.ops.back().scratch = random.below(2) ? random.below(20) : 0;
      for (int32_t j = 0; j < i; ++j)
        if (random.oneIn(3))
          problem.graph.edges.push_back({j, 0, i});
    }
    Model model(problem);
    Assignment device(6);
    for (int32_t &d : device)
      d = random.oneIn(3);
    memory::Steps steps(model, device);
    std::vector<uint8_t> done(steps.size(), 0);
    bool fits = someOrderFits(steps, done, memory::Levels(steps));
    ++(fits ? possible : impossible);
    bool complete = false;
    memory::StepOrder found = memory::searchOrder(steps, 1'000'000, complete);
    EXPECT_TRUE(complete);
    EXPECT_EQ(!found.empty(), fits) << "trial " << trial;
    if (fits) {
      EXPECT_EQ(memory::excessOf(model, memory::orderPeaks(steps, found)), 0);
    }
  }
  EXPECT_GT(possible, 50);
  EXPECT_GT(impossible, 50);
}

TEST(Orders, ShrinkingIsHoistedAndGrowingSinks) {
  // Three chains of a large and a small tensor, all large ones first.
  Problem problem;
  problem.machine = makeMachine(1, 0);
  for (int32_t k = 0; k < 3; ++k) {
    problem.graph.ops.push_back(makeOp("make", 10, {100}));
    problem.graph.ops.push_back(makeOp("use", 10, {1}));
    problem.graph.ops.back().result = true;
    problem.graph.edges.push_back({2 * k, 0, 2 * k + 1});
  }
  Model model(problem);
  Assignment device(6, 0);
  memory::Steps steps(model, device);
  memory::StepOrder wide{0, 2, 4, 1, 3, 5};
  EXPECT_EQ(memory::orderPeaks(steps, wide), std::vector<int64_t>{301});
  for (const memory::StepOrder &order :
       {memory::hoistShrinking(steps, wide), memory::sinkGrowing(steps, wide)})
    EXPECT_EQ(memory::orderPeaks(steps, order), std::vector<int64_t>{103});
}

TEST(Orders, SegmentsEndInValleys) {
  // Four chains that go up twice before they come down: one after the other.
  Problem problem;
  problem.machine = makeMachine(1, 0);
  memory::StepOrder wide;
  for (int32_t k = 0; k < 4; ++k)
    for (int64_t bytes : {10, 100, 1}) {
      auto i = static_cast<int32_t>(problem.graph.ops.size());
      problem.graph.ops.push_back(makeOp("op", 10, {bytes}));
      if (bytes != 10)
        problem.graph.edges.push_back({i - 1, 0, i});
      problem.graph.ops.back().result = bytes == 1;
    }
  for (int32_t each : {0, 1, 2})
    for (int32_t k = 0; k < 4; ++k)
      wide.push_back(3 * k + each);
  Model model(problem);
  Assignment device(12, 0);
  memory::Steps steps(model, device);
  EXPECT_EQ(memory::orderPeaks(steps, wide), std::vector<int64_t>{410});
  for (bool climbs : {false, true})
    EXPECT_EQ(
        memory::orderPeaks(steps, memory::valleyOrder(steps, wide, climbs)),
        std::vector<int64_t>{113});
}

/// The least peak over all orders behind \p done.
static int64_t leastPeak(const memory::Steps &steps, std::vector<uint8_t> &done,
                         const memory::Levels &levels) {
  int64_t least = never;
  for (memory::Step s = 0; s < steps.size(); ++s) {
    bool isReady = !done[s];
    steps.forEachPrevious(
        s, [&](memory::Step p) { isReady = isReady && done[p]; });
    if (!isReady)
      continue;
    memory::Levels after = levels;
    int64_t peak = levels.level[0] + levels.need(s);
    after.begin(s);
    after.end(s);
    done[s] = 1;
    least = std::min(least, std::max(peak, leastPeak(steps, done, after)));
    done[s] = 0;
  }
  return least == never ? levels.level[0] : least;
}

TEST(Orders, ValleysAreNearTheLeastPeak) {
  Random random(9);
  int32_t least = 0, trials = 200;
  for (int32_t trial = 0; trial < trials; ++trial) {
    Problem problem;
    problem.machine = makeMachine(1, 0);
    for (int32_t i = 0; i < 8; ++i) {
      problem.graph.ops.push_back(
          makeOp("op" + std::to_string(i), 1, {1 + random.below(50)}));
      for (int32_t j = 0; j < i; ++j)
        if (random.oneIn(4))
          problem.graph.edges.push_back({j, 0, i});
    }
    Model model(problem);
    Assignment device(8, 0);
    memory::Steps steps(model, device);
    std::vector<uint8_t> done(8, 0);
    int64_t best = leastPeak(steps, done, memory::Levels(steps)), found = never;
    for (bool climbs : {false, true}) {
      memory::StepOrder order = memory::valleyOrder(steps, model.order, climbs);
      found = std::min(found, memory::orderPeaks(steps, order)[0]);
      found = std::min(found, memory::orderPeaks(
                                  steps, memory::sinkGrowing(steps, order))[0]);
    }
    EXPECT_GE(found, best);
    least += found == best;
  }
  EXPECT_GE(least, trials * 8 / 10);
}

TEST(Orders, TransfersMakeRoomAtHome) {
  // a's tensor must leave d0 before b runs there, long before c needs it.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  problem.graph.ops = {makeOp("a", 1, {80}), makeOp("b", 1, {90}),
                       makeOp("c", 1, {1})};
  problem.graph.edges = {{0, 0, 2}, {0, -1, 1}, {1, 0, 2}};
  problem.graph.ops[1].outputs[0].copy = 10;
  Model model(problem);
  Assignment device{0, 0, 1};
  memory::Steps steps(model, device);
  memory::FoundOrder found = memory::findOrder(
      steps, memory::plainOrders(steps, memory::leanOrders(model)));
  EXPECT_EQ(found.excess, 0);
  Schedule schedule = memory::scheduleLimited(steps, found.order, {});
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
}

} // namespace
