//===- SegmentsTest.cpp - What must happen between two operators -*- C++ -*-==//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/Bounds.h"
#include "TestProblems.h"

#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Baechi/Placement/Session/Place.h"
#include "Model/Random.h"

#include <gtest/gtest.h>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

constexpr const char *ours = "work and transfers between critical operators";

/// u, two branches of 50, v; every transfer takes as long.
Problem block(int64_t transfer, int32_t devices = 2) {
  Problem problem;
  problem.machine = makeMachine(devices, 1000, {transfer, 1'000'000'000});
  problem.graph.ops = {makeOp("u", 5, {0}), makeOp("x", 50, {0}),
                       makeOp("y", 50, {0}), makeOp("v", 5, {0})};
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {1, 0, 3}, {2, 0, 3}};
  return problem;
}

bounds::Bound boundOf(const Problem &problem) {
  return bounds::makespanBound(Model(problem));
}

TEST(Segments, WhatIsNotMovedIsOnOneDevice) {
  Problem problem = block(300);
  EXPECT_EQ(boundOf(problem).value, 110);
  EXPECT_EQ(boundOf(problem).name, ours);
  EXPECT_EQ(exactPlacement(problem).valueNs, 110);
}

/// u and x on one device, y and v on the other: each branch is moved once.
TEST(Segments, EndsMayBeOnTwoDevices) {
  for (int32_t devices : {2, 3}) {
    Problem problem = block(20, devices);
    EXPECT_EQ(boundOf(problem).value, 80);
    EXPECT_EQ(boundOf(problem).name, ours);
    EXPECT_EQ(exactPlacement(problem).valueNs, 80);
  }
}

TEST(Segments, FreeTransfersSayNothing) {
  EXPECT_EQ(boundOf(block(0)).value, 60);
  EXPECT_EQ(boundOf(block(0)).name, "critical path");
  EXPECT_EQ(boundOf(block(300, 1)).value, 110);
  EXPECT_EQ(boundOf(block(300, 1)).name, "work over devices");
}

/// Who asks for no search gets an answer at once.
TEST(Segments, AreNotLookedAtWithoutABudget) {
  PlaceOptions options;
  options.placer = "single";
  EXPECT_EQ(place(block(300), options).lowerBoundNs, 110);
  options.budget = Budget::none();
  EXPECT_EQ(place(block(300), options).lowerBoundNs, 60);
}

/// A signal waits for the link's latency, too.
TEST(Segments, ControlEdgesCount) {
  Problem problem = block(300);
  for (Edge &edge : problem.graph.edges)
    edge.output = -1;
  EXPECT_EQ(boundOf(problem).value, 110);
  EXPECT_EQ(boundOf(problem).name, ours);
}

/// Blocks in a row, of random times and transfers, on links of two kinds.
TEST(Segments, NeverAboveTheOptimum) {
  int raised = 0, tight = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    baechi::placement::Random random(seed);
    Problem problem;
    problem.machine =
        makeMachine(2 + random.below(2), 1 << 20, {random.below(60), 1'000'000},
                    static_cast<LinkModel>(random.below(4)));
    for (auto &link : problem.machine.links)
      if (link && random.oneIn(3))
        link->latencyNs *= 2;
    auto &ops = problem.graph.ops;
    auto add = [&](int64_t time) {
      ops.push_back(makeOp("op" + std::to_string(ops.size()), time,
                           {random.below(40'000)}));
      return static_cast<int32_t>(ops.size() - 1);
    };
    int32_t last = add(random.below(20));
    while (ops.size() < 8) {
      std::vector<int32_t> ends;
      for (int64_t k = 1 + random.below(3); k > 0; --k) {
        ends.push_back(add(10 + random.below(60)));
        problem.graph.edges.push_back({last, 0, ends.back()});
      }
      last = add(random.below(20));
      for (int32_t end : ends)
        problem.graph.edges.push_back({end, 0, last});
    }
    ExactResult best = exactPlacement(problem);
    ASSERT_EQ(best.status, ExactStatus::Optimal) << seed;
    bounds::Bound bound = boundOf(problem);
    EXPECT_LE(bound.value, best.valueNs) << seed;
    raised += bound.name == ours;
    tight += bound.name == ours && bound.value == best.valueNs;
  }
  EXPECT_GE(raised, 50);
  EXPECT_GE(tight, 20);
}

} // namespace
