//===- ExplainTest.cpp - Why operators are where they are -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Study/Explain.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// a and b of `diamond()` on d0, c and d on d1.
Placement split() {
  Placement placement;
  placement.device = {0, 0, 1, 1};
  placement.startNs = {0, 10, 30, 1030};
  placement.transfers = {{0, 0, 0, 1, 10, 30}, {1, 0, 0, 1, 1010, 1030}};
  placement.makespanNs = 1040;
  return placement;
}

Explanation explained(const Problem &problem, const Placement &placement,
                      int32_t op, bool reschedule = true) {
  EXPECT_THAT(check(problem), IsEmpty());
  EXPECT_THAT(verify(problem, placement), IsEmpty());
  ExplainOptions options;
  options.reschedule = reschedule;
  return Explainer(problem, placement, options).explain(op);
}

TEST(Explain, OperandsThatComeOverALink) {
  Problem problem = diamond();
  Explanation e = explained(problem, split(), 3);
  EXPECT_EQ(e.device, 1);
  EXPECT_EQ(e.startNs, 1030);
  EXPECT_EQ(e.timeNs, 10);
  ASSERT_EQ(e.devices.size(), 2u);
  // b is on d0, c ends at 1030 and would take 20 to come from d1.
  const DeviceChoice &other = e.devices[0];
  EXPECT_EQ(other.limit, Limit::None);
  EXPECT_EQ(other.arrivalNs, 1050);
  EXPECT_EQ(other.startNs, 1050);
  EXPECT_EQ(other.lastOperand, 2);
  EXPECT_EQ(other.lastOutput, 0);
  EXPECT_EQ(other.lastFrom, 1);
  EXPECT_EQ(other.occupant, -1);
  EXPECT_EQ(other.makespanNs, 1060);
  // Its result and a copy of c's.
  EXPECT_EQ(other.neededBytes, 20);
  const DeviceChoice &own = e.devices[1];
  EXPECT_EQ(own.arrivalNs, 1030);
  EXPECT_EQ(own.startNs, 1030);
  EXPECT_EQ(own.makespanNs, 1040);
  EXPECT_THAT(e.why, HasSubstr("No other device could finish it earlier"));
}

TEST(Explain, ADeviceThatIsBusy) {
  Problem problem = diamond();
  Explanation e = explained(problem, split(), 2);
  // a is there at 10; then d0 runs b.
  EXPECT_EQ(e.devices[0].arrivalNs, 10);
  EXPECT_EQ(e.devices[0].lastOperand, 0);
  EXPECT_EQ(e.devices[0].lastFrom, 0);
  EXPECT_EQ(e.devices[0].startNs, 1010);
  EXPECT_EQ(e.devices[0].occupant, 1);
  // Both on d0, then the later one's result to d1.
  EXPECT_EQ(e.devices[0].makespanNs, 10 + 2000 + 20 + 10);
  std::string text = explanationText(problem, e);
  EXPECT_THAT(text, HasSubstr("operator 2 'c' is on d1"));
  EXPECT_THAT(text, HasSubstr("then the device runs 'b'"));
}

TEST(Explain, OneUnitInASentence) {
  Problem problem = diamond();
  Explanation e = explained(problem, split(), 1);
  EXPECT_THAT(explanationText(problem, e),
              HasSubstr("is on d0 from 10 ns to 1010 ns\n"));
  // Milliseconds where nanoseconds would be long.
  constexpr int64_t work = 2'000'000;
  Placement longer = split();
  longer.startNs[3] += work - 1000;
  longer.transfers[1].startNs += work - 1000;
  longer.transfers[1].endNs += work - 1000;
  longer.makespanNs += work - 1000;
  Problem slow = diamond(work);
  EXPECT_THAT(explanationText(slow, explained(slow, longer, 1)),
              HasSubstr("is on d0 from 0.000 ms to 2.000 ms\n"));
}

