//===- SpillTest.cpp - Tensors that wait in a pool ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Spill.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Schedule/Verify.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

constexpr int64_t ample = int64_t(1) << 40;

SpillOptions optionsOf(const Graph &graph, Link link = {1, 1000}) {
  SpillOptions options;
  options.out = options.in = link;
  options.poolBytes = ample;
  options.mayMove.assign(graph.ops.size(), 0);
  options.nextValue.assign(graph.ops.size(), {});
  options.staysHere.assign(graph.ops.size(), 0);
  return options;
}

std::vector<RepeatedOrder> basesOf(const Graph &graph) {
  return leanOrdersOf(graph, {"", {}});
}

/// The graph with an operator on the pool for each tensor that it makes, and
/// where and when everything runs: what `--baechi-fit-memory` writes.
void expectValid(const Graph &graph, const SpillOptions &options,
                 const SpillPlan &plan, int64_t bytes) {
  Problem problem{graph, makeMachine(2, bytes, options.out)};
  problem.machine.devices[1] = {"pool", kPool, ample};
  problem.machine.links[2] = options.in;
  Graph &placed = problem.graph;
  Placement placement;
  placement.device.assign(graph.ops.size(), 0);
  placement.startNs = plan.startNs;
  placement.makespanNs = plan.makespanNs;
  std::vector<int32_t> at(graph.ops.size());
  for (size_t p = 0; p < plan.order.size(); ++p)
    at[plan.order[p]] = static_cast<int32_t>(p);
  std::map<std::pair<int32_t, int32_t>, int32_t> updates; ///< argument of
  for (int32_t argument : plan.inPool) {
    placement.device[argument] = 1;
    placed.ops[argument].group.reset();
    TensorName next = options.nextValue[argument];
    if (next.op >= 0) {
      updates[{next.op, next.output}] = argument;
      Output &output = placed.ops[next.op].outputs[next.output];
      output.memory = output.copy;
      std::erase_if(placed.edges, [&](const Edge &edge) {
        return edge.output < 0 && edge.to == next.op;
      });
    }
  }
  std::map<std::pair<int32_t, int32_t>,
           std::vector<std::pair<int32_t, TensorName>>>
      versions;
  TensorName before, latest;
  for (const Stay &stay : plan.stays) {
    if (!(stay.tensor == before))
      latest = before = stay.tensor;
    const Output tensor = graph.ops[stay.tensor.op].outputs[stay.tensor.output];
    auto update = updates.find({stay.tensor.op, stay.tensor.output});
    if (stay.outStartNs >= 0)
      placement.transfers.push_back({stay.tensor.op, stay.tensor.output, 0, 1,
                                     stay.outStartNs, stay.outEndNs});
    if (stay.stashStartNs >= 0) {
      Operator stash = makeOp("stash", 0, {});
      stash.timeNs = {{kPool, stay.stashNs}};
      stash.outputs = {Output(tensor.bytes, tensor.copy, tensor.copy)};
      auto id = static_cast<int32_t>(placed.ops.size());
      if (update != updates.end()) {
        stash.outputs.front().memory = 0;
        for (const Edge &edge : graph.edges)
          if (edge.from == update->second && edge.output >= 0)
            placed.edges.push_back({edge.to, -1, id});
      }
      stash.result = placed.ops[stay.tensor.op].result;
      placed.ops[stay.tensor.op].result = false;
      placed.ops.push_back(stash);
      placed.edges.push_back({latest.op, latest.output, id});
      placement.device.push_back(1);
      placement.startNs.push_back(stay.stashStartNs);
      latest = {id, 0};
    }
    if (stay.use < 0)
      continue;
    placement.transfers.push_back(
        {latest.op, latest.output, 1, 0, stay.inStartNs, stay.inEndNs});
    versions[{stay.tensor.op, stay.tensor.output}].emplace_back(stay.use,
                                                                latest);
  }
  for (Edge &edge : placed.edges) {
    auto found = versions.find({edge.from, edge.output});
    if (found == versions.end() ||
        edge.to >= static_cast<int32_t>(graph.ops.size()))
      continue;
    for (auto [use, name] : found->second)
      if (use <= at[edge.to])
        edge = {name.op, name.output, edge.to};
  }
  std::vector<DeviceUsage> usage;
  for (const std::string &what : verify(problem, placement, &usage))
    ADD_FAILURE() << what;
  EXPECT_LE(usage[0].peakBytes, plan.peakBytes);
  EXPECT_LE(plan.peakBytes, bytes);
}

