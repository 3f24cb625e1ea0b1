//===- KnownGroupsTest.cpp - The search on known groups ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"
#include "Search/Search.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

constexpr int32_t layers = 12, steps = 24;

/// A recurrent network over its steps in time: an operator waits for the layer
/// below and for the step before. A transfer takes half as long as an operator.
Problem unrolled() {
  Problem problem;
  problem.machine =
      makeMachine(4, int64_t(1) << 40, {500, 1'000'000}, LinkModel::Sequential);
  for (int32_t step = 0; step < steps; ++step)
    for (int32_t layer = 0; layer < layers; ++layer) {
      int32_t id = step * layers + layer;
      problem.graph.ops.push_back(makeOp("op" + std::to_string(id), 1000, {1}));
      if (layer > 0)
        problem.graph.edges.push_back({id - 1, 0, id});
      if (step > 0)
        problem.graph.edges.push_back({id - layers, 0, id});
    }
  return problem;
}

search::SearchResult searchWith(const Model &model,
                                std::vector<std::vector<Unit>> groupings) {
  search::SearchOptions options;
  options.budget = Budget::ofEvaluations(400);
  options.groupings = std::move(groupings);
  return search::search(model, search::SearchModels(model),
                        {Assignment(model.numNodes, 0)}, options);
}

TEST(KnownGroups, LayersAreFoundWhereTheyAreKnown) {
  Problem problem = unrolled();
  Model model(problem);
  Scheduler scheduler(model);
  // By hand: three layers on each device.
  Assignment byHand;
  std::vector<Unit> layerOf(model.numUnits);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    byHand.push_back(i % layers / 3);
    layerOf[model.unit[i]] = i % layers;
  }
  int64_t goal = scheduler.run(byHand);
  search::SearchResult blind = searchWith(model, {}),
                       known = searchWith(model, {layerOf});
  ASSERT_FALSE(blind.best.empty() || known.best.empty());
  EXPECT_GT(scheduler.run(blind.best[0].device), goal);
  EXPECT_LE(scheduler.run(known.best[0].device), goal);
  // Groups that are no layers cost little more than their share of the budget.
  std::vector<Unit> stepOf(model.numUnits);
  for (int32_t i = 0; i < model.numNodes; ++i)
    stepOf[model.unit[i]] = i / layers;
  search::SearchResult both = searchWith(model, {stepOf, layerOf});
  EXPECT_LE(scheduler.run(both.best[0].device), goal);
}

TEST(KnownGroups, PinsInsideOfGroupsAreKept) {
  Problem problem = unrolled();
  problem.graph.ops[5].pin = "d3";
  Model model(problem);
  search::SearchResult found =
      searchWith(model, {std::vector<Unit>(model.numUnits, 0),
                         std::vector<Unit>(model.numUnits, 7)});
  for (const search::Found &each : found.best)
    EXPECT_EQ(each.device[5], 3);
}

} // namespace
