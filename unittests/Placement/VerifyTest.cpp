//===- VerifyTest.cpp - Every violation -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// b on d0, c on d1: worked out by hand. A transfer takes 10 + 10 ns.
Placement diamondOnTwo() {
  Placement placement;
  placement.device = {0, 0, 1, 0};
  placement.startNs = {0, 10, 30, 1050};
  placement.transfers = {{0, 0, 0, 1, 10, 30}, {2, 0, 1, 0, 1030, 1050}};
  placement.makespanNs = 1060;
  return placement;
}

template <typename Change>
void expectViolation(const char *text, Change change) {
  Problem problem = diamond();
  Placement placement = diamondOnTwo();
  change(problem, placement);
  EXPECT_THAT(verify(problem, placement), ElementsAre(HasSubstr(text)));
}

TEST(Verify, ValidByHand) {
  EXPECT_THAT(verify(diamond(), diamondOnTwo()), IsEmpty());
}
TEST(Verify, Shape) {
  expectViolation("4 operators, the placement 3 devices",
                  [](Problem &, Placement &p) { p.device.pop_back(); });
}
TEST(Verify, UnknownDevice) {
  expectViolation("a is on device 2 of 2",
                  [](Problem &, Placement &p) { p.device[0] = 2; });
}
TEST(Verify, Unsupported) {
  expectViolation("c cannot run on d1 (cpu)", [](Problem &q, Placement &) {
    q.machine.devices[1].kind = "cpu";
    q.graph.ops[2].timeNs = {{"gpu", 1000}};
  });
}
TEST(Verify, NegativeStart) {
  expectViolation("negative start: a",
                  [](Problem &, Placement &p) { p.startNs[0] = -1; });
}
TEST(Verify, TwoOperatorsAtOnce) {
  expectViolation("two at once on d0: a [0, 10) and free [5, 10)",
                  [](Problem &q, Placement &p) {
                    q.graph.ops.push_back(makeOp("free", 5));
                    p.device.push_back(0);
                    p.startNs.push_back(5);
                  });
}
TEST(Verify, OperatorsWithoutDurationMayBeAnywhere) {
  Problem problem = diamond();
  Placement placement = diamondOnTwo();
  problem.graph.ops.push_back(makeOp("free", 0));
  placement.device.push_back(0);
  placement.startNs.push_back(5);
  EXPECT_THAT(verify(problem, placement), IsEmpty());
}
TEST(Verify, Pin) {
  expectViolation("c is pinned to d0 and placed on d1",
                  [](Problem &q, Placement &) { q.graph.ops[2].pin = "d0"; });
}
TEST(Verify, Group) {
  expectViolation("group: g has b on d0 and c on d1",
                  [](Problem &q, Placement &) {
                    q.graph.ops[1].group = q.graph.ops[2].group = "g";
                  });
}
TEST(Verify, UnknownTransfer) {
  expectViolation("unknown transfer", [](Problem &, Placement &p) {
    p.transfers.push_back({0, 5, 0, 1, 0, 100});
  });
}
TEST(Verify, TransferTooFast) {
  expectViolation("takes 19 ns, its link needs 20",
                  [](Problem &, Placement &p) { p.transfers[0].startNs = 11; });
}
TEST(Verify, TransferBeforeItsTensor) {
  expectViolation("transfer before its tensor is there: a:0 d0->d1 at 9 ns",
                  [](Problem &, Placement &p) { p.transfers[0].startNs = 9; });
}
TEST(Verify, MovedTwice) {
  expectViolation("moved twice: a:0 d0->d1", [](Problem &, Placement &p) {
    p.transfers.push_back({0, 0, 0, 1, 100, 120});
  });
}
TEST(Verify, NoLink) {
  expectViolation("no link: c:0 d1->d0",
                  [](Problem &q, Placement &) { q.machine.links[2].reset(); });
}
TEST(Verify, NeverMoved) {
  expectViolation("never moved: c:0 to d on d0",
                  [](Problem &, Placement &p) { p.transfers.pop_back(); });
}
TEST(Verify, BeforeItsOperand) {
  expectViolation("before its operand: d starts at 1049 ns",
                  [](Problem &, Placement &p) {
                    p.startNs[3] = 1049;
                    p.makespanNs = 1059;
                  });
}
TEST(Verify, ControlEdgeWaitsForTheLatency) {
  auto withControl = [](int64_t start) {
    return [start](Problem &q, Placement &p) {
      q.graph.ops.push_back(makeOp("late", 1));
      q.graph.edges.push_back({0, -1, 4});
      p.device.push_back(1);
      p.startNs.push_back(start);
    };
  };
  expectViolation("control edge: late starts at 19 ns, a allows 20",
                  withControl(19));
  Problem problem = diamond();
  Placement placement = diamondOnTwo();
  withControl(20)(problem, placement);
  EXPECT_THAT(verify(problem, placement), IsEmpty());
}
TEST(Verify, Makespan) {
  expectViolation("says 1061 ns, the replay gives 1060",
                  [](Problem &, Placement &p) { p.makespanNs = 1061; });
}
TEST(Verify, Memory) {
  // b's operand and result, and the copy of c's result.
  expectViolation(
      "memory: d0 needs 30 bytes at 1050 ns, 29 available",
      [](Problem &q, Placement &) { q.machine.devices[0].memory = 29; });
}

