//===- GlpkTest.cpp - The GLPK back end -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Glpk.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::DoubleNear;

namespace {

double longestPath(const LpProgram &program, const std::vector<double> &x) {
  std::vector<double> start(program.time.size(), 0);
  double longest = 0;
  for (size_t e = 0; e < program.edges.size(); ++e) {
    const auto &edge = program.edges[e];
    start[edge.to] =
        std::max(start[edge.to], start[edge.from] + program.time[edge.from] +
                                     edge.transfer * x[e]);
  }
  for (size_t i = 0; i < start.size(); ++i)
    longest = std::max(longest, start[i] + program.time[i]);
  return longest;
}

TEST(Glpk, ChainHasFavouritesOnly) {
  LpProgram program{{1, 2, 3}, {{0, 1, 10}, {1, 2, 10}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(longestPath(program, solution.x), DoubleNear(6, 1e-6));
}

TEST(Glpk, ForkSharesTheFavourite) {
  // Two equal children: each gets half of the saving, w = 1 + 5 + 2.
  LpProgram program{{1, 2, 2}, {{0, 1, 10}, {0, 2, 10}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(solution.x[0] + solution.x[1], testing::Ge(1 - 1e-6));
  EXPECT_THAT(longestPath(program, solution.x), DoubleNear(8, 1e-6));
}

TEST(Glpk, ForkWithADearAndACheapChild) {
  // The dear child is the favourite until both take the same: 3 = 10 x, so
  // w = 1 + 3 (1 - y) ... with y = 10/13 for the dear one.
  LpProgram program{{1, 2, 2}, {{0, 1, 10}, {0, 2, 3}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(longestPath(program, solution.x),
              DoubleNear(3 + 10 * 3 / 13.0, 1e-6));
}

TEST(Glpk, NoEdges) {
  EXPECT_TRUE(createGlpkSolver()->solve({{1, 2}, {}}, 10).optimal);
}

TEST(Glpk, PlacesThroughTheProgram) {
  auto solver = createGlpkSolver();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceOptions options;
    options.solver = solver.get();
    options.budget = Budget::none();
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_TRUE(verify(problem, *result.placement).empty());
    EXPECT_TRUE(result.notes.empty()) << result.notes.front();
  }
}

TEST(Glpk, TimeLimitIsReported) {
  // 3,000 random edges do not end within a microsecond.
  LpProgram program;
  program.time.assign(1000, 1);
  for (int32_t i = 0; i < 997; ++i)
    for (int32_t k = 1; k <= 3; ++k)
      program.edges.push_back({i, i + k, 10.0 + (i * 7 + k * 13) % 50});
  LpSolution solution = createGlpkSolver()->solve(program, 1e-6);
  EXPECT_FALSE(solution.optimal);
  EXPECT_NE(solution.note.find("time limit"), std::string::npos);
}

} // namespace
