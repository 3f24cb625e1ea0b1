//===- PlaceTest.cpp - From a problem to a placement ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

PlaceResult placed(const Problem &problem, const PlaceOptions &options = {}) {
  PlaceResult result = place(problem, options);
  EXPECT_TRUE(result.placement) << result.error;
  if (result.placement) {
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    EXPECT_GE(options.objective == Objective::Makespan
                  ? result.placement->makespanNs
                  : result.maxLoadNs,
              result.lowerBoundNs);
  }
  return result;
}

PlaceOptions pure(const std::string &placer) {
  PlaceOptions options;
  options.placer = placer;
  options.budget = Budget::none();
  return options;
}

TEST(Place, SingleTriesNothingElse) {
  Problem problem = diamond(/*work=*/1000, /*bytes=*/10);
  PlaceOptions options;
  options.placer = "single";
  options.budget = Budget::ofSeconds(1e300);
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  for (const Candidate &candidate : result.candidates)
    EXPECT_EQ(candidate.name.rfind("single:", 0), 0) << candidate.name;
  EXPECT_EQ(result.placement->makespanNs, result.singleDeviceNs);
}

TEST(Place, SmallProblemsEndWhateverTheBudget) {
  for (int64_t bytes : {10, 1000, 100000}) {
    Problem problem = diamond(/*work=*/1000, bytes);
    PlaceOptions options;
    options.budget = Budget::ofSeconds(1e300);
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_LE(result.placement->makespanNs, *result.singleDeviceNs);
  }
}

TEST(Place, KnownOptimumOfAFork) {
  // a and b on one device; a's transfer, c and d on the other.
  EXPECT_EQ(placed(diamond()).placement->makespanNs, 10 + 20 + 1000 + 10);
}

TEST(Place, KnownOptimumOfAJoin) {
  Problem problem;
  problem.machine = makeMachine(2, 1 << 20, {10, 1000}, LinkModel::Unlimited);
  problem.graph.ops = {makeOp("a", 100, {10}), makeOp("b", 100, {10}),
                       makeOp("c", 100, {10}), makeOp("d", 100, {10}),
                       makeOp("join", 10)};
  for (int32_t i = 0; i < 4; ++i)
    problem.graph.edges.push_back({i, 0, 4});
  // Two on each device; the first transfer runs beside the second operator.
  EXPECT_EQ(placed(problem).placement->makespanNs, 230);
}

TEST(Place, OneDeviceWhereNoSplitPays) {
  Problem problem = diamond(/*work=*/10, /*bytes=*/100000);
  PlaceResult result = placed(problem);
  EXPECT_EQ(result.placement->makespanNs, 40);
  EXPECT_EQ(result.singleDeviceNs, 40);
}

TEST(Place, NeverWorseThanOneDevice) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceOptions options;
    options.budget = Budget::ofEvaluations(100);
    PlaceResult result = placed(problem, options);
    if (result.singleDeviceNs) {
      EXPECT_LE(result.placement->makespanNs, *result.singleDeviceNs)
          << "seed " << seed;
    }
  }
}

/// What only the host can run, and a chain of layers that are ten times slower
/// there: nothing of it belongs on the host.
TEST(Place, WhatTheHostMustRunKeepsNothingElseThere) {
  Problem problem;
  problem.machine = makeMachine(4, int64_t(1) << 40, {1000, 10000});
  problem.machine.devices[3].kind = "cpu";
  Operator data = makeOp("data", 0, {1 << 10});
  data.timeNs = {{"cpu", 1000}};
  problem.graph.ops.push_back(data);
  for (int32_t i = 1; i <= 40; ++i) {
    Operator layer = makeOp("layer" + std::to_string(i), 0, {1 << 16});
    layer.timeNs = {{"gpu", 10000}, {"cpu", 100000}};
    layer.group = "g" + std::to_string((i - 1) / 4);
    problem.graph.ops.push_back(layer);
    problem.graph.edges.push_back({i - 1, 0, i});
  }
  for (bool hasBudget : {false, true}) {
    PlaceOptions options;
    if (!hasBudget)
      options.budget = Budget::none();
    PlaceResult result = placed(problem, options);
    EXPECT_EQ(result.usage[3].operators, 1) << result.winner;
    // Nothing is gained by a second device.
    EXPECT_LE(result.placement->makespanNs, 1000 + 1103 + 40 * 10000);
  }
  PlaceOptions mostly = onlyPlacer("mostly-single", problem);
  EXPECT_EQ(placed(problem, mostly).usage[3].operators, 1);
}

