//===- FitPlacementTest.cpp - Placements of graphs that do not fit --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/FitPlacement.h"
#include "Baechi/Placement/Model/Pool.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// Forwards and back over \p layers, whose tensors differ.
Graph training(int32_t layers) {
  Graph graph;
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(
        makeOp("f" + std::to_string(i), 7'000 + 900 * i, {4096 + 640 * i}));
    if (i > 0)
      graph.edges.push_back({i - 1, 0, i});
  }
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("b" + std::to_string(i), 20'000, {4096}));
    graph.edges.push_back({i, 0, id});
    if (i + 1 < layers)
      graph.edges.push_back({id - 1, 0, id});
  }
  graph.ops.back().result = true;
  return graph;
}

Machine oneDevice(int64_t bytes, bool hasPool) {
  // A slow pool, so that both means are of use.
  Machine machine = makeMachine(hasPool ? 2 : 1, bytes, {100, 300});
  if (hasPool)
    machine.devices[1] = {"pool0", kPool, int64_t(1) << 40};
  return machine;
}

PlaceOptions brief() {
  PlaceOptions options;
  options.budget = Budget::none();
  return options;
}

/// The step of the plan, of which the rules of placements hold; nullopt: none.
std::optional<int64_t> fittedNs(const Problem &problem) {
  FitPlan plan = fitPlacement(problem, brief());
  EXPECT_EQ(plan.result.placement.has_value(), plan.result.error.empty());
  if (!plan.result.placement)
    return std::nullopt;
  std::vector<DeviceUsage> usage;
  EXPECT_TRUE(verify(plan.problem, *plan.result.placement, &usage).empty());
  EXPECT_EQ(plan.problem.machine.devices.size(),
            problem.machine.devices.size());
  for (size_t d = 0; d < usage.size(); ++d)
    EXPECT_LE(usage[d].peakBytes, problem.machine.devices[d].memory);
  return plan.result.placement->makespanNs;
}

TEST(FitPlacement, LessMemoryIsNeverFaster) {
  for (bool hasPool : {false, true}) {
    std::optional<int64_t> before = 0;
    int fitted = 0, longer = 0;
    // Too large for a search over all orders, which ends by a bound.
    Graph graph = training(14);
    int64_t most = *peakOfRuns(graph, orderOfFile(graph));
    for (int64_t bytes = most; bytes > most / 8; bytes -= most / 20) {
      std::optional<int64_t> now = fittedNs({graph, oneDevice(bytes, hasPool)});
      if (!now) {
        before = std::nullopt;
        continue;
      }
      ASSERT_TRUE(before) << bytes;
      EXPECT_GE(*now, *before) << bytes;
      longer += *now > *before && *before > 0;
      before = now;
      ++fitted;
    }
    EXPECT_GT(fitted, 8);
    EXPECT_GT(longer, 3);
  }
}

TEST(FitPlacement, BelowTheFloorNothingFits) {
  Graph graph = training(14);
  MemoryFloor floor = memoryFloor(graph);
  for (bool hasPool : {false, true}) {
    // What runs again needs room beside what it is for.
    if (hasPool)
      EXPECT_TRUE(fittedNs({graph, oneDevice(floor.bytes, hasPool)}));
    EXPECT_FALSE(fittedNs({graph, oneDevice(floor.bytes - 1, hasPool)}));
  }
}

TEST(FitPlacement, PinsHold) {
  Problem problem{training(14), oneDevice(50'000, /*hasPool=*/true)};
  problem.graph.ops[2].pin = problem.machine.devices[0].name;
  FitPlan plan = fitPlacement(problem, brief());
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_TRUE(std::any_of(
      plan.problem.graph.ops.begin(), plan.problem.graph.ops.end(),
      [](const Operator &op) { return op.pin && op.name == "f2"; }));
}

TEST(FitPlacement, SeveralDevicesRunAgain) {
  Problem problem{training(14), makeMachine(2, 40'000, {100, 1000})};
  ASSERT_FALSE(place(problem, brief()).placement);
  FitPlan plan = fitPlacement(problem, brief());
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_TRUE(verify(plan.problem, *plan.result.placement).empty());
  EXPECT_GT(plan.way.againNs, 0);
}

TEST(FitPlacement, WhatIsNotFitted) {
  Problem problem{training(4), oneDevice(1, /*hasPool=*/false)};
  PlaceOptions options = brief();
  options.objective = Objective::MaxLoad;
  EXPECT_NE(fitPlacement(problem, options).result.error.find("--objective"),
            std::string::npos);
}

} // namespace
