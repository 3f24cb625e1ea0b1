//===- PiecesTest.cpp - Where pieces of operators go together ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Pieces.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// Layers of even work, each with a parameter that its pieces read and that
/// their joined results update, by as many pieces as there are; a piece reads
/// its own of the layer before.
Problem trainedInPieces(int32_t layers, int32_t pieces, int32_t devices) {
  Problem problem;
  problem.machine = makeMachine(devices);
  auto &ops = problem.graph.ops;
  auto add = [&](const std::string &name, int64_t time) {
    ops.push_back(makeOp(name, time));
    return static_cast<int32_t>(ops.size()) - 1;
  };
  auto connect = [&](int32_t from, int32_t to) {
    problem.graph.edges.push_back({from, 0, to});
  };
  std::vector<int32_t> before;
  for (int32_t layer = 0; layer < layers; ++layer) {
    std::string name = "l" + std::to_string(layer);
    int32_t weight = add("params/" + name, 0);
    std::vector<int32_t> made;
    for (int32_t k = 0; k < pieces; ++k) {
      made.push_back(add(name + ".piece" + std::to_string(k), 1000));
      connect(weight, made.back());
      if (layer > 0)
        connect(before[k], made.back());
    }
    int32_t sum = add(name + ".sum", 10), update = add("update/" + name, 10);
    for (int32_t piece : made)
      connect(piece, sum);
    connect(sum, update);
    ops[weight].resident = 1000 * (layer + 1);
    ops[weight].group = ops[update].group = name;
    before = made;
  }
  return problem;
}

std::map<std::string, Assignment> proposalsFor(const Problem &problem) {
  Model model(problem);
  std::map<std::string, Assignment> found;
  for (placers::Proposal &proposal : placers::proposePieces(problem, model))
    found[proposal.variant] = std::move(proposal.device);
  return found;
}

int32_t deviceOf(const Problem &problem, const Assignment &device,
                 const std::string &name) {
  const auto &ops = problem.graph.ops;
  auto at = std::find_if(ops.begin(), ops.end(),
                         [&](const Operator &op) { return op.name == name; });
  EXPECT_NE(at, ops.end()) << name;
  return device[static_cast<size_t>(at - ops.begin())];
}

TEST(Pieces, Names) {
  EXPECT_EQ(placers::pieceOf("dense.piece3"), 3);
  EXPECT_EQ(placers::pieceOf("dense.piece12#1"), 12);
  EXPECT_EQ(placers::pieceOf("dense.piece1.piece2"), 2);
  for (const char *name : {"dense", "dense.piece", "dense.pieces", "piece3",
                           "dense.piece3.sum", "dense.piece-1", ""})
    EXPECT_EQ(placers::pieceOf(name), -1) << name;
}

TEST(Pieces, NothingIsProposedWithoutThem) {
  EXPECT_THAT(proposalsFor(diamond()), IsEmpty());
  EXPECT_THAT(proposalsFor(trainedInPieces(2, 1, 2)), IsEmpty());
  EXPECT_THAT(proposalsFor(trainedInPieces(2, 2, 1)), IsEmpty());
}

TEST(Pieces, ALaneADevice) {
  Problem problem = trainedInPieces(4, 4, 2);
  auto found = proposalsFor(problem);
  ASSERT_EQ(found.size(), 7u);
  for (const char *variant :
       {"lanes", "lanes:first", "owners", "lanes:stages", "lanes:rounds"})
    for (int32_t layer = 0; layer < 4; ++layer)
      for (int32_t k = 0; k < 4; ++k)
        EXPECT_EQ(deviceOf(problem, found[variant],
                           "l" + std::to_string(layer) + ".piece" +
                               std::to_string(k)),
                  k / 2)
            << variant;
}

TEST(Pieces, OwnersHaveEvenBytes) {
  // 4000 alone, 3000 and 2000 and 1000 to the one that has fewer.
  Problem problem = trainedInPieces(4, 2, 2);
  auto found = proposalsFor(problem);
  std::vector<int32_t> owners, sums;
  for (int32_t layer = 0; layer < 4; ++layer) {
    std::string name = "l" + std::to_string(layer);
    owners.push_back(deviceOf(problem, found["owners"], "params/" + name));
    sums.push_back(deviceOf(problem, found["owners"], name + ".sum"));
  }
  EXPECT_THAT(owners, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(sums, owners);
}

TEST(Pieces, TheRestIsOnTheFirstDevice) {
  Problem problem = trainedInPieces(4, 4, 2);
  auto found = proposalsFor(problem);
  for (int32_t layer = 0; layer < 4; ++layer) {
    std::string name = "l" + std::to_string(layer);
    for (const std::string &each :
         {"params/" + name, name + ".sum", "update/" + name})
      EXPECT_EQ(deviceOf(problem, found["lanes:first"], each), 0) << each;
  }
}

TEST(Pieces, StagesAreContiguous) {
  Problem problem = trainedInPieces(4, 4, 2);
  auto found = proposalsFor(problem);
  for (int32_t layer = 0; layer < 4; ++layer) {
    std::string name = "l" + std::to_string(layer);
    for (const std::string &each :
         {name + ".piece0", name + ".piece3", "params/" + name, name + ".sum"})
      EXPECT_EQ(deviceOf(problem, found["stages"], each), layer / 2) << each;
  }
}

TEST(Pieces, RoundsAreDealtInTurn) {
  Problem problem = trainedInPieces(4, 4, 2);
  auto found = proposalsFor(problem);
  for (int32_t layer = 0; layer < 4; ++layer)
    EXPECT_EQ(deviceOf(problem, found["rounds"],
                       "l" + std::to_string(layer) + ".piece2"),
              layer % 2);
}

TEST(Pieces, PinsAndKindsHold) {
  Problem problem = trainedInPieces(3, 3, 3);
  problem.graph.ops[1].pin = "d2";
  for (auto &[variant, device] : proposalsFor(problem))
    EXPECT_EQ(device[1], 2) << variant;
}

TEST(Pieces, TakePartInTheContest) {
  Problem problem = trainedInPieces(3, 4, 4);
  PlaceOptions options;
  options.budget = Budget::ofEvaluations(10);
  PlaceResult result = place(problem, options);
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  EXPECT_TRUE(std::any_of(
      result.candidates.begin(), result.candidates.end(),
      [](const Candidate &each) { return each.name == "pieces:lanes"; }));
}

TEST(Pieces, NumbersOfAnySizeAreLanes) {
  Problem problem = trainedInPieces(1, 2, 2);
  problem.graph.ops.push_back(makeOp("x.piece2147483647", 5));
  EXPECT_EQ(placers::pieceOf("x.piece2147483647"), 2147483647);
  for (const auto &[name, device] : proposalsFor(problem))
    EXPECT_EQ(device.size(), problem.graph.ops.size()) << name;
}
} // namespace
