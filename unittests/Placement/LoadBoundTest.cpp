//===- LoadBoundTest.cpp - Certificates of the largest load -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/LoadBound.h"
#include "TestProblems.h"

#include "Bounds/CutFlow.h"
#include "Bounds/Shares.h"
#include "Model/Random.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

TEST(Shares, OfTwoKindsByHand) {
  bounds::Shares shares;
  shares.devices = {2};
  shares.share = {1, 0.5, 1.5};
  EXPECT_NEAR(shares.price(), 1.5, 1e-12);
  // A second kind on which everything takes three times as long: of 3 work, 2
  // devices and a third of one.
  shares.devices = {2, 1};
  shares.share = {1, 3, 0.5, 1.5, 1.5, 4.5};
  EXPECT_NEAR(shares.price(), 3 / (2 + 1.0 / 3), 1e-5);
  // What only the second can do fills it.
  shares.share = {bounds::Shares::impossible, 3, 0.5, 1.5, 1.5, 4.5};
  EXPECT_NEAR(shares.price(), 3, 1e-5);
  shares.share.back() = shares.share[4] = bounds::Shares::impossible;
  EXPECT_EQ(shares.price(), bounds::Shares::impossible);
}

/// Against all sets.
TEST(CutFlow, FindsTheLeastSet) {
  baechi::placement::Random random(3);
  for (int round = 0; round < 60; ++round) {
    constexpr int32_t vertices = 7;
    std::array<double, vertices> weight;
    for (double &w : weight)
      w = random.below(20);
    std::vector<std::vector<int32_t>> users(8);
    std::vector<bounds::CutFlow::Net> nets;
    for (auto &of : users) {
      int32_t from = random.below(vertices);
      for (int32_t v = 0; v < vertices; ++v)
        if (v != from && random.oneIn(3))
          of.push_back(v);
      nets.push_back(
          {from, of, double(random.below(30)), double(random.below(30))});
    }
    bounds::CutFlow flow(vertices, nets);
    int32_t root = random.below(vertices);
    double least = 1e9;
    for (unsigned set = 0; set < 1u << vertices; ++set) {
      auto has = [&](int32_t v) { return (set >> v & 1) != 0; };
      if (!has(root))
        continue;
      double sum = 0;
      for (int32_t v = 0; v < vertices; ++v)
        sum += has(v) ? weight[v] : 0;
      for (const bounds::CutFlow::Net &net : nets) {
        bool inside = false, outside = false;
        for (int32_t user : net.users)
          (has(user) ? inside : outside) = true;
        if (has(net.producer) && outside)
          sum += 2 * net.send;
        if (!has(net.producer) && inside)
          sum += 2 * net.fetch;
      }
      least = std::min(least, sum);
    }
    int64_t steps = 1'000'000;
    EXPECT_NEAR(flow.least(root, weight, 2, steps), least, 1e-6);
    EXPECT_LT(steps, 1'000'000);
    // Cut short it stays below.
    steps = 40;
    EXPECT_LE(flow.least(root, weight, 2, steps), least + 1e-6);
  }
}

/// A chain of \p count operators on \p devices and a stage ten times slower.
Problem stagedChain(int count, int64_t time, int64_t bytes, int32_t devices) {
  Problem problem;
  problem.machine = makeMachine(devices + 1, int64_t(1) << 40, {0, 1000});
  problem.machine.devices.back().kind = "cpu";
  problem.machine.stagedThrough = "cpu";
  for (int i = 0; i < count; ++i) {
    problem.graph.ops.push_back(
        makeOp("op" + std::to_string(i), time, {bytes}));
    problem.graph.ops.back().timeNs.emplace_back("cpu", 10 * time);
    if (i > 0)
      problem.graph.edges.push_back({i - 1, 0, i});
  }
  return problem;
}

TEST(LoadBound, CountsSlowDevicesByTheirSpeed) {
  Problem problem = stagedChain(210, 100, 0, 2);
  EXPECT_EQ(bounds::workBySpeed(Model(problem)), 10000);
}

TEST(LoadBound, DearTensorsAreNotCut) {
  // Sending one takes longer than doing everything on one device.
  Problem problem = stagedChain(6, 100, 1000, 3);
  EXPECT_EQ(bounds::maxLoadBound(Model(problem)).value, 600);
  // The middle one is cheap: two halves, one of which sends.
  problem.graph.ops[2].outputs = {Output(20)};
  EXPECT_EQ(bounds::maxLoadBound(Model(problem)).value, 320);
}

TEST(LoadBound, TransfersAroundAnOperator) {
  // Each of four tensors is cheap enough to cut, not all four together.
  Problem problem = stagedChain(5, 100, 0, 3);
  problem.graph.edges.clear();
  for (int i = 1; i < 5; ++i) {
    problem.graph.ops[i].outputs = {Output(80)};
    problem.graph.edges.push_back({i, 0, 0});
  }
  // 0 and two others, fetching two: 460; with three: 480; all five: 500.
  EXPECT_EQ(bounds::maxLoadBound(Model(problem)).value, 420);
}

TEST(LoadBound, LargeOperatorsDoNotShare) {
  Problem problem = stagedChain(7, 100, 0, 3);
  problem.graph.edges.clear();
  problem.machine = makeMachine(3);
  // Seven of 100 on three devices: three on one of them.
  EXPECT_EQ(bounds::maxLoadBound(Model(problem)).value, 300);
}

TEST(LoadBound, MemoryKeepsWorkAway) {
  // The fast device holds a quarter of the parameters.
  Problem problem = stagedChain(8, 100, 0, 1);
  for (Operator &op : problem.graph.ops)
    op.resident = 1000;
  problem.machine.devices[0].memory = 2000;
  EXPECT_EQ(bounds::maxLoadBound(Model(problem)).value, 6000);
}

} // namespace
