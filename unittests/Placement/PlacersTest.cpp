//===- PlacersTest.cpp - m-TOPO, m-ETF, m-SCT -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Placers.h"
#include "Lp/Favourites.h"
#include "TestProblems.h"

#include "Baechi/Placement/Lp/NativeSolver.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::Each;
using testing::ElementsAre;

namespace {

TEST(FillInOrder, SharesMemoryInTopologicalOrder) {
  Problem problem;
  problem.machine = makeMachine(2, 1000);
  for (int32_t i = 0; i < 6; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {}));
    problem.graph.ops.back().resident = 100;
    if (i > 0)
      problem.graph.edges.push_back({i - 1, -1, i});
  }
  // 600 / 2 + 100: four on the first, the others on the second.
  EXPECT_THAT(placers::fillInOrder(Model(problem)),
              ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(FillInOrder, NeverAboveTheDevicesMemory) {
  Problem problem;
  problem.machine = makeMachine(2, 1000);
  problem.machine.devices[0].memory = 150;
  for (int i = 0; i < 6; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {}));
    problem.graph.ops.back().resident = 100;
  }
  EXPECT_THAT(placers::fillInOrder(Model(problem)),
              ElementsAre(0, 1, 1, 1, 1, 1));
}

TEST(FillInOrder, UnlikeDevicesShareWhatTheSmallOneCannotTake) {
  Problem problem;
  problem.machine = makeMachine(3, 1000);
  problem.machine.devices[1].memory = 100;
  for (int i = 0; i < 9; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {}));
    problem.graph.ops.back().resident = 100;
  }
  // (900 - 100) / 2 + 100: five on the first, one on the small one, the others
  // on the last.
  EXPECT_THAT(placers::fillInOrder(Model(problem)),
              ElementsAre(0, 0, 0, 0, 0, 1, 2, 2, 2));
}

TEST(FillInOrder, NonUniformOpensADeviceWhenOneIsFull) {
  Problem problem;
  problem.machine = makeMachine(3, 250);
  problem.machine.devices[0].memory = 300;
  for (int i = 0; i < 6; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {}));
    problem.graph.ops.back().resident = 100;
  }
  Model model(problem);
  EXPECT_THAT(placers::fillInOrder(model, placers::Fill::NonUniform),
              ElementsAre(0, 0, 0, 1, 1, 2));
  EXPECT_THAT(placers::fillInOrder(model, placers::Fill::Uniform),
              ElementsAre(0, 0, 0, 1, 1, 2));
  problem.machine = makeMachine(3, 1000);
  Model ample(problem);
  EXPECT_THAT(placers::fillInOrder(ample, placers::Fill::NonUniform), Each(0));
  EXPECT_THAT(placers::fillInOrder(ample, placers::Fill::Uniform),
              ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(FillInOrder, WithoutMemoryItSharesWork) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int i = 0; i < 6; ++i)
    problem.graph.ops.push_back(makeOp("op", 10, {}));
  EXPECT_THAT(placers::fillInOrder(Model(problem)),
              ElementsAre(0, 0, 0, 0, 1, 1));
}

TEST(FillInOrder, GroupsGoWhereTheirFirstOperatorGoes) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int32_t i = 0; i < 8; ++i) {
    problem.graph.ops.push_back(makeOp("op", 10, {}));
    problem.graph.ops.back().resident = 100;
    if (i > 0)
      problem.graph.edges.push_back({i - 1, -1, i});
  }
  problem.graph.ops[0].group = problem.graph.ops[7].group = "g";
  problem.graph.ops[1].pin = "d1";
  // The group needs 200 of 800 / 2 + 200 on the first.
  EXPECT_THAT(placers::fillInOrder(Model(problem)),
              ElementsAre(0, 1, 0, 0, 0, 0, 1, 0));
}

TEST(EarliestStart, ForkRunsInParallelWhenThatPays) {
  Problem wide = diamond(/*work=*/1000, /*bytes=*/10);
  placers::EarliestStart result = placers::earliestStart(Model(wide));
  EXPECT_NE(result.device[1], result.device[2]);
  // A transfer of 10 us against work of 1 us: all on one device.
  Problem narrow = diamond(/*work=*/1000, /*bytes=*/10000);
  EXPECT_THAT(placers::earliestStart(Model(narrow)).device, Each(0));
}

TEST(EarliestStart, GroupFollowsItsFirstOperator) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 100), makeOp("b", 100), makeOp("c", 100),
                       makeOp("d", 100)};
  problem.graph.ops[0].group = problem.graph.ops[3].group = "g";
  placers::EarliestStart result = placers::earliestStart(Model(problem));
  EXPECT_EQ(result.device[0], result.device[3]);
}

