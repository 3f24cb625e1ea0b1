//===- OrderFloorTest.cpp - What no order goes under ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/OrderFloor.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Model/Random.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::test;
using baechi::placement::Random;
using testing::HasSubstr;

namespace {

constexpr int64_t none = std::numeric_limits<int64_t>::max();

/// All sets of operators that can be done, by the rules of docs/formats.md.
class AllSets {
public:
  explicit AllSets(const Graph &graph)
      : graph(graph), before(graph.ops.size(), 0) {
    for (const Edge &edge : graph.edges)
      before[edge.to] |= uint32_t(1) << edge.from;
  }
  /// Bytes that are held once these are done.
  int64_t held(uint32_t done) const {
    int64_t sum = 0;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      sum += graph.ops[i].resident;
      if (!(done >> i & 1))
        continue;
      for (size_t k = 0; k < graph.ops[i].outputs.size(); ++k) {
        bool isNeeded = graph.ops[i].result;
        for (const Edge &edge : graph.edges)
          isNeeded |= edge.from == static_cast<int32_t>(i) &&
                      edge.output == static_cast<int32_t>(k) &&
                      !(done >> edge.to & 1);
        sum += isNeeded ? graph.ops[i].outputs[k].memory : 0;
      }
    }
    return sum;
  }
  /// The least peak of all orders.
  int64_t leastPeak() const {
    size_t count = graph.ops.size();
    std::vector<int64_t> peak(size_t(1) << count, none);
    peak[0] = held(0);
    for (uint32_t done = 0; done < peak.size(); ++done)
      for (size_t i = 0; peak[done] != none && i < count; ++i) {
        uint32_t next = done | uint32_t(1) << i;
        if (next == done || (before[i] & ~done))
          continue;
        int64_t while_ = held(done) + graph.ops[i].scratch;
        for (const Output &output : graph.ops[i].outputs)
          while_ += output.memory;
        if (graph.ops[i].timeNs.front().second == 0)
          while_ = held(next);
        peak[next] = std::min(peak[next], std::max(peak[done], while_));
      }
    return peak.back();
  }
  /// The least that is held where \p node may begin.
  int64_t leastAround(int32_t node) const {
    int64_t least = none;
    for (uint32_t done = 0; done < uint32_t(1) << graph.ops.size(); ++done) {
      bool isClosed = !(done >> node & 1) && !(before[node] & ~done);
      for (size_t i = 0; i < graph.ops.size(); ++i)
        isClosed &= !(done >> i & 1) || !(before[i] & ~done);
      if (isClosed)
        least = std::min(least, held(done));
    }
    return least;
  }

private:
  const Graph &graph;
  std::vector<uint32_t> before;
};

/// \p copies: some tensors' are smaller, or none.
Problem drawOne(Random &random, int32_t count, bool copies = false) {
  Problem problem;
  problem.machine = makeMachine(1, int64_t(1) << 40);
  int32_t window = random.oneIn(2) ? count : 3;
  for (int32_t i = 0; i < count; ++i) {
    auto size = [&] { return int64_t(random.below(20)) << 20; };
    std::vector<int64_t> outputs{size()};
    if (random.oneIn(4))
      outputs.push_back(size());
    Operator op = makeOp("op" + std::to_string(i),
                         random.oneIn(8) ? 0 : 1 + random.below(3), outputs);
    for (Output &output : op.outputs)
      if (copies && !random.oneIn(4))
        output.copy = random.oneIn(2) ? 0 : random.below(output.memory / 2 + 1);
    op.scratch = random.oneIn(4) ? size() : 0;
    op.resident = random.oneIn(8) ? size() : 0;
    op.result = random.oneIn(9);
    for (int32_t j = std::max(0, i - window); j < i; ++j)
      if (random.oneIn(3))
        problem.graph.edges.push_back(
            {j,
             random.oneIn(6) ? -1
                             : random.below(static_cast<int32_t>(
                                   problem.graph.ops[j].outputs.size())),
             i});
    problem.graph.ops.push_back(std::move(op));
  }
  return problem;
}

TEST(OrderFloor, LevelsAreTheLeastOfAllSets) {
  Random random(7);
  for (int trial = 0; trial < 60; ++trial) {
    Problem problem = drawOne(random, 9);
    Model model(problem);
    AllSets all(problem.graph);
    memory::LeastLevel level(model, model.memory);
    int64_t resident = 0;
    for (int64_t bytes : model.resident)
      resident += bytes;
    for (int32_t node = 0; node < model.numNodes; ++node) {
      std::vector<memory::When> when(model.numNodes, memory::When::Either);
      when[node] = memory::When::After;
      for (int32_t i = node; i-- > 0;)
        model.forEachUser(i, [&](int32_t user) {
          if (user == node || when[user] == memory::When::Before)
            when[i] = memory::When::Before;
        });
      for (int32_t i = node; i < model.numNodes; ++i)
        if (when[i] == memory::When::After)
          model.forEachUser(
              i, [&](int32_t user) { when[user] = memory::When::After; });
      std::vector<int32_t> open;
      for (int32_t i = 0; i < model.numNodes; ++i)
        if (when[i] == memory::When::Either)
          open.push_back(i);
      int64_t steps = 1'000'000;
      ASSERT_TRUE(level.decide(open, when, {}, steps));
      EXPECT_EQ(resident + level.held(when), all.leastAround(node))
          << "trial " << trial << ", operator " << node;
    }
  }
}

