//===- LpPartsTest.cpp - The parts of the native solver -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/InteriorPoint.h"
#include "Lp/Presolve.h"
#include "Lp/WaterFilling.h"
#include "TestPrograms.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::lp;
using namespace baechi::placement::test;

namespace {

/// By the interior point alone, without any reduction.
PathSolution solveWhole(const PathProgram &program) {
  InteriorPoint solver(program, std::vector<double>(program.edges.size(), 0.0));
  Work work{1e12};
  EXPECT_TRUE(solver.solve(1e-8, work));
  return solver.solution();
}

PathProgram randomPath(uint32_t seed) {
  return pathProgram(
      randomProgram(seed, static_cast<Kind>(seed % numKinds), 40));
}

/// The value that the bounds of \p solution agree on.
double valueOf(const PathSolution &solution) {
  EXPECT_TRUE(solution.within(2e-7)) << solution.lower << " " << solution.upper;
  return solution.upper;
}

TEST(PathProgram, IsWellFormed) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    PathProgram path = randomPath(seed);
    for (int32_t v = 0; v < path.numNodes; ++v) {
      EXPECT_EQ(path.in(v).empty(), v == 0);
      EXPECT_EQ(path.firstOut[v] == path.firstOut[v + 1], v == path.sink());
      for (int32_t e : path.in(v))
        EXPECT_EQ(path.edges[e].to, v);
      for (int32_t e = path.firstOut[v]; e < path.firstOut[v + 1]; ++e)
        EXPECT_EQ(path.edges[e].from, v);
    }
    for (const PathProgram::Edge &edge : path.edges)
      EXPECT_LT(edge.from, edge.to);
  }
}

TEST(WaterFilling, BoundsTheValueFromBothSides) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    PathProgram path = randomPath(seed);
    WaterLevels levels = waterLevels(path);
    PathSolution simple = waterSolution(path, levels);
    double value = valueOf(solveWhole(path));
    EXPECT_LE(simple.lower, value * (1 + 1e-9)) << seed;
    EXPECT_GE(simple.upper, value * (1 - 2e-7)) << seed;
  }
}

TEST(WaterFilling, OneBudgetIsExact) {
  // Three edges into one node; the first two level at 8, the third stays.
  PathProgram path =
      pathProgram({{0, 0, 0, 0}, {{0, 3, 10}, {1, 3, 12}, {2, 3, 3}}});
  WaterLevels levels = waterLevels(path);
  EXPECT_NEAR(levels.bound, 120.0 / 22, 1e-12);
}

TEST(Contract, KeepsTheValue) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    PathProgram path = randomPath(seed);
    std::vector<uint8_t> all(path.edges.size(), 1);
    std::vector<double> none(path.numNodes, 0);
    Contraction small = contract(path, all, none, none);
    EXPECT_LE(small.program.numNodes, path.numNodes);
    double value = valueOf(solveWhole(path));
    PathSolution solution = solveWhole(small.program);
    EXPECT_NEAR(valueOf(solution), value, 4e-7 * value) << seed;
    // Its y and what is certain are a solution of the whole.
    std::vector<double> y(path.edges.size(), 0);
    for (int32_t e : small.certain)
      y[e] = 1;
    for (int32_t e = 0; e < small.program.numEdges(); ++e)
      if (small.program.edges[e].saving > 0)
        y[small.program.edges[e].origin] = solution.y[e];
    EXPECT_NEAR(lp::valueOf(path, y), value, 4e-7 * value) << seed;
  }
}

TEST(Contract, ChainsVanish) {
  PathProgram path = pathProgram({{1, 2, 3}, {{0, 1, 10}, {1, 2, 10}}});
  std::vector<uint8_t> all(path.edges.size(), 1);
  std::vector<double> none(path.numNodes, 0);
  Contraction small = contract(path, all, none, none);
  EXPECT_EQ(small.program.numNodes, 2);
  EXPECT_EQ(small.certain.size(), 2u);
  EXPECT_EQ(lp::valueOf(small.program, {}), 6);
}

TEST(Tighten, KeepsTheValue) {
  int32_t fewer = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    PathProgram path = randomPath(seed);
    double value = valueOf(solveWhole(path));
    double lower = 0;
    PathProgram tight = tighten(path, value * (1 + 1e-6), lower);
    EXPECT_LE(lower, value * (1 + 1e-9)) << seed;
    double left = std::max(lower, valueOf(solveWhole(tight)));
    EXPECT_NEAR(left, value, 4e-7 * value) << seed;
    fewer += tight.numEdges() < path.numEdges();
  }
  EXPECT_GT(fewer, 50);
}

TEST(Split, PartsAddUp) {
  // Two forks in a row: the node between them is on every path.
  PathProgram path = pathProgram({{1, 1, 1, 1, 1, 1, 1},
                                  {{0, 1, 4},
                                   {0, 2, 4},
                                   {1, 3, 4},
                                   {2, 3, 4},
                                   {3, 4, 4},
                                   {3, 5, 4},
                                   {4, 6, 4},
                                   {5, 6, 4}}});
  std::vector<PathProgram> parts = split(path);
  EXPECT_GE(parts.size(), 2u);
  double sum = 0;
  size_t edges = 0;
  for (const PathProgram &part : parts) {
    sum += valueOf(solveWhole(part));
    edges += part.edges.size();
  }
  EXPECT_EQ(edges, path.edges.size());
  EXPECT_NEAR(sum, valueOf(solveWhole(path)), 1e-5);
}

TEST(DualBound, HoldsForAnyFlow) {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 100; ++seed) {
    PathProgram path = randomPath(seed);
    double value = valueOf(solveWhole(path));
    std::vector<double> flow, prices;
    for (int32_t e = 0; e < path.numEdges(); ++e)
      flow.push_back(random() % 4 ? random() % 1000 : 0);
    for (int32_t b = 0; b < path.numBudgets; ++b)
      prices.push_back(random() % 100);
    EXPECT_LE(dualBound(path, flow, prices), value * (1 + 1e-9)) << seed;
  }
}

TEST(InteriorPoint, StopsWhenTheWorkIsSpent) {
  PathProgram path = randomPath(24);
  Work work{100};
  InteriorPoint solver(path, std::vector<double>(path.edges.size(), 0.0));
  EXPECT_FALSE(solver.solve(1e-8, work));
  EXPECT_LE(solver.solution().lower, solver.solution().upper);
}

} // namespace
