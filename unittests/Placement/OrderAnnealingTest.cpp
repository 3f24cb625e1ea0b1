//===- OrderAnnealingTest.cpp - Searches of small graphs --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/OrderAnnealing.h"
#include "Schedule/Schedule.h"
#include "Search/SmallSearch.h"
#include "SmallProblems.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// a starts c, the head of a long chain on the other device, whose first
/// operator could also begin with the long b.
Problem idling() {
  Problem problem;
  problem.machine = makeMachine(2, int64_t(1) << 40, {0, 1000});
  problem.graph.ops = {makeOp("a", 10, {}), makeOp("b", 100, {}),
                       makeOp("c", 5, {}), makeOp("d", 100, {})};
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[1].pin = "d1";
  problem.graph.ops[2].pin = "d1";
  problem.graph.ops[3].pin = "d0";
  problem.graph.edges = {{0, -1, 2}, {2, -1, 3}};
  return problem;
}

search::SearchOptions optionsOf(int64_t evaluations) {
  search::SearchOptions options;
  options.budget = Budget::ofEvaluations(evaluations);
  return options;
}

TEST(OrderAnnealing, FindsWhatAListSchedulerCannot) {
  Problem problem = idling();
  Model model(problem);
  Assignment only = {0, 1, 1, 0};
  // d1 never idles for c, so that d ends at 205.
  EXPECT_EQ(Scheduler(model).run(only), 205);
  search::OrderResult found =
      search::annealOrders(model, {only}, optionsOf(1000));
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->makespanNs, 115);
  EXPECT_THAT(verify(problem, *found.best), IsEmpty());
  EXPECT_LE(found.evaluations, 1000);
  EXPECT_EQ(place(problem, {}).placement->makespanNs, 115);
}

TEST(OrderAnnealing, IsValidAndReproducible) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SmallProblems draws(seed);
    Problem problem = draws.draw();
    if (!check(problem).empty())
      continue;
    for (Device &device : problem.machine.devices)
      device.memory = 6000;
    Model model(problem);
    search::SearchOptions options = optionsOf(500);
    if (seed % 2)
      options.objective = Objective::MaxLoad;
    search::OrderResult found = search::annealOrders(model, {}, options);
    search::OrderResult again = search::annealOrders(model, {}, options);
    ASSERT_EQ(found.best.has_value(), again.best.has_value());
    EXPECT_EQ(found.evaluations, again.evaluations);
    if (!found.best)
      continue;
    EXPECT_THAT(verify(problem, *found.best), IsEmpty()) << "seed " << seed;
    EXPECT_EQ(found.best->device, again.best->device);
    EXPECT_EQ(found.best->startNs, again.best->startNs);
  }
}

TEST(OrderAnnealing, EndsAtTheLowerBound) {
  Problem problem = idling();
  Model model(problem);
  search::SearchOptions options = optionsOf(1'000'000);
  options.lowerBound = 115;
  EXPECT_LT(search::annealOrders(model, {{0, 1, 1, 0}}, options).evaluations,
            10'000);
}

TEST(SmallSearch, SpendsItsShareOfTheBudget) {
  SmallProblems draws(3);
  Problem problem = draws.draw(16, 16);
  Model model(problem);
  search::SearchOptions options = optionsOf(400);
  search::SmallResult found = search::searchSmall(model, nullptr, options);
  EXPECT_LE(found.evaluations + found.nodes, 200);
  EXPECT_EQ(search::shareOfSearch(model, 400), 200);
  EXPECT_EQ(search::shareOfSearch(model, 1'000'000), 200 * model.numUnits);
}

TEST(SmallSearch, ProvesTheOptimumOrThatNothingFits) {
  int optimal = 0, infeasible = 0;
  for (uint32_t seed = 0; seed < 16; ++seed) {
    SmallProblems draws(seed);
    Problem problem = draws.draw(4, 8);
    if (!check(problem).empty() ||
        !SmallProblems::tighten(problem, seed % 4 ? 100 : 95, 2000))
      continue;
    ExactOptions fromNothing;
    fromNothing.startFromPlace = false;
    fromNothing.nodeLimit = 50'000;
    ExactResult best = exactPlacement(problem, fromNothing);
    PlaceResult found = place(problem, {});
    if (best.status == ExactStatus::Optimal) {
      ++optimal;
      ASSERT_TRUE(found.placement) << "seed " << seed << ": " << found.error;
      EXPECT_EQ(found.placement->makespanNs, best.valueNs) << "seed " << seed;
      EXPECT_LE(found.lowerBoundNs, best.valueNs) << "seed " << seed;
    } else if (best.status == ExactStatus::Infeasible) {
      ++infeasible;
      EXPECT_THAT(found.error, HasSubstr("no placement can fit the memories"));
    }
  }
  EXPECT_GT(optimal, 2);
  EXPECT_GT(infeasible, 0);
}

TEST(Search, DevicesWithoutLinks) {
  // Nothing can be scheduled, and there are too many assignments to try all.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.machine.links.assign(4, std::nullopt);
  for (int32_t i = 0; i < 18; ++i)
    problem.graph.ops.push_back(makeOp("op", 1 + i));
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[1].pin = "d1";
  problem.graph.edges = {{0, 0, 1}};
  for (int64_t evaluations : {1000, 100'000})
    EXPECT_THAT(search::search(Model(problem),
                               search::SearchModels(Model(problem)), {},
                               optionsOf(evaluations))
                    .best,
                IsEmpty());
}

} // namespace