TEST(Explain, LinksThatAreBusy) {
  // x must come from d0, whose copy engine is busy with `big` until 10 + 110.
  Problem problem;
  problem.machine = makeMachine(3);
  problem.graph.ops = {makeOp("x", 10, {10}), makeOp("big", 0, {100}),
                       makeOp("reader", 5), makeOp("y", 5)};
  problem.graph.edges = {{0, 0, 3}, {1, 0, 2}};
  problem.graph.ops[1].timeNs = {{"", 10}};
  Placement placement;
  placement.device = {0, 0, 1, 0};
  placement.startNs = {10, 0, 120, 20};
  placement.transfers = {{1, 0, 0, 1, 10, 120}};
  placement.makespanNs = 125;
  Explanation e = explained(problem, placement, 3);
  EXPECT_EQ(e.devices[0].startNs, 20);
  EXPECT_EQ(e.devices[2].arrivalNs, 120 + 20);
  for (LinkModel model : {LinkModel::Unlimited, LinkModel::Parallel}) {
    problem.machine.linkModel = model;
    EXPECT_EQ(explained(problem, placement, 3).devices[2].arrivalNs, 20 + 20);
  }
  problem.machine.linkModel = LinkModel::Duplex;
  EXPECT_EQ(explained(problem, placement, 3).devices[2].arrivalNs, 120 + 20);
}

TEST(Explain, OperandsShareALink) {
  // p and q are both on d0; on d1 their transfers follow each other.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("p", 10, {10}), makeOp("q", 10, {10}),
                       makeOp("r", 5)};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 2}};
  Placement placement;
  placement.device = {0, 0, 0};
  placement.startNs = {0, 10, 20};
  placement.makespanNs = 25;
  EXPECT_EQ(explained(problem, placement, 2).devices[1].arrivalNs,
            10 + 20 + 20);
  problem.machine.linkModel = LinkModel::Unlimited;
  EXPECT_EQ(explained(problem, placement, 2).devices[1].arrivalNs, 20 + 20);
}

TEST(Explain, ControlEdgesTakeTheLatency) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("p", 10), makeOp("q", 5)};
  problem.graph.edges = {{0, -1, 1}};
  Placement placement;
  placement.device = {0, 0};
  placement.startNs = {0, 10};
  placement.makespanNs = 15;
  Explanation e = explained(problem, placement, 1);
  EXPECT_EQ(e.devices[1].arrivalNs, 20);
  EXPECT_EQ(e.devices[1].lastOutput, -1);
  EXPECT_THAT(explanationText(problem, e), HasSubstr("'p' ends at"));
}

TEST(Explain, LimitsByKindAndPin) {
  Problem problem = diamond();
  problem.machine.devices[0].kind = "cpu";
  problem.graph.ops[2].timeNs = {{"gpu", 1000}};
  Explanation e = explained(problem, split(), 2);
  EXPECT_EQ(e.devices[0].limit, Limit::Kind);
  EXPECT_EQ(e.devices[0].reason, "it has no time for the kind 'cpu'");
  EXPECT_THAT(e.why, HasSubstr("No other device can take it"));
  problem.graph.ops[3].pin = "d1";
  e = explained(problem, split(), 3);
  EXPECT_EQ(e.devices[0].limit, Limit::Pin);
  EXPECT_THAT(e.why, HasSubstr("It is pinned to d1"));
}

TEST(Explain, LimitsByGroup) {
  Problem problem = diamond();
  problem.graph.ops[2].group = problem.graph.ops[3].group = "g";
  problem.graph.ops[3].pin = "d1";
  Explanation e = explained(problem, split(), 2);
  EXPECT_EQ(e.groupSize, 2);
  EXPECT_EQ(e.devices[0].limit, Limit::Group);
  EXPECT_EQ(e.devices[0].reason, "its group 'g' is pinned to d1 by 'd'");
  problem.graph.ops[3].pin.reset();
  problem.machine.devices[0].kind = "cpu";
  problem.graph.ops[3].timeNs = {{"gpu", 10}};
  e = explained(problem, split(), 2);
  EXPECT_EQ(e.devices[0].limit, Limit::Group);
  EXPECT_EQ(e.devices[0].reason,
            "'d' of its group 'g' has no time for the kind 'cpu'");
}

