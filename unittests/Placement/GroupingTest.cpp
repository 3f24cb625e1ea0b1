//===- GroupingTest.cpp - Grouping and coarse models ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Grouping.h"
#include "Grouping/Clusters.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <set>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// A coarse model has a topological order of all its nodes: it has no cycle.
bool isAcyclic(const Model &model) {
  return static_cast<int32_t>(model.order.size()) == model.numNodes;
}

TEST(Fusion, KeepsOutOfCycles) {
  // a -> b -> c and a -> c, with a and c in one group: contracting a and c
  // would put b before and after the result.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 1), makeOp("b", 1), makeOp("c", 1)};
  problem.graph.ops[0].group = problem.graph.ops[2].group = "g";
  problem.graph.edges = {{0, 0, 1}, {1, 0, 2}, {0, 0, 2}};
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  grouping::fuse(model, coarsening);
  EXPECT_EQ(coarsening.numNodes, 3);
}

TEST(Fusion, MakesNoCycleOutOfTwoContractions) {
  // Groups {a, d} and {b, c} with a -> d, b -> c, a -> c, b -> d: either edge
  // may be contracted, both would make a cycle.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 1), makeOp("b", 1), makeOp("c", 1),
                       makeOp("d", 1), makeOp("work", 1000000)};
  problem.graph.ops[0].group = problem.graph.ops[3].group = "g";
  problem.graph.ops[1].group = problem.graph.ops[2].group = "h";
  problem.graph.edges = {{0, 0, 3}, {1, 0, 2}, {0, 0, 2}, {1, 0, 3}};
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  grouping::fuse(model, coarsening);
  EXPECT_EQ(coarsening.numNodes, 4);
  EXPECT_TRUE(isAcyclic(grouping::coarsen(model, coarsening)));
}

TEST(Fusion, MakesNobodyWaitLong) {
  // Contracting a and b would hold up c for all of b.
  Problem problem = diamond();
  problem.graph.ops[0].group = problem.graph.ops[1].group = "g";
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  grouping::fuse(model, coarsening);
  EXPECT_EQ(coarsening.numNodes, 4);
}

TEST(Fusion, FusesSeveralUsersAndSources) {
  // a has two users and d two sources; in one group all four become one.
  Problem problem = diamond();
  for (Operator &op : problem.graph.ops)
    op.group = "g";
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  grouping::fuse(model, coarsening);
  EXPECT_EQ(coarsening.numNodes, 1);
}

TEST(Fusion, RandomGraphsStayAcyclic) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    Model model(problem);
    grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
    grouping::coplace(model, coarsening);
    grouping::fuse(model, coarsening);
    Model coarse = grouping::coarsen(model, coarsening);
    ASSERT_TRUE(isAcyclic(coarse)) << "seed " << seed;
    // Nothing is lost: work and resident bytes stay what they were.
    int64_t fineTime = 0, coarseTime = 0;
    for (int32_t i = 0; i < model.numNodes; ++i)
      fineTime += model.timeOf(i, 0);
    for (int32_t i = 0; i < coarse.numNodes; ++i)
      coarseTime += coarse.timeOf(i, 0);
    EXPECT_EQ(fineTime, coarseTime);
  }
}

TEST(Clusters, RespectTheBounds) {
  // A chain of equal operators with dear transfers: without a bound all of it
  // would be one cluster.
  Problem problem;
  problem.machine = makeMachine(4);
  for (int32_t i = 0; i < 100; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {1 << 20}));
    if (i > 0)
      problem.graph.edges.push_back({i - 1, 0, i});
  }
  Model model(problem);
  grouping::ClusterOptions options;
  options.workShare = 0.25;
  Random random;
  int32_t count = 0;
  auto clusterOf = grouping::clusterUnits(model, options, random, count);
  EXPECT_GE(count, 4);
  std::vector<int> size(count, 0);
  for (int32_t c : clusterOf)
    EXPECT_LE(++size[c], 25);
}

TEST(Clusters, PinsStayApart) {
  Problem problem = diamond(/*work=*/1, /*bytes=*/1 << 20);
  problem.graph.ops[1].pin = "d0";
  problem.graph.ops[2].pin = "d1";
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  grouping::coplace(model, coarsening);
  EXPECT_NE(coarsening.unit[model.unit[1]], coarsening.unit[model.unit[2]]);
}

TEST(Coarsen, KeepsTensorsThatLeave) {
  Problem problem = diamond();
  Model model(problem);
  grouping::Coarsening coarsening = grouping::Coarsening::identity(model);
  coarsening.node = {0, 0, 1, 2};
  coarsening.unit = {0, 0, 1, 2};
  coarsening.numNodes = coarsening.numUnits = 3;
  Model coarse = grouping::coarsen(model, coarsening);
  // a's tensor to c and b's to d leave the fused node, c's goes to d.
  EXPECT_EQ(coarse.tensorsOf(coarsening.node[0]).second -
                coarse.tensorsOf(coarsening.node[0]).first,
            2);
  EXPECT_EQ(coarse.timeOf(coarsening.node[0], 0), 1010);
}

} // namespace