TEST(Place, EveryPlacerAlone) {
  for (const std::string &placer : placerNames()) {
    PlaceResult result = placed(diamond(), onlyPlacer(placer, diamond()));
    EXPECT_EQ(result.winner.rfind(placer, 0), 0u) << result.winner;
  }
}

TEST(Place, PlainPlacersSayWhatOverflows) {
  // In a row all four are on one device, which is too small.
  Problem problem = diamond(/*work=*/10, /*bytes=*/100000);
  problem.machine = makeMachine(2, 400000);
  for (Operator &op : problem.graph.ops)
    op.resident = 60000;
  for (const char *placer : {"etf", "sct"}) {
    PlaceOptions options = pure(placer);
    PlaceResult result = place(problem, options);
    EXPECT_FALSE(result.placement);
    EXPECT_THAT(result.error,
                HasSubstr("the placement of '" + std::string(placer) +
                          "' is not valid: it needs 540000 bytes (527.34 KiB) "
                          "of 400000 (390.62 KiB) on d0"));
    // For comparisons, what it would take.
    ASSERT_EQ(result.candidates.size(), 1u);
    EXPECT_FALSE(result.candidates[0].feasible);
    EXPECT_EQ(result.candidates[0].makespanNs, 40);
    // Nothing else takes its place, whatever the budget.
    options.budget = {};
    EXPECT_FALSE(place(problem, options).placement);
    problem.machine = makeMachine(2, 540000);
    EXPECT_EQ(placed(problem, options).placement->makespanNs, 40);
    problem.machine = makeMachine(2, 400000);
  }
}

TEST(Place, PinsAndGroupsHold) {
  Problem problem = diamond();
  problem.graph.ops[1].pin = "d1";
  problem.graph.ops[2].group = problem.graph.ops[3].group = "g";
  PlaceResult result = placed(problem);
  EXPECT_EQ(result.placement->device[1], 1);
  EXPECT_EQ(result.placement->device[2], result.placement->device[3]);
}

TEST(Place, UnknownPlacerListsTheKnown) {
  EXPECT_THAT(place(diamond(), pure("best")).error,
              HasSubstr("unknown placer 'best': the placers are mtopo, "
                        "mtopo-nonuniform, metf, msct"));
}

TEST(Place, UnknownGroupingListsTheKnown) {
  PlaceOptions options;
  options.grouping = {"fuse", "shuffle"};
  EXPECT_THAT(place(diamond(), options).error,
              HasSubstr("unknown grouping step 'shuffle': the steps are "
                        "colocate, forward, coplace, multilevel, fuse"));
}

TEST(Place, MalformedInputIsAnError) {
  Problem problem = diamond();
  problem.graph.edges.push_back({3, 0, 0});
  PlaceResult result = place(problem, {});
  EXPECT_FALSE(result.placement);
  EXPECT_THAT(result.error, HasSubstr("cycle"));
}

TEST(Place, EmptyGraph) {
  Problem problem;
  problem.machine = makeMachine(2);
  PlaceResult result = placed(problem);
  EXPECT_EQ(result.placement->makespanNs, 0);
  EXPECT_EQ(result.usage.size(), 2u);
}

TEST(Place, MaxLoadBalancesIndependentWork) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int64_t time : {50, 40, 30, 20, 10, 10})
    problem.graph.ops.push_back(makeOp("op", time, {}));
  PlaceOptions options;
  options.objective = Objective::MaxLoad;
  options.budget = Budget::ofEvaluations(2000);
  PlaceResult result = placed(problem, options);
  EXPECT_EQ(result.maxLoadNs, 80);
  EXPECT_EQ(result.lowerBoundNs, 80);
}