TEST(Explain, AGroupMovesAsOne) {
  Problem problem = diamond();
  problem.graph.ops[2].group = problem.graph.ops[3].group = "g";
  Explanation e = explained(problem, split(), 3);
  // c would be on d0 as well: nothing has to come back.
  EXPECT_EQ(e.devices[0].arrivalNs, 1030);
  EXPECT_EQ(e.devices[0].makespanNs, 10 + 2000 + 10);
}

TEST(Explain, LimitsByLink) {
  Problem problem = diamond();
  problem.machine = makeMachine(3);
  auto &links = problem.machine.links;
  links[0 * 3 + 2].reset();
  links[1 * 3 + 2].reset();
  links[2 * 3 + 1].reset();
  Explanation e = explained(problem, split(), 2);
  EXPECT_EQ(e.devices[2].limit, Limit::Link);
  EXPECT_THAT(e.devices[2].reason,
              testing::AnyOf("there is no link to it from d0, where 'a' is",
                             "there is no link from it to d1, where 'd' is"));
}

TEST(Explain, LimitsByMemory) {
  Problem problem = diamond();
  problem.graph.ops[2].resident = 100;
  problem.machine.devices[0].memory = 50;
  for (bool reschedule : {true, false}) {
    Explanation e = explained(problem, split(), 2, reschedule);
    EXPECT_EQ(e.devices[0].limit, Limit::Memory);
    EXPECT_EQ(e.devices[0].neededBytes, 110);
    // b runs then: its result, and nothing of a's that others still need.
    EXPECT_LT(e.devices[0].freeBytes, 50);
    EXPECT_THAT(e.devices[0].reason, HasSubstr("it needs 110 B there"));
    EXPECT_EQ(e.devices[0].makespanNs, std::nullopt);
  }
}

TEST(Explain, SaysWhatTheSearchHasNotFound) {
  // All on d0 although b and c could run side by side.
  Problem problem = diamond();
  Placement placement;
  placement.device = {0, 0, 0, 0};
  placement.startNs = {0, 10, 1010, 2010};
  placement.makespanNs = 2020;
  Explanation e = explained(problem, placement, 2);
  EXPECT_EQ(e.devices[1].startNs, 30);
  EXPECT_EQ(e.devices[1].makespanNs, 1060);
  EXPECT_THAT(e.why, HasSubstr("d1 could finish it"));
  EXPECT_THAT(e.why, HasSubstr("A longer search may find that"));
}

TEST(Explain, EveryOperatorOfRandomPlacements) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = randomProblem(seed);
    PlaceOptions options;
    options.budget = Budget::none();
    PlaceResult result = place(problem, options);
    if (!result.placement)
      continue;
    const Placement &placement = *result.placement;
    Explainer explainer(problem, placement);
    for (size_t i = 0; i < problem.graph.ops.size(); ++i) {
      Explanation e = explainer.explain(static_cast<int32_t>(i));
      ASSERT_EQ(e.devices.size(), problem.machine.devices.size());
      const DeviceChoice &own = e.devices[e.device];
      EXPECT_EQ(own.limit, Limit::None) << own.reason;
      EXPECT_LE(own.arrivalNs, e.startNs);
      EXPECT_LE(own.startNs, e.startNs);
      EXPECT_LE(own.neededBytes, own.freeBytes);
      EXPECT_FALSE(e.why.empty());
      for (const DeviceChoice &choice : e.devices) {
        EXPECT_EQ(choice.limit == Limit::None, choice.reason.empty());
        if (choice.limit == Limit::None) {
          EXPECT_GE(choice.startNs, choice.arrivalNs);
          ASSERT_TRUE(choice.makespanNs);
          EXPECT_GE(*choice.makespanNs, result.lowerBoundNs);
        }
        if (choice.limit != Limit::Kind && choice.limit != Limit::Pin)
          continue;
        Placement moved = placement;
        moved.device[i] = choice.device;
        EXPECT_FALSE(verify(problem, moved).empty());
      }
      EXPECT_FALSE(explanationText(problem, e).empty());
    }
  }
}

