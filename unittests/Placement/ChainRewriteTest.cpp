//===- ChainRewriteTest.cpp - Checkpoints of chains -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Chains.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// A chain of layers forwards and backwards. A backward operator reads what its
/// forward one has left, and what the one before it has made.
struct Layers {
  Layers(std::mt19937 &random, int32_t layers, bool isEven)
      : ns(layers), bytes(layers), back(layers + 1, 0) {
    auto draw = [&](int64_t most) {
      return isEven ? 1 : 1 + static_cast<int64_t>(random() % most);
    };
    for (int32_t i = 0; i < layers; ++i) {
      ns[i] = draw(9);
      bytes[i] = draw(4);
      back[i] = draw(4);
    }
  }

  int32_t count() const { return static_cast<int32_t>(ns.size()); }

  Graph graph() const {
    Graph graph;
    for (int32_t i = 0; i < count(); ++i) {
      graph.ops.push_back(makeOp("f" + std::to_string(i), ns[i], {bytes[i]}));
      if (i > 0)
        graph.edges.push_back({i - 1, 0, i});
    }
    for (int32_t i = count(); i-- > 0;) {
      auto op = static_cast<int32_t>(graph.ops.size());
      graph.ops.push_back(makeOp("b" + std::to_string(i), 2, {back[i]}));
      graph.edges.push_back({i, 0, op});
      if (i + 1 < count())
        graph.edges.push_back({op - 1, 0, op});
    }
    graph.ops.back().result = true;
    return graph;
  }

  std::vector<int64_t> ns, bytes; ///< of forward operators
  std::vector<int64_t> back;      ///< bytes of backward ones, and 0 at the end
};

/// The least time of the forward operators within a memory, where what is left
/// for later stays until it is read: the dynamic program of Griewank and
/// Walther (Revolve, ACM TOMS 2000) for layers that differ.
class Optimum {
public:
  explicit Optimum(const Layers &layers) : layers(layers) {}

  static constexpr int64_t never = int64_t(1) << 40;

  /// Of the layers from \p from to before \p to, whose input is there and not
  /// counted, within \p room.
  int64_t least(int32_t from, int32_t to, int64_t room) {
    if (from == to)
      return 0;
    if (room <= 0)
      return never;
    auto [known, isNew] = memo.try_emplace({from, to, room}, never);
    if (!isNew)
      return known->second;
    int64_t best = never, ns = 0;
    for (int32_t k = from; k < to; ++k) {
      int64_t both = layers.bytes[k] + (k > from ? layers.bytes[k - 1] : 0);
      if (both + layers.back[to] > room)
        break;
      ns += layers.ns[k];
      if (layers.bytes[k] + layers.back[k] + layers.back[k + 1] > room)
        continue;
      best = std::min(best, ns + least(k + 1, to, room - layers.bytes[k]) +
                                least(from, k, room));
    }
    return memo[{from, to, room}] = std::min(best, never);
  }

private:
  const Layers &layers;
  std::map<std::tuple<int32_t, int32_t, int64_t>, int64_t> memo;
};

RecomputeOptions allOf(const Graph &graph) {
  return {"", std::vector<uint8_t>(graph.ops.size(), 1)};
}

/// The order holds what it says, runs every operator, and none again that may
/// not, or after what waits for it.
void expectRight(const Graph &graph, const RecomputeOptions &options,
                 const RepeatedOrder &order, int64_t bytes) {
  std::vector<int32_t> times(graph.ops.size(), 0);
  int64_t again = 0;
  for (int32_t op : order.runs) {
    if (times[op]++ > 0) {
      again += *timeOn(graph.ops[op], "");
      EXPECT_TRUE(options.mayRepeat[op]) << graph.ops[op].name;
    }
    for (const Edge &edge : graph.edges) {
      if (edge.to == op)
        EXPECT_GT(times[edge.from], 0) << graph.ops[op].name;
      if (edge.from == op && edge.output < 0)
        EXPECT_EQ(times[edge.to], 0) << graph.ops[op].name;
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 0), 0);
  EXPECT_EQ(again, order.againNs);
  std::optional<int64_t> peak = peakOfRuns(graph, order.runs);
  ASSERT_TRUE(peak);
  EXPECT_EQ(*peak, order.peakBytes);
  EXPECT_LE(*peak, bytes);
}

TEST(ChainRewrites, ChainsRunAgainAsLittleAsTheDynamicProgram) {
  std::mt19937 random(3);
  for (int32_t round = 0; round < 60; ++round) {
    Layers layers(random, 13 + static_cast<int32_t>(random() % 20),
                  round % 2 == 0);
    Graph graph = layers.graph();
    RecomputeOptions options = allOf(graph);
    std::vector<RepeatedOrder> bases = leanOrdersOf(graph, options);
    int64_t floor = memoryFloor(graph).bytes, peak = bases.front().peakBytes;
    int64_t once = 0;
    for (int64_t ns : layers.ns)
      once += ns;
    ChainRewrites chains(graph, options, bases);
    for (int64_t bytes :
         {floor, floor + (peak - floor) / 8, (floor + peak) / 2, peak - 1}) {
      int64_t least = Optimum(layers).least(0, layers.count(), bytes);
      std::optional<RepeatedOrder> found = chains.within(bytes);
      if (least >= Optimum::never)
        continue;
      ASSERT_TRUE(found) << layers.count() << " layers in " << bytes;
      expectRight(graph, options, *found, bytes);
      // Less where what is left goes before it is read.
      EXPECT_LE(found->againNs, least - once)
          << layers.count() << " layers in " << bytes;
    }
  }
}