/// Forward operators, and backward ones that each read what theirs has left.
Graph trainingChain(int32_t layers, int64_t ns, int64_t bytes) {
  Graph graph;
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(makeOp("f" + std::to_string(i), ns, {bytes}));
    if (i > 0)
      graph.edges.push_back({i - 1, 0, i});
  }
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("b" + std::to_string(i), 2 * ns, {bytes}));
    graph.edges.push_back({i, 0, id});
    if (i + 1 < layers)
      graph.edges.push_back({id - 1, 0, id});
  }
  graph.ops.back().result = true;
  return graph;
}

TEST(Spill, WhatTheWorkHidesCostsNothing) {
  Graph graph = trainingChain(20, 1'000'000, 5000);
  SpillOptions options = optionsOf(graph);
  auto plan = spillWithin(graph, options, basesOf(graph), 8 * 5000);
  ASSERT_TRUE(plan);
  expectValid(graph, options, *plan, 8 * 5000);
  EXPECT_EQ(plan->makespanNs, 60'000'000);
  EXPECT_GT(plan->outBytes, 0);
}

TEST(Spill, NothingMovesWhereAllHasRoom) {
  Graph graph = trainingChain(20, 1000, 5000);
  SpillOptions options = optionsOf(graph);
  auto bases = basesOf(graph);
  auto plan = spillWithin(graph, options, bases, bases.front().peakBytes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->stays.empty());
  EXPECT_EQ(plan->makespanNs, 60'000);
}

TEST(Spill, TheFloorIsReachedAndNotPassed) {
  Graph graph = trainingChain(20, 1000, 5000);
  SpillOptions options = optionsOf(graph);
  int64_t floor = spillFloor(graph, options).bytes;
  auto plan = spillWithin(graph, options, basesOf(graph), floor);
  ASSERT_TRUE(plan);
  expectValid(graph, options, *plan, floor);
  EXPECT_FALSE(spillWithin(graph, options, basesOf(graph), floor - 1));
}

/// Layers with a parameter each, which an operator at the end updates in place.
Graph withParameters(int32_t layers, SpillOptions &options) {
  Graph graph;
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(makeOp("w" + std::to_string(i), 0, {}));
    graph.ops.back().outputs = {Output(9000, 0, 9000)};
    graph.ops.back().resident = 9000;
  }
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(makeOp("f" + std::to_string(i), 50'000, {1000}));
    graph.edges.push_back({i, 0, layers + i});
    if (i > 0)
      graph.edges.push_back({layers + i - 1, 0, layers + i});
  }
  options = optionsOf(graph);
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("u" + std::to_string(i), 50'000, {}));
    graph.ops.back().outputs = {Output(9000, 0, 9000)};
    graph.ops.back().result = true;
    graph.ops[i].group = graph.ops.back().group = "w" + std::to_string(i);
    graph.edges.push_back({layers + i, 0, id});
    graph.edges.push_back({i, 0, id});
    graph.edges.push_back({layers + i, -1, id});
  }
  std::vector<TensorName> next(graph.ops.size());
  options = optionsOf(graph);
  for (int32_t i = 0; i < layers; ++i) {
    int32_t update = 3 * layers - 1 - i;
    options.mayMove[i] = options.staysHere[update] = 1;
    options.nextValue[i] = {update, 0};
  }
  return graph;
}

TEST(Spill, ParametersLiveInThePool) {
  SpillOptions options;
  Graph graph = withParameters(10, options);
  auto bases = basesOf(graph);
  int64_t floor = spillFloor(graph, options).bytes;
  EXPECT_LT(floor, 10 * 9000);
  for (int64_t bytes : {floor, floor + 20'000, int64_t(80'000)}) {
    auto plan = spillWithin(graph, options, bases, bytes);
    ASSERT_TRUE(plan) << bytes;
    EXPECT_FALSE(plan->inPool.empty());
    expectValid(graph, options, *plan, bytes);
  }
}

