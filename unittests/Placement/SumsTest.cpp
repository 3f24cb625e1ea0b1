//===- SumsTest.cpp - Sums whose operands come one after the other --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Sums.h"
#include "Baechi/Placement/Study/FitSweep.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

constexpr int64_t MiB = 1 << 20;

/// A chain of layers, each of which makes a term of one gradient.
Problem recurrence(int32_t layers, int64_t bytes) {
  Problem problem;
  problem.machine = makeMachine(2, int64_t(1) << 40, {1000, 8000});
  problem.machine.devices[1] = {"pool0", "pool", int64_t(1) << 40};
  Graph &graph = problem.graph;
  graph.ops.push_back(makeOp("w", 1000, {64}));
  graph.ops.back().resident = bytes;
  std::vector<int32_t> terms;
  for (int32_t k = 0; k < layers; ++k) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp("t" + std::to_string(k), 100'000, {64}));
    graph.edges.push_back({k == 0 ? 0 : id - 2, 0, id});
    graph.ops.push_back(makeOp("g" + std::to_string(k), 200'000, {bytes}));
    graph.edges.push_back({id, 0, id + 1});
    terms.push_back(id + 1);
  }
  auto sum = static_cast<int32_t>(graph.ops.size());
  graph.ops.push_back(makeOp("sum", 42'000, {bytes}));
  for (int32_t term : terms)
    graph.edges.push_back({term, 0, sum});
  graph.ops.push_back(makeOp("update", 1000, {8}));
  graph.edges.push_back({sum, 0, sum + 1});
  graph.ops.back().forward = sum;
  graph.ops.back().result = true;
  return problem;
}

/// What each operator makes where one with operands adds them up, by name.
std::map<std::string, float> evaluate(const Graph &graph,
                                      std::map<std::string, float> values) {
  std::vector<std::vector<int32_t>> operands(graph.ops.size());
  for (const Edge &edge : graph.edges)
    if (edge.output >= 0)
      operands[edge.to].push_back(edge.from);
  std::function<float(int32_t)> valueOf = [&](int32_t op) {
    const std::string &name = graph.ops[op].name;
    if (auto known = values.find(name); known != values.end())
      return known->second;
    float sum = 0;
    bool isFirst = true;
    for (int32_t from : operands[op]) {
      sum = isFirst ? valueOf(from) : sum + valueOf(from);
      isFirst = false;
    }
    return values[name] = sum;
  };
  for (size_t op = 0; op < graph.ops.size(); ++op)
    valueOf(static_cast<int32_t>(op));
  return values;
}

TEST(Sums, AddInTheOrderOfTheEdges) {
  std::mt19937 random(3);
  for (int32_t round = 0; round < 50; ++round) {
    Problem problem;
    problem.machine = makeMachine(1);
    Graph &graph = problem.graph;
    auto terms = static_cast<int32_t>(1 + random() % 9);
    std::map<std::string, float> values;
    for (int32_t k = 0; k < terms; ++k) {
      graph.ops.push_back(makeOp("x" + std::to_string(k), 10, {64}));
      values[graph.ops.back().name] =
          std::ldexp(1.0F + static_cast<float>(random() % 1000) / 999,
                     static_cast<int>(random() % 40));
    }
    graph.ops.push_back(makeOp("sum", 1000, {64}));
    std::vector<int32_t> order(terms);
    std::iota(order.begin(), order.end(), 0);
    for (int32_t k = terms; k-- > 1;)
      std::swap(order[k], order[random() % (k + 1)]);
    for (int32_t k : order)
      graph.edges.push_back({k, 0, terms});
    Graph written = withSumsInTurn(graph, std::vector{terms});
    EXPECT_EQ(check({written, problem.machine}), std::vector<std::string>());
    EXPECT_EQ(written.ops.size(), graph.ops.size() + std::max(terms - 2, 0));
    EXPECT_EQ(evaluate(written, values)["sum"], evaluate(graph, values)["sum"]);
    std::vector<int32_t> reads(written.ops.size(), 0);
    for (const Edge &edge : written.edges)
      EXPECT_LE(++reads[edge.to], 2);
  }
}

TEST(Sums, KeepWhatBelongsToThem) {
  Graph graph = recurrence(3, MiB).graph;
  int32_t sum = 7;
  ASSERT_EQ(graph.ops[sum].name, "sum");
  graph.ops[sum].group = "g";
  graph.ops[sum].result = true;
  graph.edges.push_back({0, -1, sum});
  Graph written = withSumsInTurn(graph, std::vector{sum});
  ASSERT_EQ(written.ops.size(), graph.ops.size() + 1);
  const Operator &first = written.ops[sum], &last = written.ops[sum + 1];
  EXPECT_EQ(first.name, "sum#1");
  EXPECT_EQ(last.name, "sum");
  EXPECT_EQ(*first.group, "g");
  EXPECT_EQ(*last.group, "g");
  EXPECT_FALSE(first.result);
  EXPECT_TRUE(last.result);
  EXPECT_EQ(written.ops[sum + 2].forward, sum + 1);
  // Three of the four tensors that the sum reads and writes.
  EXPECT_EQ(*timeOn(first, "gpu"), 31'500);
  EXPECT_EQ(*timeOn(last, "gpu"), 31'500);
  // Sums of two are additions already.
  Graph two = recurrence(2, MiB).graph;
  EXPECT_EQ(withSumsInTurn(two, std::vector{5}).ops.size(), two.ops.size());
}

TEST(Sums, TakeNoNameThatThereIs) {
  // Two sums, of which one is named as additions of the other would be.
  for (const std::string &other : {"x", "sum#1", "sum#2", "sum#"}) {
    Graph graph = recurrence(4, MiB).graph;
    graph.ops[2].name = other;
    graph.ops.push_back(makeOp(other == "sum#" ? "late" : "sum#", 1000, {MiB}));
    auto second = static_cast<int32_t>(graph.ops.size()) - 1;
    for (int32_t term : {2, 4, 6, 8})
      graph.edges.push_back({term, 0, second});
    graph.ops[2].resident = 0;
    Graph written = withSumsInTurn(graph, std::vector{9, second});
    EXPECT_EQ(written.ops.size(), graph.ops.size() + 4);
    std::set<std::string> names;
    for (const Operator &op : written.ops)
      EXPECT_TRUE(names.insert(op.name).second) << op.name;
    for (const Operator &op : graph.ops)
      EXPECT_TRUE(names.count(op.name)) << op.name;
  }
}

TEST(Sums, OfTwoAreTold) {
  Problem problem = recurrence(3, MiB);
  Graph &graph = problem.graph;
  graph.ops.push_back(makeOp("both", 1000, {MiB}));
  auto both = static_cast<int32_t>(graph.ops.size()) - 1;
  graph.edges.push_back({2, 0, both});
  graph.edges.push_back({4, 0, both});
  graph.ops.back().result = true;
  EXPECT_EQ(sumsOfTwo(graph, std::vector{7, both}), std::vector{both});
  FitSweepOptions options;
  options.memory.push_back({SweepMemory::Kind::Share, 100});
  options.sums = {both};
  EXPECT_EQ(fitSweep(problem, options).error,
            "no sum of more than two tensors is named, as it takes to do sums "
            "in turn: 'both' reads two or fewer");
  options.sums = {7, both};
  FitSweep sweep = fitSweep(problem, options);
  EXPECT_EQ(sweep.error, "");
  ASSERT_EQ(sweep.notes.size(), 1u);
  EXPECT_EQ(sweep.notes[0],
            "of the 2 operators that are to be done in turn 1 read two tensors "
            "or fewer, as 'both', and stay as they are");
  options.sums = {7};
  EXPECT_TRUE(fitSweep(problem, options).notes.empty());
}

TEST(Sums, OthersAreTold) {
  Graph graph = recurrence(3, MiB).graph;
  EXPECT_EQ(whyNoSums(graph, std::vector{7}), "");
  EXPECT_EQ(whyNoSums(graph, std::vector{7, 0}),
            "'w' is no sum: it has resident bytes");
  EXPECT_EQ(whyNoSums(graph, std::vector{2}),
            "'g0' is no sum: it makes 1048576 bytes, and reads 64 of 't0'");
  graph.ops[7].outputs.emplace_back(8);
  EXPECT_EQ(whyNoSums(graph, std::vector{7}),
            "'sum' is no sum: it has 2 outputs");
}

TEST(Sums, FitBelowTheirFloor) {
  Problem problem = recurrence(20, MiB);
  FitSweepOptions options;
  for (int64_t mib : {30, 21, 5, 4, 3})
    options.memory.push_back(
        {SweepMemory::Kind::Bytes, static_cast<double>(mib * MiB + 4096)});
  FitSweep whole = fitSweep(problem, options);
  EXPECT_TRUE(whole.mayBeSum);
  EXPECT_FALSE(whole.floorInTurn);
  EXPECT_STREQ(whole.points[1].bestName(), "none");
  options.sums = {41};
  FitSweep sweep = fitSweep(problem, options);
  ASSERT_EQ(sweep.error, "");
  EXPECT_FALSE(sweep.mayBeSum);
  EXPECT_STREQ(sweep.points[0].bestName(), "order");
  for (size_t k = 0; k < sweep.points.size(); ++k)
    EXPECT_EQ(sweep.points[k].pool.stepNs, whole.points[k].pool.stepNs);
  // The parameters, two sums and a term.
  EXPECT_EQ(sweep.floorInTurn->bytes, 4 * MiB);
  for (size_t k : {1, 2, 3}) {
    EXPECT_STREQ(sweep.points[k].bestName(), "sums in turn");
    // Nothing waits or runs again: 19 additions of 42 us * 3 / 21.
    EXPECT_EQ(sweep.points[k].inTurn.stepNs,
              sweep.unlimitedNs - 42'000 + int64_t(19) * 6000);
    EXPECT_LE(sweep.points[k].inTurn.peakBytes, sweep.points[k].memoryBytes);
  }
  EXPECT_STREQ(sweep.points[4].bestName(), "none");
}

} // namespace
