//===- NativeSolverTest.cpp - The solver of m-SCT's program ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include "Baechi/Placement/Lp/NativeSolver.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::DoubleNear;
using testing::HasSubstr;

namespace {

/// Solves and checks all that a solution promises; returns its value.
double solve(const LpProgram &program, NativeSolverOptions options = {}) {
  LpSolution solution = createNativeSolver(options)->solve(program, 1);
  EXPECT_TRUE(solution.optimal) << solution.note;
  EXPECT_EQ(solution.note, "");
  EXPECT_EQ(solution.x.size(), program.edges.size());
  EXPECT_LE(violation(program, solution.x), 1e-9);
  EXPECT_NEAR(solution.value, longestPath(program, solution.x),
              1e-9 * solution.value);
  EXPECT_LE(solution.bound, solution.value);
  EXPECT_GE(solution.bound, solution.value * (1 - 1e-6));
  return solution.value;
}

TEST(NativeSolver, Nothing) { EXPECT_EQ(solve({}), 0); }

TEST(NativeSolver, NoEdges) { EXPECT_EQ(solve({{1, 7, 2}, {}}), 7); }

TEST(NativeSolver, ChainHasFavouritesOnly) {
  EXPECT_THAT(solve({{1, 2, 3}, {{0, 1, 10}, {1, 2, 10}}}),
              DoubleNear(6, 1e-9));
}

TEST(NativeSolver, LongChain) {
  LpProgram program;
  program.time.assign(5000, 3);
  for (int32_t i = 0; i + 1 < 5000; ++i)
    program.edges.push_back({i, i + 1, 1000});
  EXPECT_THAT(solve(program), DoubleNear(15000, 1e-6));
}

TEST(NativeSolver, ForkSharesTheFavourite) {
  EXPECT_THAT(solve({{1, 2, 2}, {{0, 1, 10}, {0, 2, 10}}}),
              DoubleNear(8, 1e-6));
}

TEST(NativeSolver, ForkWithADearAndACheapChild) {
  // y = 10/13 for the dear one makes both take 30/13.
  EXPECT_THAT(solve({{1, 2, 2}, {{0, 1, 10}, {0, 2, 3}}}),
              DoubleNear(3 + 30 / 13.0, 1e-6));
}

TEST(NativeSolver, StarsShareOneBudget) {
  for (int32_t n : {1, 2, 7, 700}) {
    LpProgram out, in;
    out.time.assign(n + 1, 5);
    in.time.assign(n + 1, 5);
    for (int32_t i = 0; i < n; ++i) {
      out.edges.push_back({0, i + 1, 100});
      in.edges.push_back({i, n, 100});
    }
    double expected = 10 + 100 * (1 - 1.0 / n);
    EXPECT_THAT(solve(out), DoubleNear(expected, 1e-5));
    EXPECT_THAT(solve(in), DoubleNear(expected, 1e-5));
  }
}

TEST(NativeSolver, EveryPairOfTwoLayers) {
  // Both budgets bind: y = 1/n everywhere. Three such layers, twice the same.
  constexpr int32_t n = 12;
  LpProgram program;
  program.time.assign(3 * n, 1);
  for (int32_t layer = 0; layer < 2; ++layer)
    for (int32_t i = 0; i < n; ++i)
      for (int32_t j = 0; j < n; ++j)
        program.edges.push_back({layer * n + i, (layer + 1) * n + j, 24});
  EXPECT_THAT(solve(program), DoubleNear(3 + 2 * 22, 1e-5));
}

TEST(NativeSolver, AllZero) {
  EXPECT_EQ(solve({{0, 0, 0}, {{0, 1, 0}, {0, 2, 0}}}), 0);
}

TEST(NativeSolver, AnyKindOfProgram) {
  for (int kind = 0; kind < numKinds; ++kind)
    for (uint32_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << " seed " << seed);
      solve(randomProgram(seed, static_cast<Kind>(kind), 60));
    }
}

TEST(NativeSolver, ProgramsThatAreSifted) {
  for (int kind = 0; kind < numKinds; ++kind)
    for (uint32_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << " seed " << seed);
      solve(randomProgram(seed, static_cast<Kind>(kind), 2000));
    }
}

TEST(NativeSolver, ScalesWithTheUnit) {
  LpProgram program = randomProgram(3, Kind::Any, 200);
  double value = solve(program);
  for (double unit : {1e-9, 1e6, 1e12}) {
    LpProgram scaled = program;
    for (double &time : scaled.time)
      time *= unit;
    for (auto &edge : scaled.edges)
      edge.transfer *= unit;
    EXPECT_NEAR(solve(scaled) / unit, value, 1e-6 * value);
  }
}

TEST(NativeSolver, SameInputSameOutput) {
  LpProgram program = randomProgram(5, Kind::Any, 1500);
  auto solver = createNativeSolver();
  EXPECT_EQ(solver->solve(program, 1).x, solver->solve(program, 1e9).x);
}

TEST(NativeSolver, LittleWorkLeavesAProvenGap) {
  // Wide layers of all pairs with unlike costs: hard at the least.
  LpProgram program;
  constexpr int32_t width = 12, layers = 12;
  program.time.assign(width * layers, 10);
  for (int32_t i = 0; i < width * (layers - 1); ++i)
    for (int32_t j = 0; j < width; ++j)
      program.edges.push_back({i, (i / width + 1) * width + j,
                               20.0 + (i * 7 + j * 13 + i * j) % 31});
  double value = solve(program);
  for (double work : {0.0, 1e5, 1e6}) {
    auto solver = createNativeSolver({.work = work});
    LpSolution solution = solver->solve(program, 1);
    EXPECT_FALSE(solution.optimal);
    EXPECT_THAT(solution.note, HasSubstr("the work that it may take"));
    EXPECT_LE(violation(program, solution.x), 1e-9);
    EXPECT_LE(solution.bound, value * (1 + 1e-6));
    EXPECT_GE(solution.value, value * (1 - 1e-6));
    EXPECT_GT(solution.bound, 0);
    EXPECT_EQ(solver->solve(program, 1e9).x, solution.x);
  }
}

TEST(GreedySolver, IsFeasibleAndBounded) {
  for (int kind = 0; kind < numKinds; ++kind)
    for (uint32_t seed = 0; seed < 20; ++seed) {
      LpProgram program = randomProgram(seed, static_cast<Kind>(kind), 60);
      LpSolution solution = createGreedySolver()->solve(program, 1);
      EXPECT_LE(violation(program, solution.x), 0);
      EXPECT_NEAR(solution.value, longestPath(program, solution.x),
                  1e-9 * solution.value);
      EXPECT_LE(solution.bound, solve(program) * (1 + 1e-9));
      EXPECT_EQ(solution.optimal, solution.note.empty());
    }
}

} // namespace
