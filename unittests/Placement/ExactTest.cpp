//===- ExactTest.cpp - The exact search ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BruteForce.h"
#include "Schedule/Schedule.h"
#include "SmallProblems.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// From nothing: the heuristics have no part in it.
ExactResult solve(const Problem &problem,
                  Objective objective = Objective::Makespan) {
  ExactOptions options;
  options.objective = objective;
  options.startFromPlace = false;
  return exactPlacement(problem, options);
}

TEST(Exact, SplitsADiamondOnlyWhenItPays) {
  // 10 + a transfer of 20 + 1000 + 10: the other half comes back meanwhile.
  ExactResult result = solve(diamond(1000, 10));
  EXPECT_EQ(result.status, ExactStatus::Optimal);
  EXPECT_EQ(result.valueNs, 1040);
  EXPECT_EQ(result.lowerBoundNs, 1040);
  EXPECT_EQ(solve(diamond(10, 10)).valueNs, 40);
}

TEST(Exact, NoPlacementOnAGridOfTimesIsBetter) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem;
    if (!drawTiny(seed, 3, problem))
      continue;
    ExactResult result = solve(problem);
    ASSERT_EQ(result.error, "") << "seed " << seed;
    ASSERT_NE(result.status, ExactStatus::Limit) << "seed " << seed;
    bool found = result.status == ExactStatus::Optimal;
    // What needs longer than this is not looked for.
    constexpr int64_t horizon = 6;
    int64_t below = found ? std::min(result.valueNs, horizon + 1) : horizon + 1;
    EXPECT_EQ(BruteForce(problem).best(below), std::nullopt)
        << "seed " << seed << ": better than " << result.valueNs;
    if (found) {
      EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    }
  }
}

TEST(Exact, LeastLoadOfAllAssignments) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = SmallProblems(seed).draw(3, 7);
    if (!check(problem).empty())
      continue;
    Model model(problem);
    int64_t least = never;
    Assignment device(model.numNodes, 0);
    for (bool more = true; more;) {
      bool valid = true;
      for (int32_t i = 0; i < model.numNodes; ++i)
        valid &= model.mayUse(model.unit[i], device[i]) &&
                 device[i] == device[model.members[model.unit[i]].front()];
      for (int32_t i = 0; i < model.numNodes && valid; ++i)
        for (int32_t user : model.controlUsers[i])
          valid &= device[i] == device[user] ||
                   model.linked(device[i], device[user]);
      if (valid)
        least = std::min(least, maxLoad(model, device));
      more = false;
      for (int32_t i = 0; i < model.numNodes && !more; ++i) {
        more = ++device[i] < model.numDevices;
        if (!more)
          device[i] = 0;
      }
    }
    ExactResult result = solve(problem, Objective::MaxLoad);
    EXPECT_EQ(result.status == ExactStatus::Infeasible, least == never);
    if (result.placement) {
      EXPECT_EQ(result.valueNs, least) << "seed " << seed;
      EXPECT_EQ(maxLoad(model, result.placement->device), least);
      EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    }
  }
}

TEST(Exact, OptimaRespectWhatChangesNothingAndWhatHelps) {
  for (uint32_t seed = 0; seed < 25; ++seed) {
    Problem problem;
    SmallProblems draws(seed);
    problem = draws.draw(3, 9);
    if (!check(problem).empty() || !SmallProblems::tighten(problem, 105))
      continue;
    ExactResult result = solve(problem);
    ASSERT_EQ(result.status, ExactStatus::Optimal);

    Problem mirrored = problem;
    std::reverse(mirrored.machine.devices.begin(),
                 mirrored.machine.devices.end());
    std::reverse(mirrored.machine.links.begin(), mirrored.machine.links.end());
    EXPECT_EQ(solve(mirrored).valueNs, result.valueNs) << "seed " << seed;

    Problem roomier = problem;
    for (Device &device : roomier.machine.devices)
      device.memory += device.memory / 4;
    EXPECT_LE(solve(roomier).valueNs, result.valueNs) << "seed " << seed;

    Problem faster = problem;
    for (auto &link : faster.machine.links)
      if (link)
        link->bytesPerUs *= 2;
    EXPECT_LE(solve(faster).valueNs, result.valueNs) << "seed " << seed;

    Problem freer = problem;
    freer.machine.linkModel = LinkModel::Unlimited;
    EXPECT_LE(solve(freer).valueNs, result.valueNs) << "seed " << seed;
  }
}

