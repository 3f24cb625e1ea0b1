//===- CutsTest.cpp - Which operators are cut -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Cuts/PlanCuts.h"
#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Cuts/CutProgram.h"
#include "Cuts/WorkBound.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace baechi::placement;

namespace {

Machine machineOf(int32_t devices, int64_t latency, int64_t memory,
                  LinkModel model = LinkModel::Duplex) {
  Machine machine;
  for (int32_t d = 0; d < devices; ++d)
    machine.devices.push_back({"d" + std::to_string(d), "cpu", memory});
  machine.links.assign(static_cast<size_t>(devices) * devices,
                       Link{latency, 1000});
  machine.linkModel = model;
  return machine;
}

struct Case {
  Problem problem;
  Alternatives alternatives;

  void add(const std::string &name, int64_t ns, int64_t bytes,
           std::vector<Alternative> ways = {}) {
    Operator op;
    op.name = name;
    op.timeNs = {{"", ns}};
    op.outputs = {Output(bytes)};
    problem.graph.ops.push_back(std::move(op));
    alternatives.of.push_back(std::move(ways));
    alternatives.shapes.push_back({{16, 16}});
  }
  void connect(int32_t from, int32_t to) {
    problem.graph.edges.push_back({from, 0, to});
  }
};

/// So many pieces of \p ns each, along a dimension of what is made and, unless
/// \p from is negative, of what is read.
Alternative cut(int32_t pieces, int64_t ns, int32_t along, int32_t from = -1,
                int32_t reads = -1) {
  Alternative way;
  way.name = "d" + std::to_string(along) + "r" + std::to_string(reads) + "/" +
             std::to_string(pieces);
  way.pieces.assign(pieces, {{{"", ns}}, 0, 0});
  way.outputs = {{{along, {}}, false, 0}};
  if (from >= 0 && reads >= 0)
    way.inputs = {{from, 0, {reads, {}}, 0}};
  return way;
}

/// A chain of products, each of which can be cut along its rows, which the
/// next one keeps, or along its columns.
Case chain(int32_t length, int32_t devices, int64_t ns) {
  Case made;
  made.problem.machine = machineOf(devices, ns / 10, int64_t(1) << 30);
  for (int32_t i = 0; i < length; ++i) {
    std::vector<Alternative> ways;
    for (int32_t k = 2; k <= devices; k *= 2)
      for (int32_t along : {0, 1})
        ways.push_back(cut(k, ns / k, along, i - 1, along == 0 ? 0 : -1));
    made.add("dot" + std::to_string(i), ns, ns / 4, ways);
    if (i > 0)
      made.connect(i - 1, i);
  }
  return made;
}

CutPlan planned(const Case &of, Objective objective = Objective::Makespan) {
  PlaceOptions options;
  options.objective = objective;
  return planCuts(of.problem, of.alternatives, options);
}

TEST(PlanCuts, CutsAChainAlongItsRows) {
  for (int32_t devices : {2, 4}) {
    CutPlan plan = planned(chain(12, devices, 1000));
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    EXPECT_EQ(plan.wholeNs, 12'000);
    // No transfer at all: every lane keeps its rows.
    EXPECT_EQ(plan.result.placement->makespanNs, 12'000 / devices);
    EXPECT_FALSE(plan.isExhaustive);
    EXPECT_TRUE(verify(plan.problem, *plan.result.placement).empty());
  }
}

TEST(PlanCuts, ChoosesNoWaysForThePeriod) {
  EXPECT_NE(planned(chain(3, 2, 1000), Objective::Period)
                .result.error.find("--objective=period chooses no ways"),
            std::string::npos);
}

TEST(PlanCuts, StaysWholeWhereTransfersCostMore) {
  Case of = chain(3, 2, 1000);
  of.problem.machine = machineOf(2, 1'000'000, int64_t(1) << 30);
  for (auto &ways : of.alternatives.of)
    ways.erase(ways.begin()); // Columns alone, which the next one reads whole.
  of.add("loss", 1, 1);
  of.connect(2, 3);
  CutPlan plan = planned(of);
  EXPECT_TRUE(plan.isExhaustive);
  EXPECT_EQ(plan.ways, Ways(4, -1));
  EXPECT_EQ(plan.result.placement->makespanNs, 3001);
  EXPECT_EQ(plan.origins.size(), 4u);
}

TEST(PlanCuts, PiecesMakeFitWhatDoesNot) {
  Case of = chain(8, 2, 1000);
  // Parameters of 100 bytes each, of which a device holds those of six.
  for (auto &device : of.problem.machine.devices)
    device.memory = 1100;
  of.problem.graph.ops[0].resident = 1600;
  for (Alternative &way : of.alternatives.of[0])
    for (Piece &piece : way.pieces)
      piece.resident = 800;
  CutPlan plan = planned(of);
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_FALSE(plan.wholeNs);
  EXPECT_GE(plan.ways[0], 0);
}

TEST(PlanCuts, AnotherPriceForLessMemoryIsAnAlternative) {
  // Recomputation: slower, and nothing is kept.
  Case of;
  of.problem.machine = machineOf(1, 1, 100);
  Alternative again;
  again.name = "again";
  again.pieces = {{{{"", 150}}, 0, 20}};
  of.add("a", 100, 10, {again});
  of.problem.graph.ops[0].resident = 95;
  CutPlan plan = planned(of);
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_EQ(plan.ways, Ways({0}));
  EXPECT_EQ(plan.result.placement->makespanNs, 150);
}

TEST(PlanCuts, DividesTheLargestLoad) {
  Case of = chain(2, 4, 1000);
  of.problem.graph.ops[1].timeNs = {{"", 3000}};
  for (Alternative &way : of.alternatives.of[1])
    for (Piece &piece : way.pieces)
      piece.timeNs = {{"", 3000 / static_cast<int64_t>(way.pieces.size())}};
  CutPlan plan = planned(of, Objective::MaxLoad);
  EXPECT_EQ(plan.wholeNs, 3000);
  EXPECT_LE(plan.result.maxLoadNs, 1500);
}

TEST(PlanCuts, RefusesWhatIsMalformed) {
  Case of = chain(2, 2, 1000);
  of.alternatives.of[1][0].pieces.clear();
  EXPECT_EQ(planned(of).result.error,
            "operator 1 'dot1', alternative 'd0r0/2': has 0 pieces: 1 to 4096 "
            "can be");
  of = chain(2, 2, 1000);
  of.problem.graph.edges[0].to = 7;
  EXPECT_FALSE(planned(of).result.error.empty());
}

TEST(PlanCuts, IsTheSameEveryTime) {
  Case of = chain(8, 2, 1000);
  CutPlan first = planned(of), second = planned(of);
  EXPECT_EQ(first.ways, second.ways);
  EXPECT_EQ(first.result.placement->device, second.result.placement->device);
  EXPECT_EQ(first.result.placement->startNs, second.result.placement->startNs);
}

TEST(PlanCuts, EndsWhenItIsCancelled) {
  PlaceOptions options;
  int asked = 0;
  options.cancelled = [&] { return ++asked > 3; };
  Case of = chain(20, 4, 1000);
  CutPlan plan = planCuts(of.problem, of.alternatives, options);
  EXPECT_EQ(plan.result.error, cancelledError);
}

/// A random graph, few of whose operators can be cut in a few ways.
Case drawn(uint32_t seed, int32_t operators, int32_t most) {
  std::mt19937 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  Case of;
  of.problem.machine =
      machineOf(2, below(3), 1'000'000,
                below(2) ? LinkModel::Sequential : LinkModel::Duplex);
  int32_t left = most;
  for (int32_t i = 0; i < operators; ++i) {
    int64_t ns = 1 + below(12);
    std::vector<Alternative> ways;
    auto from = static_cast<int32_t>(i > 0 ? below(i) : -1);
    for (int32_t k = 0; k < 2 && left > 0 && below(3); ++k, --left) {
      Alternative way =
          cut(2, ns / 2 + below(2), static_cast<int32_t>(below(2)), from,
              static_cast<int32_t>(below(3)) - 1);
      way.name += "." + std::to_string(k);
      if (below(3) == 0) {
        way.outputs = {{{}, true, 0}};
        way.sumNs = below(3);
      }
      ways.push_back(std::move(way));
    }
    of.add("op" + std::to_string(i), ns, 1 + below(4), ways);
    if (from >= 0)
      of.connect(from, i);
    if (i > 1 && below(2))
      if (auto other = static_cast<int32_t>(below(i)); other != from)
        of.connect(other, i);
  }
  return of;
}

/// The best of all ways and all placements, by the exact search; nullopt: it
/// did not end.
std::optional<int64_t> optimum(const Case &of) {
  int64_t best = std::numeric_limits<int64_t>::max();
  Ways ways(of.problem.graph.ops.size(), -1);
  for (;;) {
    Expansion expansion;
    EXPECT_EQ(expand(of.problem.graph, of.alternatives, ways, expansion), "");
    ExactResult found = exactPlacement({expansion.graph, of.problem.machine});
    if (found.status != ExactStatus::Optimal)
      return std::nullopt;
    best = std::min(best, found.valueNs);
    size_t op = 0;
    while (op < ways.size() &&
           ++ways[op] == static_cast<int32_t>(of.alternatives.of[op].size()))
      ways[op++] = -1;
    if (op == ways.size())
      return best;
  }
}

TEST(PlanCuts, FindsTheBestOfAllWaysAndPlacements) {
  int proven = 0, cutGraphs = 0;
  for (uint32_t seed = 0; seed < 16; ++seed) {
    Case of = drawn(seed, 5, 4);
    std::optional<int64_t> best = optimum(of);
    if (!best)
      continue;
    ++proven;
    CutPlan plan = planned(of);
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    EXPECT_TRUE(verify(plan.problem, *plan.result.placement).empty());
    EXPECT_EQ(plan.result.placement->makespanNs, *best) << "seed " << seed;
    EXPECT_LE(plan.result.placement->makespanNs, *plan.wholeNs);
    cutGraphs += plan.result.placement->makespanNs < *plan.wholeNs;
  }
  EXPECT_GT(proven, 10);
  EXPECT_GT(cutGraphs, 3);
}

TEST(PlanCuts, IsNeverSlowerThanTheGraphAsItIs) {
  for (uint32_t seed = 100; seed < 112; ++seed) {
    Case of = drawn(seed, 12, 24);
    PlaceOptions options;
    options.budget = Budget::ofEvaluations(100);
    CutPlan plan = planCuts(of.problem, of.alternatives, options);
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    PlaceResult whole = place(of.problem, options);
    EXPECT_EQ(plan.wholeNs, whole.placement->makespanNs);
    EXPECT_LE(plan.result.placement->makespanNs, *plan.wholeNs);
    EXPECT_TRUE(verify(plan.problem, *plan.result.placement).empty());
  }
}

/// Its graph as it is is searched only where pieces could be worse.
TEST(PlanCuts, ALargeGraphIsNeverSlowerThanAsItIsEither) {
  for (bool isChain : {true, false}) {
    Case of;
    of.problem.machine = machineOf(2, isChain ? 1 : 100'000, 1'000'000'000);
    constexpr int32_t operators = 4100, wide = 40;
    for (int32_t i = 0; i < operators; ++i) {
      int32_t from = i - (isChain ? 1 : wide);
      of.add("op" + std::to_string(i), 1000 + i % 7, 16,
             {cut(2, 510, 0, std::max(from, -1), 0)});
      if (from >= 0)
        of.connect(from, i);
      if (!isChain && i % wide > 0)
        of.connect(i - 1, i);
    }
    CutPlan plan = planCuts(of.problem, of.alternatives, {});
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    PlaceResult whole = place(of.problem, {});
    EXPECT_LE(plan.result.placement->makespanNs, whole.placement->makespanNs);
    EXPECT_LE(plan.result.placement->makespanNs, *plan.wholeNs);
    EXPECT_TRUE(verify(plan.problem, *plan.result.placement).empty());
    bool areCut = plan.problem.graph.ops.size() > operators;
    EXPECT_EQ(areCut, isChain);
    if (!areCut) {
      EXPECT_EQ(plan.result.placement->makespanNs, whole.placement->makespanNs);
    }
  }
}

/// Whatever pieces can gain, it is not worth a look.
TEST(PlanCuts, ALargeGraphAtTheBoundOfAllWaysIsLeftAsItIs) {
  Case of;
  of.problem.machine = machineOf(2, 1, 1'000'000'000);
  for (int32_t i = 0; i < 4100; ++i)
    of.add("op" + std::to_string(i), 1000, 16, {cut(2, 501, 0)});
  CutPlan plan = planned(of);
  ASSERT_TRUE(plan.result.placement) << plan.result.error;
  EXPECT_EQ(plan.result.placement->makespanNs, 2'050'000);
  EXPECT_EQ(plan.proposed, 0);
}

TEST(WorkBound, IsNoMoreThanAnyStep) {
  PlaceOptions options;
  options.budget = Budget::ofEvaluations(100);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Case of = drawn(seed, 8, 12);
    cuts::WorkBound work(of.problem, of.alternatives);
    CutPlan plan = planCuts(of.problem, of.alternatives, options);
    ASSERT_TRUE(plan.result.placement) << plan.result.error;
    int64_t bound = work.of(plan.ways),
            step = plan.result.placement->makespanNs;
    EXPECT_LE(work.ofAll(), bound);
    EXPECT_LE(bound, step) << "seed " << seed;
    EXPECT_LE(static_cast<size_t>(work.pieces(plan.ways)),
              plan.problem.graph.ops.size());
  }
}

TEST(WorkBound, TakesTheFastestKindForEachPiece) {
  Case of;
  of.problem.machine = machineOf(2, 1, 1000);
  of.problem.machine.devices[1].kind = "fast";
  of.add("op", 100, 1, {cut(3, 60, 0)});
  for (Piece &piece : of.alternatives.of[0][0].pieces)
    piece.timeNs = {{"cpu", 60}, {"fast", 31}};
  cuts::WorkBound work(of.problem, of.alternatives);
  EXPECT_EQ(work.of({-1}), 50);
  EXPECT_EQ(work.of({0}), 47);
  EXPECT_EQ(work.ofAll(), 47);
  EXPECT_EQ(work.pieces({0}), 3);
}

TEST(CutProgram, WeighsPiecesAndMemory) {
  Case of = chain(4, 2, 1000);
  cuts::CutProgram program(of.problem, of.alternatives, Objective::Makespan);
  auto whole = program.propose({1, 1, 0, 0});
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, Ways(4, -1));
  auto rows = program.propose({1, 2, 0, 0});
  ASSERT_TRUE(rows);
  EXPECT_EQ(*rows, Ways(4, 0));
  // There is no memory for any output.
  of.problem.machine = machineOf(2, 1, 1);
  cuts::CutProgram small(of.problem, of.alternatives, Objective::Makespan);
  EXPECT_FALSE(small.propose({1, 0, 1, 0}));
}

} // namespace
