//===- CompareTest.cpp - All placers on one problem -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Study/Compare.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

const ComparisonRow &rowOf(const Comparison &comparison,
                           const std::string &name) {
  auto it = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                         [&](const auto &row) { return row.name == name; });
  EXPECT_NE(it, comparison.rows.end()) << name;
  return *it;
}

TEST(Compare, EveryPlacerAlone) {
  Problem problem = diamond();
  Comparison comparison = compare(problem, {});
  EXPECT_EQ(comparison.error, "");
  ASSERT_EQ(comparison.rows.size(), placerNames().size() + 1);
  for (size_t k = 0; k < placerNames().size(); ++k) {
    const ComparisonRow &row = comparison.rows[k];
    EXPECT_EQ(row.name, placerNames()[k]);
    PlaceOptions pure;
    pure.placer = row.name;
    pure.budget = Budget::none();
    PlaceResult alone = place(problem, pure);
    EXPECT_EQ(row.valid, alone.placement.has_value()) << row.name;
    if (alone.placement) {
      EXPECT_EQ(row.makespanNs, alone.placement->makespanNs) << row.name;
      EXPECT_EQ(row.maxLoadNs, alone.maxLoadNs) << row.name;
    }
  }
  const ComparisonRow &whole = comparison.rows.back();
  EXPECT_EQ(whole.name, wholeAnswer);
  EXPECT_EQ(whole.makespanNs, 1040);
  EXPECT_EQ(comparison.singleDeviceNs, 2020);
  EXPECT_DOUBLE_EQ(*whole.speedUp, 2020.0 / 1040);
  EXPECT_DOUBLE_EQ(whole.gap,
                   1040.0 / static_cast<double>(comparison.lowerBoundNs) - 1);
  ASSERT_GE(comparison.best, 0);
  EXPECT_EQ(comparison.rows[comparison.best].makespanNs, 1040);
}

TEST(Compare, OnlyThoseAskedFor) {
  std::vector<std::string> names{"metf", wholeAnswer, "mtopo"};
  Comparison comparison = compare(diamond(), {}, names);
  std::vector<std::string> got;
  for (const ComparisonRow &row : comparison.rows)
    got.push_back(row.name);
  EXPECT_THAT(got, ElementsAre("metf", "default", "mtopo"));
  // The speed-up is over one device although that is no row.
  EXPECT_EQ(comparison.singleDeviceNs, 2020);
  names = {"metf", "best"};
  comparison = compare(diamond(), {}, names);
  EXPECT_THAT(comparison.error, HasSubstr("unknown placer 'best'"));
  EXPECT_THAT(comparison.rows, IsEmpty());
}

TEST(Compare, TheFullestDeviceByItsShare) {
  Problem problem = diamond();
  problem.graph.ops[1].resident = 600;
  problem.graph.ops[1].pin = "d0";
  problem.graph.ops[2].resident = 500;
  problem.graph.ops[2].pin = "d1";
  problem.machine.devices[0].memory = 10000;
  problem.machine.devices[1].memory = 1000;
  Comparison comparison = compare(problem, {});
  const ComparisonRow &row = rowOf(comparison, wholeAnswer);
  ASSERT_TRUE(row.valid) << row.problem;
  EXPECT_EQ(row.fullest, 1);
  EXPECT_GE(row.peakBytes, 500);
  EXPECT_DOUBLE_EQ(row.peakShare, static_cast<double>(row.peakBytes) / 1000);
}

TEST(Compare, SaysWhyAPlacerHasNothing) {
  Problem problem = diamond();
  for (Operator &op : problem.graph.ops)
    op.resident = 100;
  for (Device &device : problem.machine.devices)
    device.memory = 300;
  Comparison comparison = compare(problem, {});
  const ComparisonRow &single = rowOf(comparison, "single");
  EXPECT_FALSE(single.valid);
  EXPECT_THAT(single.problem, HasSubstr("no single device"));
  EXPECT_FALSE(comparison.singleDeviceNs);
  const ComparisonRow &whole = rowOf(comparison, wholeAnswer);
  EXPECT_TRUE(whole.valid) << whole.problem;
  EXPECT_FALSE(whole.speedUp);
  for (Device &device : problem.machine.devices)
    device.memory = 99;
  comparison = compare(problem, {});
  EXPECT_EQ(comparison.best, -1);
  for (const ComparisonRow &row : comparison.rows)
    EXPECT_FALSE(row.problem.empty()) << row.name;
}

TEST(Compare, ByTheLargestLoad) {
  PlaceOptions options;
  options.objective = Objective::MaxLoad;
  Comparison comparison = compare(diamond(), options);
  const ComparisonRow &whole = rowOf(comparison, wholeAnswer);
  EXPECT_EQ(whole.maxLoadNs, 1010);
  EXPECT_DOUBLE_EQ(*whole.speedUp, 2.0);
}

TEST(Compare, BadInputIsOneError) {
  Problem problem = diamond();
  problem.graph.edges.push_back({3, 0, 0});
  Comparison comparison = compare(problem, {});
  EXPECT_THAT(comparison.error, HasSubstr("cycle"));
  EXPECT_THAT(comparison.rows, IsEmpty());
}

TEST(Compare, EmptyGraph) {
  Problem problem;
  problem.machine = makeMachine(2);
  Comparison comparison = compare(problem, {});
  for (const ComparisonRow &row : comparison.rows) {
    EXPECT_TRUE(row.valid) << row.name << ": " << row.problem;
    EXPECT_EQ(row.makespanNs, 0);
  }
}

} // namespace
