//===- StartOrderTest.cpp - Schedules of orders of starts -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/StartOrder.h"
#include "Model/Random.h"
#include "SmallProblems.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

namespace {

/// The nodes in their own order on given devices; copies the quickest way,
/// after everything that is ready.
search::StartPlan planFor(const Model &model, std::vector<int32_t> unitDevice) {
  search::StartPlan plan;
  plan.device = std::move(unitDevice);
  for (int32_t i = 0; i < model.numNodes; ++i)
    plan.nodeKey.push_back(i);
  size_t transfers = static_cast<size_t>(model.numTensors) * model.numDevices;
  plan.transferKey.assign(transfers, model.numNodes);
  plan.via.assign(transfers, search::StartPlan::quickest);
  return plan;
}

/// Devices, order and ways by chance.
search::StartPlan drawPlan(const Model &model, Random &random) {
  search::StartPlan plan = planFor(model, {});
  for (Unit u = 0; u < model.numUnits; ++u) {
    int32_t d = random.below(model.numDevices);
    while (!model.mayUse(u, d))
      d = (d + 1) % model.numDevices;
    plan.device.push_back(d);
  }
  for (int64_t &key : plan.nodeKey)
    key = random.below(model.numNodes);
  for (int64_t &key : plan.transferKey)
    key = random.below(model.numNodes);
  for (int32_t &via : plan.via)
    via = random.below(model.numDevices + 2) + search::StartPlan::quickest;
  return plan;
}

TEST(StartOrder, AnUrgentOperatorMayComeLater) {
  // b could start at 0, but c, which is ready at 10, comes before it.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 10), makeOp("b", 100), makeOp("c", 5)};
  problem.graph.edges = {{0, -1, 2}};
  Model model(problem);
  search::StartPlan plan = planFor(model, {0, 1, 1});
  search::StartOrder orders(model);
  EXPECT_EQ(orders.run(plan).makespan, 105);
  EXPECT_THAT(orders.placement().startNs, ElementsAre(0, 0, 100));
  // Right after a; the signal takes 10 ns.
  plan.nodeKey = {0, 2, 1};
  EXPECT_EQ(orders.run(plan).makespan, 125);
  EXPECT_THAT(orders.placement().startNs, ElementsAre(0, 25, 20));
}

TEST(StartOrder, CopiesAreRelayed) {
  Problem problem;
  problem.machine = makeMachine(3);
  problem.machine.links[0 * 3 + 1] = Link{1000, 1000};
  problem.graph.ops = {makeOp("a", 10, {5}), makeOp("b", 10, {})};
  problem.graph.edges = {{0, 0, 1}};
  Model model(problem);
  search::StartPlan plan = planFor(model, {0, 1});
  search::StartOrder orders(model);
  // Twice 10 + 5 ns over d2; d2 need not read it.
  EXPECT_EQ(orders.run(plan).makespan, 10 + 15 + 15 + 10);
  Placement placement = orders.placement();
  EXPECT_THAT(verify(problem, placement), IsEmpty());
  EXPECT_THAT(
      placement.transfers,
      ElementsAre(AllOf(Field(&Transfer::from, 0), Field(&Transfer::to, 2)),
                  AllOf(Field(&Transfer::from, 2), Field(&Transfer::to, 1))));
  plan.via[0 * 3 + 1] = search::StartPlan::direct;
  EXPECT_EQ(orders.run(plan).makespan, 10 + 1005 + 10);
  problem.machine.links[0 * 3 + 1].reset();
  problem.machine.links[2 * 3 + 1].reset();
  Model apart(problem);
  EXPECT_EQ(search::StartOrder(apart).run(plan).makespan, never);
}

TEST(StartOrder, WaitsForRoom) {
  // a's output of 60 bytes leaves room for b's only once it was sent.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  problem.graph.ops = {makeOp("a", 10, {60}), makeOp("b", 10, {60}),
                       makeOp("c", 10, {})};
  problem.graph.edges = {{0, 0, 2}};
  Model model(problem);
  search::StartPlan plan = planFor(model, {0, 0, 1});
  search::StartOrder orders(model);
  search::StartOrder::Value value = orders.run(plan);
  // Before the transfer in the order: nothing makes room.
  EXPECT_GT(value.excess, 0);
  plan.transferKey.assign(plan.transferKey.size(), 0);
  value = orders.run(plan);
  EXPECT_EQ(value.excess, 0);
  EXPECT_THAT(orders.placement().startNs, ElementsAre(0, 80, 80));
  EXPECT_THAT(verify(problem, orders.placement()), IsEmpty());
}

TEST(StartOrder, WhatIsAlwaysThereCountsWithoutAnyStart) {
  Problem problem;
  problem.machine = makeMachine(2, 30);
  problem.graph.ops = {makeOp("a", 1, {}), makeOp("b", 1, {})};
  for (Operator &op : problem.graph.ops)
    op.resident = 20;
  Model model(problem);
  search::StartOrder orders(model);
  EXPECT_GT(orders.run(planFor(model, {0, 0})).excess, 0);
  EXPECT_EQ(orders.run(planFor(model, {0, 1})).excess, 0);
}

TEST(StartOrder, TheReplayAgreesWithEveryPlan) {
  int fitting = 0, overflowing = 0, tooCareful = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SmallProblems draws(seed);
    Problem problem = draws.draw();
    if (!check(problem).empty())
      continue;
    int64_t memory = 2000 + 500 * draws.below(16);
    for (Device &device : problem.machine.devices)
      device.memory = memory;
    Model model(problem);
    search::StartOrder orders(model);
    Random random(seed);
    for (int k = 0; k < 10; ++k) {
      search::StartOrder::Value value = orders.run(drawPlan(model, random));
      if (value.makespan == never)
        continue;
      Placement placement = orders.placement();
      EXPECT_EQ(placement.makespanNs, value.makespan);
      // To the nanosecond and the byte.
      auto violations = verify(problem, placement);
      if (value.excess > 0) {
        ++overflowing;
        tooCareful += violations.empty();
        continue;
      }
      ++fitting;
      ASSERT_THAT(violations, IsEmpty()) << "seed " << seed;
    }
  }
  EXPECT_GT(fitting, 300);
  EXPECT_GT(overflowing, 300);
  // A transfer that comes later in the order may end before what needs its
  // room; and what takes no time may hold less than is thought.
  EXPECT_LT(tooCareful * 50, overflowing);
}

} // namespace