TEST(Explain, ManyAtOnce) {
  Problem problem = diamond();
  Placement placement = split();
  Explainer explainer(problem, placement);
  std::vector<int32_t> ops{1, 2};
  SetExplanation e = explainer.explainSet(ops);
  EXPECT_EQ(e.operators, 2);
  ASSERT_EQ(e.devices.size(), 2u);
  EXPECT_EQ(e.devices[0].operators, 1);
  EXPECT_EQ(e.devices[0].timeNs, 1000);
  EXPECT_EQ(e.devices[0].makespanNs, 10 + 2000 + 20 + 10);
  EXPECT_THAT(explanationText(problem, e), HasSubstr("2 operators"));
  problem.graph.ops[2].pin = "d1";
  Explainer pinned(problem, placement);
  e = pinned.explainSet(ops);
  EXPECT_EQ(e.devices[0].limit, Limit::Pin);
  EXPECT_EQ(e.devices[0].reason, "'c': it is pinned to d1");
}

TEST(Explain, ByTheLargestLoad) {
  Problem problem = diamond();
  Placement placement = split();
  ExplainOptions options;
  options.objective = Objective::MaxLoad;
  Explanation e = Explainer(problem, placement, options).explain(2);
  EXPECT_EQ(e.maxLoadNs, 1010);
  EXPECT_EQ(e.devices[0].maxLoadNs, 2010);
  EXPECT_THAT(explanationText(problem, e), HasSubstr("largest load if moved"));
}

std::string found(const std::string &pattern, std::vector<int32_t> &ops) {
  Graph graph;
  graph.ops = {makeOp("enc/l0/mul", 1), makeOp("enc/l1/mul", 1),
               makeOp("dec[0]", 1), makeOp("7", 1)};
  return findOperators(graph, pattern, ops);
}

TEST(FindOperators, ByNameNumberAndPattern) {
  std::vector<int32_t> ops;
  EXPECT_EQ(found("enc/l1/mul", ops), "");
  EXPECT_THAT(ops, ElementsAre(1));
  EXPECT_EQ(found("dec[0]", ops), "");
  EXPECT_THAT(ops, ElementsAre(2));
  EXPECT_EQ(found("enc/*", ops), "");
  EXPECT_THAT(ops, ElementsAre(0, 1));
  EXPECT_EQ(found("enc/l[1-9]/mul", ops), "");
  EXPECT_THAT(ops, ElementsAre(1));
  EXPECT_EQ(found("2", ops), "");
  EXPECT_THAT(ops, ElementsAre(2));
  // A name goes before a number.
  EXPECT_EQ(found("7", ops), "");
  EXPECT_THAT(ops, ElementsAre(3));
}

TEST(FindOperators, SuggestsWhatIsClosest) {
  std::vector<int32_t> ops;
  EXPECT_THAT(found("enc/l1/mull", ops), HasSubstr("'enc/l1/mul'?"));
  EXPECT_THAT(found("Enc/l0/mul", ops), HasSubstr("'enc/l0/mul'?"));
  EXPECT_THAT(found("mul", ops), HasSubstr("2 names contain it, such as "
                                           "'enc/l0/mul': use '*mul*'"));
  EXPECT_THAT(found("9", ops), HasSubstr("the graph has 4"));
  for (const char *far : {"99999999999999999999", "", "zzzz"})
    EXPECT_THAT(found(far, ops), HasSubstr("no name is like it; there are "
                                           "'enc/l0/"));
  EXPECT_THAT(ops, IsEmpty());
  EXPECT_THAT(findOperators({}, "x", ops), HasSubstr("the graph is empty"));
}

} // namespace
