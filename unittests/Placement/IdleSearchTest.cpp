//===- IdleSearchTest.cpp - Searches that find nothing ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>

using namespace baechi::placement;
using namespace baechi::placement::test;
using namespace testing;

namespace {

/// Layers of three branches, the first of \p longest: where they are placed is
/// all that can be chosen, and placers choose well.
Problem layers(int64_t longest) {
  constexpr int32_t operators = 4100, wide = 3, each = wide + 2;
  const int64_t times[] = {longest, 20'000, 70'000, 30'000, 10'000};
  Problem problem;
  problem.machine = makeMachine(8, int64_t(1) << 40, {5000, 1000});
  for (int32_t i = 0; i < operators; ++i) {
    int32_t at = i % each, first = i - at;
    int64_t ns = times[at < wide ? i * 7 / each % wide : at];
    problem.graph.ops.push_back(makeOp("op" + std::to_string(i), ns, {65'536}));
    // The layer before, the branches, or what joins them.
    int32_t begin = at < wide ? first - 1 : at == wide ? first : i - 1;
    for (int32_t from = begin; from < (at < wide ? first : i); ++from)
      if (from >= 0)
        problem.graph.edges.push_back({from, 0, i});
  }
  return problem;
}

/// Of the search, as its note says.
int64_t evaluationsOf(const PlaceResult &result) {
  long long count = 0;
  for (const std::string &note : result.notes)
    if (std::sscanf(note.c_str(), "search: %lld evaluations", &count) == 1)
      break;
  return count;
}

std::vector<std::string> phasesOf(const PlaceResult &result) {
  std::vector<std::string> names;
  for (const Phase &phase : result.phases)
    names.push_back(phase.name);
  return names;
}

/// 5,120 evaluations are affordable.
TEST(IdleSearch, EndsEarly) {
  Problem problem = layers(50'000);
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  EXPECT_GT(result.placement->makespanNs, result.lowerBoundNs);
  EXPECT_GT(evaluationsOf(result), 500);
  EXPECT_LT(evaluationsOf(result), 1000);
  // As many as were asked for are made all the same.
  PlaceOptions many;
  many.budget = Budget::ofEvaluations(1280);
  PlaceResult longer = place(problem, many);
  EXPECT_GT(evaluationsOf(longer), 1200);
  EXPECT_EQ(longer.placement->makespanNs, result.placement->makespanNs);
}

/// Parts of the devices, which are late to begin, are asked all the same.
TEST(IdleSearch, LeavesTheRestToFewerDevices) {
  Problem problem = layers(230'000);
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(phasesOf(result), IsSupersetOf({"2 devices", "4 devices"}));
  EXPECT_EQ(result.winner, "4 devices");
  for (const Candidate &candidate : result.candidates)
    if (candidate.name == "metf:operators") {
      EXPECT_LT(result.placement->makespanNs, candidate.makespanNs);
    }
}

} // namespace
