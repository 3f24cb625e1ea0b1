//===- BaselinesTest.cpp - What placers are compared with -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Registry.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A chain of operators of the given times; each has a result of a byte.
Problem chain(const std::vector<int64_t> &times, int32_t devices) {
  Problem problem;
  problem.machine = makeMachine(devices);
  for (int64_t time : times) {
    auto id = static_cast<int32_t>(problem.graph.ops.size());
    problem.graph.ops.push_back(makeOp("op" + std::to_string(id), time, {1}));
    if (id > 0)
      problem.graph.edges.push_back({id - 1, 0, id});
  }
  return problem;
}

/// What a placer proposes without grouping.
PlaceResult proposed(const Problem &problem, const std::string &placer) {
  PlaceOptions options = onlyPlacer(placer, problem);
  options.grouping.clear();
  PlaceResult result = place(problem, options);
  EXPECT_TRUE(result.placement) << result.error;
  if (result.placement) {
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  }
  return result;
}

TEST(Registry, NamesAreUniqueAndDescribed) {
  for (const placers::Placer &placer : placers::allPlacers()) {
    EXPECT_EQ(placers::placerNamed(placer.name), &placer);
    EXPECT_FALSE(placer.description.empty()) << placer.name;
    EXPECT_TRUE(placer.propose) << placer.name;
  }
  EXPECT_EQ(placers::placerNamed("best"), nullptr);
  EXPECT_EQ(placerNames().size(), placers::allPlacers().size());
}

TEST(RoundRobin, DealsGroupsInTopologicalOrder) {
  Problem problem = chain({5, 5, 5, 5, 5, 5}, 3);
  EXPECT_THAT(proposed(problem, "round-robin").placement->device,
              ElementsAre(0, 1, 2, 0, 1, 2));
  problem.graph.ops[1].group = problem.graph.ops[2].group = "g";
  problem.graph.ops[4].pin = "d2";
  EXPECT_THAT(proposed(problem, "round-robin").placement->device,
              ElementsAre(0, 1, 1, 2, 2, 1));
}

/// a and g0 run beside b, g1, g2 and g3, which are most urgent and so on the
/// first device; without its group g is on both.
TEST(PostAdjusted, AGroupFollowsOneOfItsOperators) {
  Problem problem;
  problem.machine = makeMachine(2, 100'000, {1000, 1'000'000'000});
  problem.graph.ops = {makeOp("a", 5, {1}),    makeOp("b", 4, {1}),
                       makeOp("g0", 9, {1}),   makeOp("g1", 8, {1}),
                       makeOp("g2", 7, {900}), makeOp("g3", 1, {1})};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}, {3, 0, 4}, {4, 0, 5}};
  for (size_t i = 2; i < 6; ++i)
    problem.graph.ops[i].group = "g";
  Model model(problem);
  grouping::Coarsening none = grouping::Coarsening::identity(model);
  PlaceOptions options;
  std::vector<std::string> notes;
  placers::Proposals found =
      placers::placerNamed("post-adjusted")
          ->propose({problem, model, none, model, options, nullptr, notes});
  ASSERT_EQ(found.list.size(), 3u);
  // g0 has the most work, g2 the most bytes.
  EXPECT_EQ(found.list[0].variant, "work");
  EXPECT_THAT(found.list[0].device, ElementsAre(1, 0, 1, 1, 1, 1));
  EXPECT_EQ(found.list[1].variant, "memory");
  EXPECT_THAT(found.list[1].device, ElementsAre(1, 0, 0, 0, 0, 0));
  EXPECT_EQ(found.list[2].variant, "count");
  EXPECT_THAT(found.list[2].device, ElementsAre(1, 0, 0, 0, 0, 0));
}

TEST(PostAdjusted, PinsAndKindsHold) {
  Problem problem = chain({5, 5, 5, 5}, 3);
  problem.graph.ops[1].group = problem.graph.ops[2].group = "g";
  problem.graph.ops[2].pin = "d2";
  EXPECT_EQ(proposed(problem, "post-adjusted").placement->device[1], 2);
  problem.graph.ops[2].pin.reset();
  problem.machine.devices[0].kind = "cpu";
  for (Operator &op : problem.graph.ops)
    op.timeNs = {{"gpu", 5}};
  problem.graph.ops[0].timeNs = {{"cpu", 5}};
  EXPECT_THAT(proposed(problem, "post-adjusted").placement->device,
              ElementsAre(0, 1, 1, 1));
}