TEST(OrderFloor, IsNeverAboveTheBestOrderAndMostlyThere) {
  Random random(3);
  int32_t reached = 0, byTwo = 0, mended = 0, lean = 0;
  constexpr int32_t trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    Problem problem = drawOne(random, 10);
    Model model(problem);
    Assignment device(model.numNodes, 0);
    memory::Steps steps(model, device);
    int64_t best = AllSets(problem.graph).leastPeak();
    std::vector<int32_t> order = memory::leanOrders(model).front();
    memory::OrderFloor floor = memory::orderFloor(model, order, 1'000'000);
    ASSERT_LE(floor.bytes, best) << "trial " << trial;
    reached += floor.bytes == best;
    byTwo += floor.bytes == best && floor.nodes.size() > 1;
    // From the model's own order, which was made for nothing of this.
    memory::StepOrder found =
        memory::mendWindows(steps, model.order, floor.bytes, 1'000'000);
    int64_t peak = memory::orderPeaks(steps, found).front();
    ASSERT_GE(peak, best) << "trial " << trial;
    ASSERT_LE(peak, memory::orderPeaks(steps, model.order).front());
    mended += peak < memory::orderPeaks(steps, model.order).front();
    lean += peak == best;
  }
  // This seed gives 282, 34, 146 and 265 of 300; far fewer is a defect.
  EXPECT_GT(reached, trials * 8 / 10);
  EXPECT_GT(byTwo, trials / 20);
  EXPECT_GT(mended, trials / 3);
  EXPECT_GT(lean, trials * 7 / 10);
}

/// Two chains, each of which frees much at its end: whichever comes first, one
/// operator needs what the other has not let go.
TEST(OrderFloor, LooksAtWhichOfTwoComesFirst) {
  Problem problem;
  problem.machine = makeMachine(1, int64_t(1) << 40);
  for (const char *side : {"a", "b"}) {
    auto first = static_cast<int32_t>(problem.graph.ops.size());
    problem.graph.ops.push_back(makeOp(std::string(side) + "0", 1, {100}));
    problem.graph.ops.push_back(makeOp(std::string(side) + "1", 1, {1}));
    problem.graph.ops.back().scratch = 1000;
    problem.graph.edges.push_back({first, 0, first + 1});
  }
  problem.graph.ops.push_back(makeOp("start", 1, {0}));
  problem.graph.edges.push_back({0, -1, 4});
  problem.graph.edges.push_back({2, -1, 4});
  for (int32_t last : {1, 3})
    problem.graph.edges.push_back({4, -1, last});
  Model model(problem);
  EXPECT_EQ(AllSets(problem.graph).leastPeak(), 1201);
  memory::OrderFloor floor =
      memory::orderFloor(model, memory::leanOrders(model).front(), 1'000'000);
  EXPECT_EQ(floor.bytes, 1201);
  EXPECT_EQ(floor.nodes.size(), 2u);
  problem.machine.devices.front().memory = 1200;
  EXPECT_THAT(
      memory::proveInfeasible(problem, Model(problem)).why,
      HasSubstr(
          "runs, 1201 bytes (1.17 KiB) must be held, whatever the order of "
          "the operators: "));
  problem.machine.devices.front().memory = 1201;
  EXPECT_EQ(memory::proveInfeasible(problem, Model(problem)).why, "");
}

/// Together several devices need what one does, whoever runs what.
TEST(OrderFloor, HoldsForSeveralDevicesTogether) {
  Random random(5);
  int32_t proven = 0, below = 0;
  for (int trial = 0; trial < 90; ++trial) {
    // In a third of them copies take as much as their tensors.
    Problem problem = drawOne(random, 8, /*copies=*/trial % 3 != 0);
    int64_t alone = AllSets(problem.graph).leastPeak();
    if (alone < 10)
      continue;
    problem.machine = makeMachine(2, alone);
    int64_t together = 0, ofTensors = 0;
    {
      Model model(problem);
      ofTensors = memory::orderFloor(model, memory::leanOrders(model).front(),
                                     1'000'000)
                      .bytes;
      together = memory::orderFloorOfAll(
                     model, memory::leanOrders(model).front(), 1'000'000)
                     .bytes;
      EXPECT_LE(together, alone) << "trial " << trial;
    }
    // No assignment of all nodes needs less in any order that is tried.
    Model model(problem);
    Assignment device(model.numNodes);
    int64_t least = alone;
    for (uint32_t bits = 0; bits < (1u << model.numNodes); ++bits) {
      for (int32_t i = 0; i < model.numNodes; ++i)
        device[i] = bits >> i & 1;
      memory::Steps steps(model, device);
      std::vector<int64_t> peaks = memory::leastPeaks(model, device);
      ASSERT_GE(peaks[0] + peaks[1], together) << "trial " << trial;
      least = std::min(least, peaks[0] + peaks[1]);
    }
    // Small copies let several devices need less together than one does.
    below += least < ofTensors;
    // Less than that is proven to be too little.
    problem.machine = makeMachine(2, (together - 1) / 2);
    proven += !memory::proveInfeasible(problem, Model(problem)).why.empty();
  }
  EXPECT_GT(proven, 60);
  EXPECT_GE(below, 2);
}

} // namespace