TEST(Budget, TextsAreReadAndWritten) {
  for (const char *text : {"auto", "0", "30s", "0.5s", "5000e"}) {
    Budget budget;
    EXPECT_EQ(parseBudget(text, budget), "") << text;
    EXPECT_EQ(formatBudget(budget), text);
  }
  Budget budget;
  EXPECT_EQ(parseBudget("30", budget), "");
  EXPECT_EQ(budget.kind, Budget::Kind::Seconds);
  EXPECT_EQ(budget.seconds, 30);
  for (const char *text :
       {"", "s", "e", "nan", "inf", "-1", "-5e", "0e", "1.5e", "1e300x", "fast",
        "99999999999999999999e", " 1"})
    EXPECT_NE(parseBudget(text, budget), "") << text;
}

TEST(Place, MissingLinksAreAvoided) {
  // d0 and d1 cannot talk; d2 talks to both.
  Problem problem = diamond();
  problem.machine = makeMachine(3);
  problem.machine.links[1].reset();
  problem.machine.links[3].reset();
  placed(problem);
  for (const char *placer : {"metf", "msct"})
    placed(problem, pure(placer));
}

TEST(Place, SearchImprovesAndIsReproducible) {
  Problem problem;
  ASSERT_EQ(readGraph(BAECHI_SOURCE_DIR "/data/graphs/inception_v3.json.xz",
                      problem.graph),
            "");
  ASSERT_EQ(readMachine(BAECHI_SOURCE_DIR "/data/graphs/machine_4x8GiB.json",
                        problem.machine),
            "");
  PlaceResult start = placed(problem, pure("msct"));
  PlaceOptions options;
  options.budget = Budget::ofEvaluations(400);
  PlaceResult first = placed(problem, options);
  PlaceResult second = placed(problem, options);
  EXPECT_LT(first.placement->makespanNs, start.placement->makespanNs);
  EXPECT_EQ(first.placement->device, second.placement->device);
  EXPECT_EQ(first.placement->startNs, second.placement->startNs);
}

TEST(Place, LargeGraphsBeatTheOriginal) {
  // Best results of the original program on four devices, in ns
  // (one device; its splits are slower).
  Problem problem;
  ASSERT_EQ(
      readGraph(BAECHI_SOURCE_DIR "/data/graphs/gnmt40.json.xz", problem.graph),
      "");
  ASSERT_EQ(readMachine(BAECHI_SOURCE_DIR "/data/graphs/machine_4x8GiB.json",
                        problem.machine),
            "");
  for (const char *placer : {"metf", "msct"})
    EXPECT_LT(placed(problem, pure(placer)).placement->makespanNs, 339654000);
}

TEST(Place, ProgressNamesThePhases) {
  std::vector<std::string> phases;
  PlaceOptions options;
  options.progress = [&](const std::string &phase) { phases.push_back(phase); };
  PlaceResult result = placed(diamond(), options);
  ASSERT_EQ(result.phases.size(), phases.size());
  for (size_t k = 0; k < phases.size(); ++k)
    EXPECT_EQ(result.phases[k].name, phases[k]);
}

TEST(Place, CancelledWhereverItIs) {
  // Far from every lower bound: dependent operators and slow links.
  Problem problem;
  problem.machine = makeMachine(3, int64_t(1) << 40, {1000, 1});
  for (int32_t i = 0; i < 150; ++i) {
    problem.graph.ops.push_back(
        makeOp("op" + std::to_string(i), 500 + i * 37 % 500));
    for (int32_t from : {i - 1 - i % 7, i - 3 - i % 11})
      if (from >= 0)
        problem.graph.edges.push_back({from, 0, i});
  }
  ASSERT_TRUE(check(problem).empty());
  for (Objective objective : {Objective::Makespan, Objective::MaxLoad}) {
    // By the number of times that it was asked before: phases, then searches.
    for (int calls : {0, 1, 5, 100}) {
      PlaceOptions options;
      options.objective = objective;
      options.budget = Budget::ofSeconds(3600);
      int asked = 0;
      options.cancelled = [&] { return asked++ >= calls; };
      PlaceResult result = place(problem, options);
      EXPECT_EQ(result.error, cancelledError);
      EXPECT_FALSE(result.placement);
    }
  }
}

} // namespace