TEST(EvenSplit, CutsAChainByWork) {
  Problem problem = chain({5, 5, 5, 5, 5, 5, 5, 5}, 4);
  EXPECT_THAT(proposed(problem, "even-split").placement->device,
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  problem = chain({20, 5, 5, 5, 5, 20}, 3);
  EXPECT_THAT(proposed(problem, "even-split").placement->device,
              ElementsAre(0, 1, 1, 1, 1, 2));
}

TEST(EvenSplit, BackwardOperatorsFollow) {
  Problem problem = chain({5, 5, 5, 5, 10, 10, 10, 10}, 2);
  for (int32_t i = 4; i < 8; ++i) {
    problem.graph.ops[i].backward = true;
    problem.graph.ops[i].forward = 7 - i;
  }
  EXPECT_THAT(proposed(problem, "even-split").placement->device,
              ElementsAre(0, 0, 1, 1, 1, 1, 0, 0));
}

TEST(EvenSplit, CutsParametersByBytesAndOperatorsFollowThem) {
  // Four layers; the first has half of the bytes. The chain x reads them.
  Problem problem = chain({5, 5, 5, 5}, 2);
  for (int32_t i = 0; i < 4; ++i) {
    auto id = static_cast<int32_t>(problem.graph.ops.size());
    problem.graph.ops.push_back(makeOp("w" + std::to_string(i), 0, {}));
    problem.graph.ops.back().resident = i == 0 ? 300 : 100;
    problem.graph.ops.back().outputs.emplace_back(/*bytes=*/1000000, 0, 0);
    problem.graph.edges.push_back({id, 0, i});
  }
  Model model(problem);
  grouping::Coarsening single = grouping::Coarsening::identity(model);
  PlaceOptions options;
  std::vector<std::string> notes;
  placers::Proposals found =
      placers::placerNamed("even-split")
          ->propose({problem, model, single, model, options, nullptr, notes});
  ASSERT_EQ(found.list.size(), 2u);
  EXPECT_EQ(found.list[1].variant, "memory");
  EXPECT_THAT(found.list[1].device, ElementsAre(0, 1, 1, 1, 0, 1, 1, 1));
}

TEST(EvenSplit, TheNearestDeviceThatMay) {
  Problem problem = chain({5, 5, 5, 5}, 4);
  problem.machine.devices[1].kind = problem.machine.devices[2].kind = "cpu";
  for (Operator &op : problem.graph.ops)
    op.timeNs = {{"gpu", 5}};
  EXPECT_THAT(proposed(problem, "even-split").placement->device,
              ElementsAre(0, 0, 3, 3));
}

/// Puts every vertex that is free into the last part and keeps what it was
/// asked.
class LastPart : public Partitioner {
public:
  std::string name() const override { return "last part"; }
  std::string partition(const PartitionProblem &problem,
                        std::vector<int32_t> &part) const override {
    asked = problem;
    part = problem.fixed;
    std::replace(part.begin(), part.end(), -1,
                 static_cast<int32_t>(problem.share.size()) - 1);
    return "";
  }
  mutable PartitionProblem asked;
};

TEST(MinCut, AsksWithGroupsTrafficSharesAndPins) {
  // a feeds b and c, which are one group; transfers take 10 + bytes ns. The
  // second device is half as fast, the last runs nothing.
  Problem problem = chain({100, 100, 100, 100}, 3);
  problem.graph.ops[0].outputs = {Output(100)};
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {2, 0, 3}, {1, -1, 3}};
  problem.graph.ops[1].group = problem.graph.ops[2].group = "g";
  problem.graph.ops[3].pin = "d1";
  problem.machine.devices[1].kind = "slow";
  problem.machine.devices[2].kind = "none";
  for (Operator &op : problem.graph.ops)
    op.timeNs = {{"gpu", 100}, {"slow", 200}};
  LastPart partitioner;
  PlaceOptions options = onlyPlacer("min-cut", problem);
  options.partitioner = &partitioner;
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(result.placement->device, Each(1));
  const PartitionProblem &asked = partitioner.asked;
  EXPECT_THAT(asked.weight, ElementsAre(150, 300, 200));
  EXPECT_THAT(asked.fixed, ElementsAre(-1, -1, 1));
  ASSERT_EQ(asked.edges.size(), 2u);
  EXPECT_EQ(asked.edges[0].weight, 110);
  EXPECT_EQ(asked.edges[1].weight, 11);
  ASSERT_EQ(asked.share.size(), 2u);
  EXPECT_NEAR(asked.share[0], 0.66, 0.05);
}

