//===- EvaluatorTest.cpp - The search's evaluator ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Evaluator.h"
#include "Model/Random.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

class Agreement : public testing::TestWithParam<uint32_t> {};

/// The evaluator is the scheduler, to the nanosecond.
TEST_P(Agreement, WithTheScheduler) {
  Problem problem = randomProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "contradictory";
  Model model(problem);
  Scheduler scheduler(model);
  Evaluator evaluator(model);
  Random random(GetParam());
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<int32_t> units(model.numUnits);
    for (Unit u = 0; u < model.numUnits; ++u)
      do
        units[u] = random.below(model.numDevices);
      while (!model.mayUse(u, units[u]));
    Assignment device(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      device[i] = units[model.unit[i]];
    Schedule expected, found;
    int64_t makespan = scheduler.run(device, {}, &expected);
    ASSERT_EQ(evaluator.run(units, {}, never, &found), makespan);
    if (makespan == never)
      continue;
    EXPECT_EQ(evaluator.run(units, {}, makespan), makespan);
    EXPECT_EQ(evaluator.run(units, {}, makespan - 1), never);
    // Shifted urgencies, as the scheduler takes them.
    std::vector<int64_t> offset(model.numUnits), priority(model.numNodes);
    for (int64_t &ns : offset)
      ns = random.below(2000) - 1000;
    for (int32_t i = 0; i < model.numNodes; ++i)
      priority[i] =
          std::max<int64_t>(0, scheduler.tails()[i] + offset[model.unit[i]]);
    Scheduler::Options options;
    options.priority = priority;
    makespan = scheduler.run(device, options, &expected);
    EXPECT_EQ(evaluator.run(units, offset, never, &found), makespan);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Agreement, testing::Range(0u, 60u));

} // namespace