TEST(Spill, WhatIsUpdatedInPlaceIsCountedOnce) {
  SpillOptions options;
  Graph graph = withParameters(10, options);
  auto bases = basesOf(graph);
  int64_t apart = spillFloor(graph, options).bytes;
  for (int32_t i = 0; i < 10; ++i)
    options.takeOvers.push_back({29 - i, 0, {i, 0}});
  std::sort(options.takeOvers.begin(), options.takeOvers.end(),
            [](const TakeOver &a, const TakeOver &b) { return a.op < b.op; });
  int64_t floor = spillFloor(graph, options).bytes;
  EXPECT_EQ(apart, 19'000);
  EXPECT_EQ(floor, 11'000);
  auto plan = spillWithin(graph, options, bases, floor);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->peakBytes, floor);
  EXPECT_FALSE(spillWithin(graph, options, bases, floor - 1));
}

TEST(Spill, WhatWaitsMayBeOverwritten) {
  // Each backward operator may write into its forward one, and the forward ones
  // into each other, though all are read later.
  Graph graph = trainingChain(6, 1000, 5000);
  SpillOptions options = optionsOf(graph);
  auto bases = basesOf(graph);
  EXPECT_EQ(spillFloor(graph, options).bytes, 15'000);
  for (int32_t i = 1; i < 12; ++i)
    options.takeOvers.push_back({i, 0, {i - 1, 0}});
  EXPECT_EQ(spillFloor(graph, options).bytes, 10'000);
  auto plan = spillWithin(graph, options, bases, 10'000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->peakBytes, 10'000);
}

TEST(Spill, TimesAreOfTheDeviceThatComputes) {
  Graph graph = trainingChain(5, 1000, 5000);
  for (Operator &op : graph.ops)
    op.timeNs = {{"cuda", 1}, {"host", 7000}};
  SpillOptions options = optionsOf(graph);
  options.kind = "host";
  auto plan =
      spillWithin(graph, options, leanOrdersOf(graph, {"host", {}}), ample);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->makespanNs, 10 * 7000);
}

TEST(Spill, RandomGraphsGiveValidPlans) {
  std::mt19937 random(11);
  auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int32_t plans = 0;
  for (int32_t round = 0; round < 300; ++round) {
    auto count = static_cast<int32_t>(draw(4, 40));
    Graph graph;
    for (int32_t op = 0; op < count; ++op) {
      bool isArgument = op < count / 4;
      int64_t bytes = draw(1, 90) * 64;
      graph.ops.push_back(
          makeOp("o" + std::to_string(op), isArgument ? 0 : draw(1, 9000), {}));
      graph.ops.back().outputs = {Output(bytes, isArgument ? 0 : bytes, bytes)};
      if (isArgument)
        graph.ops.back().resident = bytes;
      else
        graph.ops.back().scratch = draw(0, 3) * 64;
      std::vector<int32_t> from;
      for (int64_t k = draw(1, 3); !isArgument && op > 0 && k-- > 0;)
        from.push_back(static_cast<int32_t>(draw(0, op - 1)));
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      for (int32_t source : from)
        graph.edges.push_back({source, 0, op});
      graph.ops.back().result = !isArgument && draw(0, 5) == 0;
    }
    graph.ops.back().result = true;
    SpillOptions options = optionsOf(graph, {draw(0, 500), draw(100, 9000)});
    options.isShared = true;
    for (int32_t op = 0; op < count; ++op)
      options.mayMove[op] = graph.ops[op].resident > 0 && draw(0, 2) > 0;
    auto bases = basesOf(graph);
    int64_t floor = spillFloor(graph, options).bytes;
    int64_t bytes = draw(floor, std::max(floor, bases.front().peakBytes));
    auto plan = spillWithin(graph, options, bases, bytes);
    if (!plan)
      continue;
    ++plans;
    expectValid(graph, options, *plan, bytes);
    auto again = spillWithin(graph, options, bases, bytes);
    EXPECT_EQ(again->startNs, plan->startNs);
  }
  EXPECT_GT(plans, 200);
}

} // namespace
