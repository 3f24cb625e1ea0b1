//===- RecomputeTest.cpp - Less memory for more work ----------------------===//
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
#include <queue>
#include <random>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// A chain of \p layers forward operators and the backward operators that run
/// it back; each reads what its forward operator has left. The last is kept.
Graph trainingChain(int32_t layers) {
  Graph graph;
  for (int32_t i = 0; i < layers; ++i) {
    graph.ops.push_back(makeOp("f" + std::to_string(i), 100, {1}));
    if (i > 0)
      graph.edges.push_back({i - 1, 0, i});
  }
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("b" + std::to_string(i), 200, {1}));
    graph.edges.push_back({i, 0, id});
    if (i + 1 < layers)
      graph.edges.push_back({id - 1, 0, id});
  }
  graph.ops.back().result = true;
  return graph;
}

RecomputeOptions allOf(const Graph &graph) {
  return {"", std::vector<uint8_t>(graph.ops.size(), 1)};
}

std::optional<RepeatedOrder> found(const Graph &graph, int64_t bytes,
                                   const RecomputeOptions &options) {
  std::vector<RepeatedOrder> bases = leanOrdersOf(graph, options);
  return recomputeWithin(graph, options, bases, bytes,
                         ChainRewrites(graph, options, bases));
}

int64_t workOf(const Graph &graph) {
  int64_t ns = 0;
  for (const Operator &op : graph.ops)
    ns += *timeOn(op, "");
  return ns;
}

/// What is claimed of an order holds: every operator runs, operands are there,
/// the bytes and the time are as they say.
void expectRight(const Graph &graph, const RepeatedOrder &order,
                 int64_t bytes) {
  std::vector<int32_t> times(graph.ops.size(), 0);
  int64_t ns = 0;
  for (int32_t op : order.runs) {
    ++times[op];
    ns += *timeOn(graph.ops[op], "");
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 0), 0);
  EXPECT_EQ(ns - workOf(graph), order.againNs);
  std::optional<int64_t> peak = peakOfRuns(graph, order.runs);
  ASSERT_TRUE(peak);
  EXPECT_LE(*peak, bytes);
}

/// The least time in which the kept results can be had within \p bytes: the
/// shortest way over all sets of tensors that can be there, for operators with
/// one result each. Nullopt: there is none.
std::optional<int64_t> leastTime(const Graph &graph, int64_t bytes) {
  using Set = uint32_t;
  auto count = static_cast<int32_t>(graph.ops.size());
  std::vector<Set> reads(count, 0);
  Set kept = 0;
  for (const Edge &edge : graph.edges)
    reads[edge.to] |= Set(1) << edge.from;
  for (int32_t op = 0; op < count; ++op)
    if (graph.ops[op].result)
      kept |= Set(1) << op;
  auto held = [&](Set live) {
    int64_t sum = 0;
    for (int32_t op = 0; op < count; ++op)
      if (live >> op & 1)
        sum += graph.ops[op].outputs[0].memory;
    return sum;
  };
  std::map<Set, int64_t> best{{0, 0}};
  std::priority_queue<std::pair<int64_t, Set>,
                      std::vector<std::pair<int64_t, Set>>, std::greater<>>
      queue;
  queue.emplace(0, 0);
  auto reach = [&](Set live, int64_t ns) {
    auto [known, isNew] = best.try_emplace(live, ns);
    if (!isNew && known->second <= ns)
      return;
    known->second = ns;
    queue.emplace(ns, live);
  };
  while (!queue.empty()) {
    auto [ns, live] = queue.top();
    queue.pop();
    if (best[live] < ns)
      continue;
    if ((live & kept) == kept)
      return ns;
    for (int32_t op = 0; op < count; ++op) {
      Set self = Set(1) << op;
      if (live & self)
        reach(live & ~self, ns);
      else if ((reads[op] & ~live) == 0 && held(live | self) <= bytes)
        reach(live | self, ns + *timeOn(graph.ops[op], ""));
    }
  }
  return std::nullopt;
}

TEST(Recompute, NothingIsRepeatedWhereItFits) {
  Graph graph = trainingChain(10);
  RecomputeOptions options = allOf(graph);
  RepeatedOrder lean = leanOrdersOf(graph, options).front();
  EXPECT_EQ(lean.againNs, 0);
  std::optional<RepeatedOrder> order = found(graph, lean.peakBytes, options);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->againNs, 0);
  EXPECT_EQ(order->peakBytes, lean.peakBytes);
}

TEST(Recompute, ShortChainsAreTheOptimum) {
  for (int32_t layers = 2; layers <= 8; ++layers) {
    Graph graph = trainingChain(layers);
    for (int64_t bytes = 3; bytes <= layers + 1; ++bytes) {
      std::optional<int64_t> least = leastTime(graph, bytes);
      std::optional<RepeatedOrder> order = found(graph, bytes, allOf(graph));
      ASSERT_EQ(least.has_value(), order.has_value())
          << layers << " layers in " << bytes;
      if (!order)
        continue;
      expectRight(graph, *order, bytes);
      EXPECT_EQ(order->againNs, *least - workOf(graph))
          << layers << " layers in " << bytes;
    }
  }
}