TEST(MinCut, WhatMayNotStayGoesToItsNeighbours) {
  Problem problem = chain({100, 100, 100}, 3);
  problem.machine.devices[2].kind = "cpu";
  problem.graph.ops[0].pin = "d1";
  problem.graph.ops[1].timeNs = {{"gpu", 100}};
  LastPart partitioner;
  PlaceOptions options = onlyPlacer("min-cut", problem);
  options.partitioner = &partitioner;
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(result.placement->device, ElementsAre(1, 1, 2));
}

TEST(MinCut, LongTransfersToManyReadersDoNotOverflow) {
  // The check bounds what one transfer takes, not how often a tensor is read.
  // Operator 0 may not stay on d2; 40 of its readers are on d0, one on d1.
  Problem problem = chain({1}, 3);
  problem.machine.devices[2].kind = "cpu";
  problem.graph.ops[0].timeNs = {{"gpu", 1}};
  problem.graph.ops[0].outputs = {Output(int64_t(1) << 58, 0, 0)};
  for (int32_t i = 1; i <= 41; ++i) {
    problem.graph.ops.push_back(makeOp("reader", 1, {}));
    problem.graph.ops.back().pin = i == 41 ? "d1" : "d0";
    problem.graph.edges.push_back({0, 0, i});
  }
  // Without any operator that may use it d2 would be no part.
  problem.graph.ops.push_back(makeOp("free", 1, {}));
  ASSERT_THAT(check(problem), IsEmpty());
  LastPart partitioner;
  PlaceOptions options = onlyPlacer("min-cut", problem);
  options.partitioner = &partitioner;
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(result.placement->device[0], 0);
}

TEST(MinCut, WithoutAPartitionerItIsAnError) {
  PlaceOptions options = onlyPlacer("min-cut", diamond());
  options.partitioner = nullptr;
  EXPECT_THAT(place(diamond(), options).error,
              testing::StartsWith("min-cut: there is no graph partitioner"));
}

TEST(Annealing, BalancesIndependentWork) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int64_t time : {50, 40, 30, 20, 10, 10})
    problem.graph.ops.push_back(makeOp("op", time, {}));
  for (Objective objective : {Objective::Makespan, Objective::MaxLoad}) {
    PlaceOptions options = onlyPlacer("annealing", problem);
    options.objective = objective;
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_EQ(result.placement->makespanNs, 80);
    ASSERT_EQ(result.notes.size(), 1u);
    EXPECT_THAT(result.notes[0], HasSubstr("4000 evaluations on 6 groups"));
  }
}

TEST(Annealing, StaysOnOneDeviceWhereNoSplitPays) {
  Problem problem = diamond(/*work=*/10, /*bytes=*/100000);
  EXPECT_EQ(proposed(problem, "annealing").placement->makespanNs, 40);
}

TEST(Annealing, KeepsPinsGroupsKindsAndMemory) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceResult ample = proposed(problem, "annealing");
    ASSERT_TRUE(ample.placement);
    EXPECT_EQ(ample.placement->device,
              proposed(problem, "annealing").placement->device);
    int64_t peak = 0;
    for (const DeviceUsage &usage : ample.usage)
      peak = std::max(peak, usage.peakBytes);
    for (Device &device : problem.machine.devices)
      device.memory = peak * 7 / 10;
    PlaceResult tight = place(problem, onlyPlacer("annealing", problem));
    if (tight.placement)
      EXPECT_THAT(verify(problem, *tight.placement), IsEmpty());
    else
      EXPECT_THAT(tight.error, testing::ContainsRegex("fits? the memories"));
  }
}

} // namespace
