//===- BesideTest.cpp - What large graphs find on other threads -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/Beside.h"
#include "Baechi/Placement/Session/Place.h"
#include "Generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

using namespace baechi::placement;

namespace {

Problem largeProblem() {
  return {benchmarks::generate("gnmt", 100'001),
          benchmarks::uniformMachine(4, int64_t(1) << 50)};
}

TEST(Beside, GivesResultsAndErrors) {
  EXPECT_EQ(beside([] { return 42; }).get(), 42);
  auto failing = beside([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW(failing.get(), std::runtime_error);
}

TEST(Beside, FindsWhatIsFoundAlone) {
  Problem problem = largeProblem();
  PlaceOptions alone;
  alone.placer = "metf";
  alone.grouping = {};
  alone.budget = Budget::none();
  PlaceResult metf = place(problem, alone);
  ASSERT_TRUE(metf.placement) << metf.error;
  EXPECT_GT(metf.lowerBoundNs, 0);
  EXPECT_LE(metf.lowerBoundNs, metf.placement->makespanNs);

  // On another thread while groups are made and other placers run.
  PlaceOptions searching;
  searching.budget = Budget::ofEvaluations(1);
  PlaceResult all = place(problem, searching);
  ASSERT_TRUE(all.placement) << all.error;
  auto operators = std::find_if(
      all.candidates.begin(), all.candidates.end(),
      [](const Candidate &c) { return c.name == "metf:operators"; });
  ASSERT_NE(operators, all.candidates.end());
  EXPECT_EQ(operators->makespanNs, metf.placement->makespanNs);
  EXPECT_LE(all.placement->makespanNs, metf.placement->makespanNs);
  EXPECT_GT(all.lowerBoundNs, 0);
}

TEST(Beside, EndsWhenCancelled) {
  Problem problem = largeProblem();
  PlaceOptions options;
  options.cancelled = [] { return true; };
  PlaceResult result = place(problem, options);
  EXPECT_FALSE(result.placement);
  EXPECT_EQ(result.error, cancelledError);
}

} // namespace