/// Two independent tensors that leave d0 at once, one to d1, one to d2, and a
/// third that comes in: which overlaps does a link model allow?
std::vector<std::string> verifyOverlap(LinkModel model) {
  Problem problem;
  problem.machine = makeMachine(3, 1 << 20, {10, 1000}, model);
  problem.graph.ops = {makeOp("x", 0, {0}), makeOp("y", 0, {0}),
                       makeOp("z", 0, {0}), makeOp("w", 0, {0}),
                       makeOp("use1", 1),   makeOp("use2", 1),
                       makeOp("use0", 1)};
  problem.graph.edges = {{0, 0, 4}, {3, 0, 4}, {1, 0, 5}, {2, 0, 6}};
  Placement placement;
  placement.device = {0, 0, 1, 0, 1, 2, 0};
  placement.startNs = {0, 0, 0, 0, 10, 10, 10};
  placement.transfers = {{0, 0, 0, 1, 0, 10},
                         {1, 0, 0, 2, 0, 10},
                         {2, 0, 1, 0, 0, 10},
                         {3, 0, 0, 1, 0, 10}};
  placement.makespanNs = 11;
  return verify(problem, placement);
}

TEST(Verify, LinkModels) {
  EXPECT_THAT(verifyOverlap(LinkModel::Unlimited), IsEmpty());
  EXPECT_THAT(verifyOverlap(LinkModel::Parallel),
              ElementsAre(HasSubstr("the link d0->d1")));
  // x, y and w leave d0, x and w enter d1.
  EXPECT_THAT(verifyOverlap(LinkModel::Duplex),
              ElementsAre(HasSubstr("incoming side of d1"),
                          HasSubstr("outgoing side of d0"),
                          HasSubstr("outgoing side of d0")));
  EXPECT_THAT(verifyOverlap(LinkModel::Sequential),
              ElementsAre(HasSubstr("copy engine of d0"),
                          HasSubstr("copy engine of d0"),
                          HasSubstr("copy engine of d0"),
                          HasSubstr("copy engine of d1"),
                          HasSubstr("copy engine of d1")));
}

TEST(Usage, OfTheDiamond) {
  auto devices = usage(diamond(), diamondOnTwo());
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].busyNs, 1020);
  EXPECT_EQ(devices[0].operators, 3);
  EXPECT_EQ(devices[0].peakBytes, 30);
  EXPECT_EQ(devices[0].sentBytes, 10);
  EXPECT_EQ(devices[1].busyNs, 1000);
  EXPECT_EQ(devices[1].peakBytes, 20);
}

TEST(Usage, ResultsLiveToTheEnd) {
  Problem problem = diamond();
  problem.graph.ops[0].result = true;
  problem.graph.ops[0].resident = 5;
  // a's output, b's and d's results and the copy of c's, and the parameter.
  auto devices = usage(problem, diamondOnTwo());
  EXPECT_EQ(devices[0].residentBytes, 5);
  EXPECT_EQ(devices[0].peakBytes, 45);
  EXPECT_EQ(devices[0].peakAtNs, 1050);
}

} // namespace