TEST(EarliestStart, GroupIsChargedAtOnce) {
  // The group needs 90 of 100 bytes though its first operator holds none: the
  // 20 bytes of `other` must go elsewhere.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  problem.graph.ops = {makeOp("first", 100, {}), makeOp("last", 100, {}),
                       makeOp("other", 50, {})};
  problem.graph.ops[0].group = problem.graph.ops[1].group = "g";
  problem.graph.ops[1].resident = 90;
  problem.graph.ops[2].resident = 20;
  problem.graph.edges = {{0, -1, 1}, {0, -1, 2}};
  placers::EarliestStart result = placers::earliestStart(Model(problem));
  EXPECT_NE(result.device[2], result.device[0]);
}

TEST(EarliestStart, UnlimitedDoesNotLookAtMemory) {
  // Two independent operators of 60 bytes and a third that follows the first:
  // on its device it can start at once, but there is no room.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  problem.graph.ops = {makeOp("a", 100, {1000}), makeOp("b", 1000, {}),
                       makeOp("c", 100, {})};
  for (Output &output : problem.graph.ops[0].outputs)
    output.memory = output.copy = 0;
  for (Operator &op : problem.graph.ops)
    op.resident = 60;
  problem.graph.ops[1].resident = 20;
  problem.graph.edges = {{0, 0, 2}};
  Model model(problem);
  EXPECT_THAT(placers::earliestStart(model).device, ElementsAre(0, 1, 1));
  EXPECT_THAT(placers::earliestStart(model, {}, /*limited=*/false).device,
              ElementsAre(0, 1, 0));
}

TEST(EarliestStart, ParametersFollowTheirFirstConsumer) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("w0", 0, {1000000}), makeOp("w1", 0, {1000000}),
                       makeOp("x0", 100, {1}), makeOp("x1", 100, {1})};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}};
  placers::EarliestStart result = placers::earliestStart(Model(problem));
  EXPECT_NE(result.device[2], result.device[3]);
  EXPECT_EQ(result.device[0], result.device[2]);
  EXPECT_EQ(result.device[1], result.device[3]);
}

TEST(EarliestStart, PinnedParametersStay) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("w", 0, {1000000}), makeOp("x", 100, {1})};
  problem.graph.ops[0].pin = "d1";
  problem.graph.edges = {{0, 0, 1}};
  EXPECT_THAT(placers::earliestStart(Model(problem)).device, ElementsAre(1, 1));
}

TEST(EarliestStart, SlowDevicesDoNotWinByBeingIdle) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.machine.devices[0].kind = "cpu";
  for (int i = 0; i < 4; ++i) {
    problem.graph.ops.push_back(makeOp("op", 0, {}));
    problem.graph.ops.back().timeNs = {{"gpu", 10}, {"cpu", 10000}};
  }
  EXPECT_THAT(placers::earliestStart(Model(problem)).device, Each(1));
}

TEST(EarliestStart, AnAwakeDeviceWaitsForTheFavouriteChild) {
  // On d0 after `a`: the favourite `b` waits for `slow` on d1 until 60, `c`
  // could come in between and would delay it. `c` may start elsewhere, so it
  // is not urgent.
  Problem problem;
  problem.machine = makeMachine(3, 1 << 20, {0, 1000});
  problem.graph.ops = {makeOp("a", 50, {100000}), makeOp("slow", 60, {1}),
                       makeOp("b", 50, {1}), makeOp("c", 50, {1})};
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[1].pin = "d1";
  problem.graph.edges = {{0, 0, 2}, {1, 0, 2}};
  Model model(problem);
  std::vector<int32_t> favourites{2, -1, -1, -1};
  placers::EarliestStart result = placers::earliestStart(model, favourites);
  EXPECT_EQ(result.device[2], 0);
  EXPECT_EQ(result.start[2], 61);
  EXPECT_NE(result.device[3], 0);
}

TEST(Favourites, AreAMatching) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    Model model(problem);
    std::vector<std::string> notes;
    auto child = lp::favouriteChildren(model, nullptr, 1, notes);
    std::vector<int> parents(model.numNodes, 0);
    for (int32_t i = 0; i < model.numNodes; ++i) {
      if (child[i] < 0)
        continue;
      EXPECT_LE(++parents[child[i]], 1);
      bool isUser = false;
      model.forEachUser(i, [&](int32_t user) { isUser |= user == child[i]; });
      EXPECT_TRUE(isUser);
    }
    EXPECT_TRUE(notes.empty());
  }
}

/// Says that it ran out of time.
class SlowSolver : public LpSolver {
public:
  std::string name() const override { return "slow"; }
  LpSolution solve(const LpProgram &, double) const override {
    LpSolution solution;
    solution.note = "reached its time limit";
    return solution;
  }
};

TEST(Favourites, FallBackIsReported) {
  Problem problem = diamond();
  Model owned(problem);
  SlowSolver solver;
  std::vector<std::string> notes, ignored;
  EXPECT_EQ(
      lp::favouriteChildren(owned, &solver, 1, notes),
      lp::favouriteChildren(owned, createGreedySolver().get(), 1, ignored));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("reached its time limit"), std::string::npos);
}

} // namespace
