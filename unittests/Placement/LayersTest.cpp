//===- LayersTest.cpp - Placements that people write by hand ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Layers.h"
#include "Schedule/Schedule.h"
#include "Session/GroupingSteps.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <map>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// A chain of layers, each a group; of layer k the times of its operators.
Problem chainOf(const std::vector<std::vector<int64_t>> &layers,
                int32_t devices) {
  Problem problem;
  problem.machine = makeMachine(devices);
  for (size_t layer = 0; layer < layers.size(); ++layer)
    for (int64_t time : layers[layer]) {
      auto number = static_cast<int32_t>(problem.graph.ops.size());
      problem.graph.ops.push_back(makeOp("op" + std::to_string(number), time));
      problem.graph.ops.back().group = "l" + std::to_string(layer);
      if (number > 0)
        problem.graph.edges.push_back({number - 1, 0, number});
    }
  return problem;
}

std::map<std::string, Assignment> proposalsFor(const Problem &problem,
                                               const std::string &step) {
  Model model(problem);
  std::vector<Unit> groupOf =
      session::applySteps(problem, model, {step}).coarsening.unit;
  std::map<std::string, Assignment> found;
  for (placers::Proposal &proposal :
       placers::proposeLayers(problem, model, groupOf)) {
    EXPECT_FALSE(proposal.mayRepair);
    found[proposal.variant] = proposal.device;
  }
  return found;
}

std::map<std::string, Assignment> proposalsFor(const Problem &problem) {
  return proposalsFor(problem, "colocate");
}

TEST(Layers, AreDealtInTurnAndInBlocks) {
  auto found = proposalsFor(chainOf({{100}, {100}, {100}, {100}, {400}}, 2));
  EXPECT_THAT(found.at("turn"), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(found.at("snake"), ElementsAre(0, 1, 1, 0, 0));
  EXPECT_THAT(found.at("blocks:2"), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(found.at("work:2"), ElementsAre(0, 0, 0, 0, 1));
}

TEST(Layers, OfOneKindHaveAboutAsManyOperators) {
  auto found = proposalsFor(
      chainOf({{50, 50}, {50, 50}, {50, 50}, {50, 50}, {90}, {90}}, 2));
  EXPECT_THAT(found.at("kinds"), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(found.at("kinds:blocks"),
              ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 0, 1));
  // The same as all layers in turn: proposed once.
  EXPECT_EQ(found.count("kinds:turn"), 0u);
}

TEST(Layers, WhatDoesLittleFollowsWhatItReads) {
  auto found = proposalsFor(chainOf({{1}, {1000}, {1}, {1000}, {1}}, 2));
  EXPECT_THAT(found.at("turn"), ElementsAre(0, 0, 0, 1, 1));
}

TEST(Layers, ArePlacedWhereTheyMayBe) {
  Problem problem = chainOf({{100}, {100}, {100}, {100}}, 2);
  problem.graph.ops[1].pin = "d0";
  for (const auto &[variant, device] : proposalsFor(problem))
    EXPECT_EQ(device[1], 0) << variant;
}

TEST(Layers, NeedTwoDevicesAndTwoLayers) {
  EXPECT_THAT(proposalsFor(chainOf({{100}, {100}}, 1)), IsEmpty());
  EXPECT_THAT(proposalsFor(chainOf({{100}, {0}}, 2)), IsEmpty());
}

/// Whatever the seed and the budget, no such placement is better than the
/// answer.
TEST(Layers, AreNeverBetterThanTheAnswer) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<int64_t>> layers(12);
    for (auto &layer : layers)
      layer.assign(1 + random() % 4, 1000 + random() % 20'000);
    Problem problem = chainOf(layers, 3);
    // Some also read one that is far before them.
    auto count = static_cast<int32_t>(problem.graph.ops.size());
    for (int32_t i = 8; i < count; i += 3)
      problem.graph.edges.push_back(
          {static_cast<int32_t>(random() % (i - 1)), 0, i});
    PlaceOptions options;
    options.placer = "mtopo";
    options.seed = seed;
    options.budget = Budget::ofEvaluations(20);
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    auto proposals = proposalsFor(problem, "coplace");
    EXPECT_FALSE(proposals.empty());
    Model model(problem);
    Scheduler scheduler(model);
    for (const auto &[variant, device] : proposals)
      EXPECT_LE(result.placement->makespanNs, scheduler.run(device))
          << variant << ", seed " << seed;
  }
}

} // namespace