TEST(Recompute, LongChainsNeedTheRootOfTheirLength) {
  // A checkpoint every ten layers and one stretch between two: every forward
  // operator runs at most once more (Chen et al., 2016).
  Graph graph = trainingChain(100);
  std::optional<RepeatedOrder> order = found(graph, 24, allOf(graph));
  ASSERT_TRUE(order);
  expectRight(graph, *order, 24);
  EXPECT_LE(order->againNs, 100 * 100);
}

TEST(Recompute, NothingThatMayNotRunAgainDoes) {
  Graph graph = trainingChain(10);
  RecomputeOptions options = allOf(graph);
  options.mayRepeat[4] = 0;
  std::optional<RepeatedOrder> order = found(graph, 7, options);
  ASSERT_TRUE(order);
  expectRight(graph, *order, 7);
  EXPECT_GT(order->againNs, 0);
  EXPECT_EQ(std::count(order->runs.begin(), order->runs.end(), 4), 1);
  options.mayRepeat.assign(graph.ops.size(), 0);
  EXPECT_FALSE(found(graph, 7, options));
}

TEST(Recompute, WhatIsOverwrittenIsNotReadAgain) {
  // f0 reads w, which u overwrites after f0: f0 must not run again behind u.
  Graph graph;
  graph.ops.push_back(makeOp("w", 0, {0}));
  graph.ops.back().resident = 5;
  graph.ops.push_back(makeOp("f", 1, {10}));
  graph.ops.push_back(makeOp("g", 1, {10}));
  graph.ops.push_back(makeOp("u", 1, {0}));
  graph.ops.push_back(makeOp("h", 1, {10}));
  graph.ops.push_back(makeOp("end", 1, {1}));
  graph.ops.back().result = true;
  graph.edges = {{0, 0, 1},  {1, 0, 2}, {0, 0, 3}, {2, 0, 3},
                 {1, -1, 3}, {3, 0, 4}, {4, 0, 5}, {1, 0, 5}};
  RecomputeOptions options = allOf(graph);
  options.mayRepeat[0] = options.mayRepeat[3] = 0;
  // f and h are there when the end begins, and f is there before u: 26 bytes.
  std::optional<RepeatedOrder> order = found(graph, 26, options);
  ASSERT_TRUE(order);
  auto update = std::find(order->runs.begin(), order->runs.end(), 3);
  EXPECT_EQ(std::count(update, order->runs.end(), 1), 0);
}

TEST(Recompute, TheFloorNamesTheOperator) {
  Graph graph = trainingChain(5);
  graph.ops[2].scratch = 100;
  MemoryFloor floor = memoryFloor(graph);
  EXPECT_EQ(floor.op, 2);
  EXPECT_EQ(floor.bytes, 102);
  EXPECT_FALSE(found(graph, floor.bytes - 1, allOf(graph)));
}

TEST(Recompute, RandomGraphsAgainstTheOptimum) {
  std::mt19937 random(7);
  auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int32_t cases = 0, equal = 0, close = 0, missed = 0;
  while (cases < 1000) {
    auto count = static_cast<int32_t>(draw(5, 12));
    Graph graph;
    std::vector<uint8_t> read(count, 0);
    for (int32_t op = 0; op < count; ++op) {
      graph.ops.push_back(
          makeOp("o" + std::to_string(op), draw(1, 9), {draw(1, 4)}));
      for (int64_t k = draw(1, 3); op > 0 && k-- > 0;) {
        auto from = static_cast<int32_t>(draw(0, op - 1));
        graph.edges.push_back({from, 0, op});
        read[from] = 1;
      }
    }
    for (int32_t op = 0; op + 1 < count; ++op)
      if (!read[op])
        graph.edges.push_back({op, 0, count - 1});
    std::sort(graph.edges.begin(), graph.edges.end(),
              [](const Edge &a, const Edge &b) {
                return std::tie(a.from, a.to) < std::tie(b.from, b.to);
              });
    graph.edges.erase(std::unique(graph.edges.begin(), graph.edges.end(),
                                  [](const Edge &a, const Edge &b) {
                                    return a.from == b.from && a.to == b.to;
                                  }),
                      graph.edges.end());
    graph.ops.back().result = true;
    RecomputeOptions options = allOf(graph);
    int64_t floor = memoryFloor(graph).bytes;
    int64_t peak = leanOrdersOf(graph, options).front().peakBytes;
    if (peak <= floor)
      continue;
    int64_t bytes = draw(floor, peak - 1);
    std::optional<int64_t> least = leastTime(graph, bytes);
    std::optional<RepeatedOrder> order = found(graph, bytes, options);
    if (order)
      expectRight(graph, *order, bytes);
    ASSERT_TRUE(least || !order);
    if (!least)
      continue;
    ++cases;
    if (!order) {
      ++missed;
      continue;
    }
    double ratio = static_cast<double>(workOf(graph) + order->againNs) / *least;
    equal += ratio == 1;
    close += ratio <= 1.05;
  }
  RecordProperty("equal", equal);
  RecordProperty("within_5_percent", close);
  RecordProperty("missed", missed);
  EXPECT_EQ(missed, 0);
  EXPECT_GE(equal, cases * 95 / 100);
  EXPECT_EQ(close, cases);
}

} // namespace
