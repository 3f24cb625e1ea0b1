//===- PropertyTest.cpp - What holds for every problem ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Registry.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Every placer, grouping and objective on one random problem.
class Random : public testing::TestWithParam<uint32_t> {};

std::vector<PlaceOptions> allOptions(const Problem &problem) {
  std::vector<PlaceOptions> all;
  for (const placers::Placer &placer : placers::allPlacers())
    for (bool grouped : {false, true})
      for (bool candidates : {false, true}) {
        // Its many evaluations have tests of their own (BaselinesTest.cpp).
        if (placer.name == "annealing")
          continue;
        // With the others' help all do the same.
        if (candidates && placer.name != "metf" && !placer.alone)
          continue;
        PlaceOptions options = onlyPlacer(std::string(placer.name), problem);
        if (candidates)
          options.budget = Budget::ofEvaluations(20);
        if (!grouped)
          options.grouping.clear();
        options.objective =
            candidates ? Objective::Makespan : Objective::MaxLoad;
        all.push_back(options);
      }
  all.emplace_back();
  all.back().budget = Budget::ofEvaluations(60);
  return all;
}

/// A valid placement, or a stated reason. True when there is one.
bool expectSound(const Problem &problem, const PlaceOptions &options) {
  PlaceResult result = place(problem, options);
  if (!result.placement) {
    if (placers::placerNamed(options.placer)->ignoresMemory &&
        result.error.starts_with("the placement of '" + options.placer +
                                 "' is not valid: it needs "))
      return false;
    if (options.placer == "single" &&
        result.error.starts_with("no single device can run the whole graph"))
      return false;
    EXPECT_THAT(result.error, testing::AnyOf(HasSubstr("fit the memories"),
                                             HasSubstr("fits the memories")));
    return false;
  }
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  int64_t value = options.objective == Objective::MaxLoad
                      ? result.maxLoadNs
                      : result.placement->makespanNs;
  EXPECT_LE(result.lowerBoundNs, value);
  // The same input gives the same output.
  PlaceResult again = place(problem, options);
  EXPECT_TRUE(again.placement);
  if (!again.placement)
    return false;
  EXPECT_EQ(again.placement->device, result.placement->device);
  EXPECT_EQ(again.placement->startNs, result.placement->startNs);
  EXPECT_EQ(again.winner, result.winner);
  return true;
}

TEST_P(Random, AmpleMemory) {
  Problem problem = randomProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins or groups contradict each other";
  for (const PlaceOptions &options : allOptions(problem)) {
    // Random kinds and pins may leave no device that runs everything.
    EXPECT_TRUE(expectSound(problem, options) || options.placer == "single");
  }
}

TEST_P(Random, ShortMemory) {
  Problem problem = randomProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins or groups contradict each other";
  int64_t peak = 0;
  PlaceOptions few;
  few.budget = Budget::ofEvaluations(100);
  PlaceResult ample = place(problem, few);
  ASSERT_TRUE(ample.placement);
  for (const DeviceUsage &device : ample.usage)
    peak = std::max(peak, device.peakBytes);
  constexpr int64_t percents[] = {100, 90, 70, 40};
  for (Device &device : problem.machine.devices)
    device.memory = peak * percents[GetParam() % 4] / 100;
  for (const PlaceOptions &options : allOptions(problem))
    expectSound(problem, options);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(0u, 40u));

} // namespace