/// Two operators; the second fits only where no link leads directly.
Problem relay() {
  Problem problem;
  problem.machine = makeMachine(3);
  problem.machine.devices[0].memory = 100;
  problem.machine.devices[1].memory = 100;
  problem.machine.links[2].reset(); // d0 -> d2
  problem.graph.ops = {makeOp("a", 5, {50}), makeOp("b", 7, {})};
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[1].resident = 1000;
  problem.graph.edges = {{0, 0, 1}};
  return problem;
}

TEST(Exact, RelaysWhereNoLinkLeadsDirectly) {
  ExactResult result = solve(relay());
  ASSERT_EQ(result.status, ExactStatus::Optimal);
  ASSERT_EQ(result.placement->transfers.size(), 2u);
  EXPECT_EQ(result.placement->transfers[0].to, 1);
  EXPECT_EQ(result.placement->transfers[1].from, 1);
  // Two hops of 10 ns + 50 bytes at 1 byte a ns.
  EXPECT_EQ(result.valueNs, 5 + 60 + 60 + 7);
}

TEST(Exact, ProvesThatNothingFits) {
  Problem problem = relay();
  problem.machine.devices[2].memory = 1049; // the copy and the parameters
  EXPECT_EQ(solve(problem).status, ExactStatus::Infeasible);
  EXPECT_EQ(fitsSomehow(problem), false);
  problem.machine.devices[2].memory = 1050;
  EXPECT_EQ(solve(problem).status, ExactStatus::Optimal);
  EXPECT_EQ(fitsSomehow(problem), true);
}

TEST(Exact, SaysWhenTheLimitIsReached) {
  Problem problem;
  ASSERT_TRUE(drawTight(12, problem));
  ExactResult best = solve(problem);
  ASSERT_EQ(best.status, ExactStatus::Optimal);
  for (int64_t limit : {int64_t(1), best.nodes / 10, best.nodes / 2}) {
    ExactOptions options;
    options.nodeLimit = limit;
    options.startFromPlace = false;
    ExactResult result = exactPlacement(problem, options);
    EXPECT_EQ(result.status, ExactStatus::Limit);
    EXPECT_LE(result.lowerBoundNs, best.valueNs);
    if (result.placement) {
      EXPECT_GE(result.valueNs, best.valueNs);
      EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    }
  }
}

TEST(Exact, RefusesWhatItCannotSearch) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int i = 0; i < 25; ++i)
    problem.graph.ops.push_back(makeOp("op", 1));
  EXPECT_EQ(exactPlacement(problem).status, ExactStatus::Refused);
  EXPECT_THAT(exactPlacement(problem).error, HasSubstr("up to 24 operators"));
  EXPECT_EQ(fitsSomehow(problem), std::nullopt);

  problem = diamond();
  Placement wrong;
  ExactOptions options;
  options.start = &wrong;
  EXPECT_THAT(exactPlacement(problem, options).error,
              HasSubstr("the placement to start from is not valid"));
  problem.graph.edges.push_back({3, 0, 0});
  EXPECT_THAT(exactPlacement(problem).error, HasSubstr("cycle"));
}

TEST(Exact, TheSameInputGivesTheSameOutput) {
  for (uint32_t seed : {2u, 4u, 16u}) {
    Problem problem;
    ASSERT_TRUE(drawTight(seed, problem));
    ExactResult one = solve(problem), two = solve(problem);
    ASSERT_TRUE(one.placement && two.placement);
    EXPECT_EQ(one.nodes, two.nodes);
    EXPECT_EQ(one.placement->device, two.placement->device);
    EXPECT_EQ(one.placement->startNs, two.placement->startNs);
  }
}

/// One of a thousand small graphs: what fits it is found late.
TEST(Exact, PlaceGoesOnWhileItHasNoAnswer) {
  Problem problem;
  ASSERT_TRUE(drawTight(983, problem));
  PlaceResult found = place(problem, {});
  ASSERT_TRUE(found.placement) << found.error;
  EXPECT_THAT(verify(problem, *found.placement), IsEmpty());
}

} // namespace