/// Layers of two operators each, with a parameter that is updated in place, a
/// mask that is drawn once and read by all, and a skip to every other layer.
Graph trainingStep(int32_t layers) {
  Graph graph;
  auto add = [&](const std::string &name, int64_t ns, int64_t bytes) {
    graph.ops.push_back(makeOp(name, ns, {bytes}));
    return static_cast<int32_t>(graph.ops.size()) - 1;
  };
  auto argument = [&](const std::string &name, int64_t bytes) {
    int32_t op = add(name, 0, 0);
    graph.ops[op].resident = bytes;
    return op;
  };
  int32_t x = argument("x", 10);
  std::vector<int32_t> weights, linear, out{x};
  for (int32_t i = 0; i < layers; ++i)
    weights.push_back(argument("w" + std::to_string(i), 5));
  int32_t mask = add("mask", 1, 3);
  graph.edges.push_back({x, 0, mask});
  for (int32_t i = 0; i < layers; ++i) {
    linear.push_back(add("linear" + std::to_string(i), 100, 10));
    graph.edges.push_back({out.back(), 0, linear[i]});
    graph.edges.push_back({weights[i], 0, linear[i]});
    out.push_back(add("relu" + std::to_string(i), 10, 10));
    graph.edges.push_back({linear[i], 0, out.back()});
    graph.edges.push_back({mask, 0, out.back()});
    if (i % 2 == 1 && i > 1)
      graph.edges.push_back({out[i - 1], 0, out.back()});
  }
  int32_t gradient = add("loss", 5, 10);
  graph.edges.push_back({out.back(), 0, gradient});
  for (int32_t i = layers; i-- > 0;) {
    int32_t masked = add("relu_back" + std::to_string(i), 10, 10);
    graph.edges.push_back({gradient, 0, masked});
    graph.edges.push_back({linear[i], 0, masked});
    graph.edges.push_back({mask, 0, masked});
    int32_t back = add("linear_back" + std::to_string(i), 100, 10);
    graph.edges.push_back({masked, 0, back});
    graph.edges.push_back({weights[i], 0, back});
    int32_t update = add("update" + std::to_string(i), 50, 0);
    graph.edges.push_back({masked, 0, update});
    graph.edges.push_back({out[i], 0, update});
    graph.edges.push_back({weights[i], 0, update});
    // It overwrites what these read.
    graph.edges.push_back({linear[i], -1, update});
    graph.edges.push_back({back, -1, update});
    gradient = back;
  }
  graph.ops.push_back(makeOp("end", 1, {1}));
  graph.edges.push_back(
      {gradient, 0, static_cast<int32_t>(graph.ops.size()) - 1});
  graph.ops.back().result = true;
  return graph;
}

TEST(ChainRewrites, StepsWithUpdatesAndSideInputsAreChains) {
  constexpr int32_t layers = 40;
  Graph graph = trainingStep(layers);
  RecomputeOptions options = allOf(graph);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    if (graph.ops[op].resident > 0 || graph.ops[op].name == "mask" ||
        graph.ops[op].name.starts_with("update"))
      options.mayRepeat[op] = 0;
  std::vector<RepeatedOrder> bases = leanOrdersOf(graph, options);
  ChainRewrites chains(graph, options, bases);
  int64_t floor = memoryFloor(graph).bytes, peak = bases.front().peakBytes;
  int64_t last = 0;
  for (int64_t part : {9, 7, 5, 4, 3}) {
    int64_t bytes = floor + (peak - floor) * part / 10;
    std::optional<RepeatedOrder> found = chains.within(bytes);
    ASSERT_TRUE(found) << bytes;
    expectRight(graph, options, *found, bytes);
    EXPECT_GE(found->againNs, last);
    last = found->againNs;
    // Three tenths have room for far more than the root of the layers: no
    // layer runs more than twice (Chen et al., 2016).
    EXPECT_LE(found->againNs, layers * 110);
  }
}

TEST(ChainRewrites, WhatMayNotRunAgainStays) {
  std::mt19937 random(5);
  Graph graph = Layers(random, 30, /*isEven=*/true).graph();
  RecomputeOptions options = allOf(graph);
  for (int32_t op = 0; op < 30; op += 3)
    options.mayRepeat[op] = 0;
  std::vector<RepeatedOrder> bases = leanOrdersOf(graph, options);
  std::optional<RepeatedOrder> found =
      ChainRewrites(graph, options, bases).within(14);
  ASSERT_TRUE(found);
  expectRight(graph, options, *found, 14);
  options.mayRepeat.assign(graph.ops.size(), 0);
  EXPECT_FALSE(ChainRewrites(graph, options, bases).within(14));
}

TEST(ChainRewrites, GraphsThatAreNoChainsHaveNone) {
  Problem problem = diamond();
  RecomputeOptions options = allOf(problem.graph);
  std::vector<RepeatedOrder> bases = leanOrdersOf(problem.graph, options);
  int64_t peak = bases.front().peakBytes;
  EXPECT_FALSE(ChainRewrites(problem.graph, options, bases).within(peak - 1));
  EXPECT_FALSE(ChainRewrites(Graph(), {}, {}).within(100));
}

} // namespace
