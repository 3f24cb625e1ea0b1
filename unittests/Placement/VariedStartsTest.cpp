//===- VariedStartsTest.cpp - m-ETF under varied urgencies ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/VariedStarts.h"
#include "TestProblems.h"

#include "Schedule/Schedule.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::IsEmpty;
using testing::SizeIs;

namespace {

/// Two chains of layers that share their devices layer by layer; the second
/// takes twice as long. The first can keep ahead of the second only when its
/// first layer goes before that of the second, which is more urgent.
Problem twoChains(int32_t layers) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int64_t time : {1000, 2000})
    for (int32_t k = 0; k < layers; ++k) {
      auto id = static_cast<int32_t>(problem.graph.ops.size());
      problem.graph.ops.push_back(
          makeOp("op" + std::to_string(id), time + 10 * k, {1}));
      problem.graph.ops.back().group = "layer" + std::to_string(k);
      if (k > 0)
        problem.graph.edges.push_back({id - 1, 0, id});
    }
  return problem;
}

int64_t makespanOf(const Model &model, const placers::EarliestStart &found) {
  int64_t makespan = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    makespan =
        std::max(makespan, found.start[i] + model.timeOf(i, found.device[i]));
  return makespan;
}

TEST(VariedStarts, BeatTheMostUrgentFirst) {
  Problem problem = twoChains(8);
  Model model(problem);
  auto starts = search::variedStarts(model, 3, 1);
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_LT(makespanOf(model, starts[0]),
            makespanOf(model, placers::earliestStart(model)));
  EXPECT_LT(makespanOf(model, starts[0]), makespanOf(model, starts[1]));
  EXPECT_LT(makespanOf(model, starts[1]), makespanOf(model, starts[2]));
}

TEST(VariedStarts, AreTheSameForTheSameSeed) {
  Problem problem = twoChains(6);
  Model model(problem);
  auto first = search::variedStarts(model, 2, 7),
       second = search::variedStarts(model, 2, 7);
  ASSERT_EQ(first.size(), second.size());
  for (size_t k = 0; k < first.size(); ++k) {
    EXPECT_EQ(first[k].device, second[k].device);
    EXPECT_EQ(first[k].start, second[k].start);
  }
}

TEST(VariedStarts, NoneWhereThereIsNoChoiceOrNoTime) {
  Problem problem = twoChains(2);
  problem.machine = makeMachine(1);
  EXPECT_THAT(search::variedStarts(Model(problem), 3, 1), IsEmpty());
  problem = twoChains(10000);
  EXPECT_THAT(search::variedStarts(Model(problem), 3, 1), IsEmpty());
}

} // namespace
