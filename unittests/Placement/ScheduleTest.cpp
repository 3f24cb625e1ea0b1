//===- ScheduleTest.cpp - The list scheduler --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"
#include "TestProblems.h"

#include "Memory/Memory.h"
#include "Schedule/CriticalPath.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// Schedules, and has the independent replay look at the result.
Schedule scheduled(const Problem &problem, const Assignment &device) {
  Model model(problem);
  Scheduler scheduler(model);
  Schedule schedule;
  scheduler.run(device, {}, &schedule);
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
  return schedule;
}

TEST(Schedule, DiamondByHand) {
  Schedule schedule = scheduled(diamond(), {0, 0, 1, 0});
  EXPECT_EQ(schedule.makespan, 1060);
  EXPECT_THAT(schedule.start, ElementsAre(0, 10, 30, 1050));
}

TEST(Schedule, ATensorGoesOnceToADevice) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 5), makeOp("b", 5), makeOp("c", 5)};
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}};
  EXPECT_EQ(scheduled(problem, {0, 1, 1}).transfers.size(), 1u);
}

/// Two transfers of 20 ns each: one from d0 to d1, one from d1 to d0.
int64_t crossing(LinkModel model) {
  Problem problem;
  problem.machine = makeMachine(2, 1 << 20, {10, 1000}, model);
  problem.graph.ops = {makeOp("a", 5, {10}), makeOp("b", 5, {10}),
                       makeOp("c", 5, {10}), makeOp("d", 5, {10})};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}};
  return scheduled(problem, {0, 1, 1, 0}).makespan;
}

/// Two transfers of 20 ns each, both from d0 to d1.
int64_t following(LinkModel model) {
  Problem problem;
  problem.machine = makeMachine(2, 1 << 20, {10, 1000}, model);
  problem.graph.ops = {makeOp("a", 5, {10, 10}), makeOp("c", 5, {10}),
                       makeOp("d", 5, {10})};
  problem.graph.edges = {{0, 0, 1}, {0, 1, 2}};
  return scheduled(problem, {0, 1, 1}).makespan;
}

TEST(Schedule, LinkModels) {
  EXPECT_EQ(crossing(LinkModel::Unlimited), 30);
  EXPECT_EQ(crossing(LinkModel::Parallel), 30);
  EXPECT_EQ(crossing(LinkModel::Duplex), 30);
  EXPECT_EQ(crossing(LinkModel::Sequential), 50);
  EXPECT_EQ(following(LinkModel::Unlimited), 35);
  EXPECT_EQ(following(LinkModel::Parallel), 50);
  EXPECT_EQ(following(LinkModel::Duplex), 50);
  EXPECT_EQ(following(LinkModel::Sequential), 50);
}

TEST(Schedule, DuplexSidesOfThreeDevices) {
  // d0 sends to d1 and to d2: one after the other with one outgoing engine.
  Problem problem;
  problem.machine = makeMachine(3, 1 << 20, {10, 1000}, LinkModel::Duplex);
  problem.graph.ops = {makeOp("a", 5, {10}), makeOp("b", 5), makeOp("c", 5)};
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}};
  EXPECT_EQ(scheduled(problem, {0, 1, 2}).makespan, 50);
  problem.machine.linkModel = LinkModel::Parallel;
  EXPECT_EQ(scheduled(problem, {0, 1, 2}).makespan, 30);
}

TEST(Schedule, ControlEdgesCostTheLatency) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 5), makeOp("b", 5)};
  problem.graph.edges = {{0, -1, 1}};
  EXPECT_EQ(scheduled(problem, {0, 1}).makespan, 20);
  EXPECT_EQ(scheduled(problem, {0, 0}).makespan, 10);
}

TEST(Schedule, TransfersLeaveInTimeOrder) {
  // `late` is more urgent but comes at 2000; `early` must not wait for it.
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("early", 1, {10}), makeOp("slow", 2000, {10}),
                       makeOp("useEarly", 1), makeOp("useSlow", 5000)};
  problem.graph.ops[1].pin = "d0";
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}};
  Schedule schedule = scheduled(problem, {0, 0, 1, 1});
  ASSERT_EQ(schedule.transfers.size(), 2u);
  EXPECT_LE(schedule.transfers[0].start, 2001);
}

TEST(Schedule, DevicesThatCannotTalk) {
  Problem problem = diamond();
  problem.machine.links[1].reset();
  Model model(problem);
  EXPECT_EQ(Scheduler(model).run({0, 0, 1, 0}), never);
  EXPECT_EQ(maxLoad(model, {0, 0, 1, 0}), never);
}

TEST(Schedule, CutOffIsExact) {
  Problem problem = diamond();
  Model owned(problem);
  Scheduler scheduler(owned);
  Scheduler::Options options;
  options.cutoff = 1060;
  EXPECT_EQ(scheduler.run({0, 0, 1, 0}, options), 1060);
  options.cutoff = 1059;
  EXPECT_EQ(scheduler.run({0, 0, 1, 0}, options), never);
}

TEST(Schedule, PeaksAgreeWithTheReplay) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceOptions options;
    options.budget = Budget::ofEvaluations(100);
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << seed << result.error;
    Model model(problem);
    Schedule schedule;
    Scheduler scheduler(model);
    scheduler.run(result.placement->device, {}, &schedule);
    auto peaks = schedulePeaks(model, result.placement->device, schedule);
    auto replay =
        usage(problem, toPlacement(model, result.placement->device, schedule));
    for (size_t d = 0; d < peaks.size(); ++d)
      EXPECT_EQ(peaks[d], replay[d].peakBytes) << "seed " << seed;
  }
}

TEST(Schedule, CriticalPathHasNoGaps) {
  Problem problem = diamond();
  Model model(problem);
  Assignment device{0, 0, 1, 0};
  Schedule schedule = scheduled(problem, device);
  CriticalPath path = criticalPath(model, device, schedule);
  EXPECT_THAT(path.nodes, ElementsAre(3, 2, 0));
  EXPECT_EQ(path.transfers.size(), 2u);
}

TEST(MaxLoad, CountsComputeAndLinks) {
  Problem problem = diamond(/*work=*/100, /*bytes=*/1000);
  Model model(problem);
  // a, b, d on d0: 120 ns of compute; two transfers of 1010 ns on each device.
  EXPECT_EQ(maxLoad(model, {0, 0, 1, 0}), 2020);
  problem.machine.linkModel = LinkModel::Duplex;
  EXPECT_EQ(maxLoad(Model(problem), {0, 0, 1, 0}), 1010);
  problem.machine.linkModel = LinkModel::Unlimited;
  EXPECT_EQ(maxLoad(Model(problem), {0, 0, 1, 0}), 120);
}

} // namespace
