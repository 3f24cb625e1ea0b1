//===- AssignmentEvaluatorTest.cpp - Many assignments -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Search/AssignmentEvaluator.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::unique_ptr<AssignmentEvaluator> make(const Problem &problem) {
  std::string error;
  auto evaluator = AssignmentEvaluator::create(problem, error);
  EXPECT_EQ(error, "");
  return evaluator;
}

std::string errorOf(const Problem &problem, std::vector<int32_t> device,
                    std::vector<int32_t> order = {}) {
  int64_t ns = 0;
  return make(problem)->makespan(device, order, ns);
}

class Replay : public testing::TestWithParam<uint32_t> {};

/// Time and peaks are those of the placement that `verify` replays, where it
/// fits; with any order, too.
TEST_P(Replay, AgreesWithVerify) {
  Problem problem = randomProblem(GetParam());
  for (Device &device : problem.machine.devices)
    device.memory = int64_t(1) << 40;
  if (!check(problem).empty())
    GTEST_SKIP() << "contradictory";
  auto evaluator = make(problem);
  size_t n = problem.graph.ops.size();
  std::mt19937 random(GetParam());
  for (int trial = 0; trial < 10; ++trial) {
    std::vector<int32_t> ofUnit(evaluator->numUnits());
    for (int32_t u = 0; u < evaluator->numUnits(); ++u)
      do
        ofUnit[u] =
            static_cast<int32_t>(random() % problem.machine.devices.size());
      while (!evaluator->mayUse(u, ofUnit[u]));
    std::vector<int32_t> device, order;
    for (int32_t u : evaluator->units())
      device.push_back(ofUnit[u]);
    if (trial % 2) {
      order.resize(n);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
    }
    Evaluation found;
    std::string error = evaluator->evaluate(device, order, found);
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr("no link"));
      continue;
    }
    int64_t ns = 0;
    EXPECT_EQ(evaluator->makespan(device, order, ns), "");
    EXPECT_EQ(ns, found.makespanNs);
    Placement placement;
    ASSERT_EQ(evaluator->schedule(device, order, placement), "");
    EXPECT_EQ(placement.device, device);
    EXPECT_EQ(placement.makespanNs, found.makespanNs);
    std::vector<DeviceUsage> usage;
    EXPECT_THAT(verify(problem, placement, &usage), ElementsAre());
    for (size_t d = 0; d < usage.size(); ++d)
      EXPECT_EQ(usage[d].peakBytes, found.peakBytes[d]);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Replay, testing::Range(1u, 40u));

TEST(AssignmentEvaluator, TheOrderDecidesWhatRunsFirst) {
  // b and c are ready at once on one device; the other waits for c alone.
  Problem problem = diamond(1000, 10);
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {2, 0, 3}};
  problem.graph.ops[3].timeNs = {{"", 1000}};
  auto evaluator = make(problem);
  std::vector<int32_t> device{0, 0, 0, 1};
  auto nsOf = [&](std::vector<int32_t> order) {
    int64_t ns = 0;
    EXPECT_EQ(evaluator->makespan(device, order, ns), "");
    return ns;
  };
  // 10 for a, 1000 for each of b, c, d, 20 for the transfer.
  EXPECT_EQ(nsOf({0, 2, 1, 3}), 10 + 1000 + 20 + 1000);
  EXPECT_EQ(nsOf({0, 1, 2, 3}), 10 + 2000 + 20 + 1000);
  EXPECT_EQ(nsOf({}), nsOf({0, 2, 1, 3}));
}

TEST(AssignmentEvaluator, WaitsForMemoryWhereItMust) {
  // Two readers on d1, each with a copy of 100 bytes: d1 can hold one.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 10, {100}), makeOp("b", 10, {100}),
                       makeOp("c", 1000, {0}), makeOp("d", 1000, {0})};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}};
  std::vector<int32_t> device{0, 0, 1, 1};
  Evaluation free;
  ASSERT_EQ(make(problem)->evaluate(device, {}, free), "");
  EXPECT_EQ(free.peakBytes[1], 200);
  problem.machine.devices[1].memory = 100;
  Placement within;
  ASSERT_EQ(make(problem)->schedule(device, {}, within), "");
  EXPECT_GT(within.makespanNs, free.makespanNs);
  EXPECT_THAT(verify(problem, within), ElementsAre());
  problem.machine.devices[1].memory = 99;
  EXPECT_THAT(make(problem)->schedule(device, {}, within),
              HasSubstr("no order was found in which the assignment fits the "
                        "memories: it needs 100 bytes of 99 on d1"));
}

TEST(AssignmentEvaluator, Errors) {
  Problem problem = diamond();
  EXPECT_EQ(errorOf(problem, {0, 0}),
            "the assignment has 2 entries and the graph 4 operators");
  EXPECT_EQ(errorOf(problem, {0, 0, 2, 0}),
            "operator 2 'c': there is no device 2: they are 0 to 1");
  EXPECT_EQ(errorOf(problem, {0, 0, 0, -1}),
            "operator 3 'd': there is no device -1: they are 0 to 1");
  EXPECT_EQ(errorOf(problem, {0, 0, 0, 0}, {0, 1}),
            "the order has 2 entries and the graph 4 operators");
  EXPECT_EQ(errorOf(problem, {0, 0, 0, 0}, {0, 1, 2, 4}),
            "order[3]: there is no operator 4: they are 0 to 3");
  EXPECT_EQ(errorOf(problem, {0, 0, 0, 0}, {0, 1, 2, 1}),
            "order[3]: operator 1 'b' stands in it twice");
  problem.graph.ops[1].group = problem.graph.ops[2].group = "g";
  EXPECT_EQ(errorOf(problem, {0, 0, 1, 0}),
            "operator 2 'c' is on d1 and others of group 'g' (2 operators) are "
            "on d0: an operator group needs one device");
  problem.graph.ops[2].pin = "d1";
  EXPECT_EQ(errorOf(problem, {0, 0, 0, 0}),
            "operator 2 'c' is pinned to d1 and cannot be on d0");
  problem.graph.ops[3].timeNs = {{"tpu", 1}};
  problem.machine.devices.push_back({"t0", "tpu", 1000});
  Machine machine = makeMachine(3);
  machine.devices = problem.machine.devices;
  problem.machine = machine;
  EXPECT_EQ(errorOf(problem, {0, 1, 1, 0}),
            "operator 3 'd' has no time for the kind 'gpu' and cannot be on "
            "d0");
  problem = diamond();
  problem.machine.links.assign(4, std::nullopt);
  EXPECT_THAT(errorOf(problem, {0, 1, 0, 0}), HasSubstr("have no link"));
  problem.graph.edges.push_back({3, 0, 0});
  std::string error;
  EXPECT_EQ(AssignmentEvaluator::create(problem, error), nullptr);
  EXPECT_THAT(error, HasSubstr("cycle"));
}

TEST(AssignmentEvaluator, NothingToDo) {
  Problem problem;
  problem.machine = makeMachine(2);
  Evaluation found;
  ASSERT_EQ(make(problem)->evaluate({}, {}, found), "");
  EXPECT_EQ(found.makespanNs, 0);
  EXPECT_THAT(found.peakBytes, ElementsAre(0, 0));
}

} // namespace
