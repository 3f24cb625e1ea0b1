//===- RelayTest.cpp - Machines with missing links --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What has no link comes over other devices, and whoever schedules, judges or
/// explains agrees on it.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Search/AssignmentEvaluator.h"
#include "Baechi/Placement/Session/ExactPlacement.h"
#include "Baechi/Placement/Study/Explain.h"
#include "Memory/Memory.h"
#include "Schedule/Evaluator.h"
#include "Schedule/Schedule.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

void cut(Machine &machine, int32_t from, int32_t to) {
  machine.links[from * machine.devices.size() + to].reset();
}

/// d0 -> d1 -> ... alone.
Machine chain(int32_t n, Link link = {0, 100}, int64_t memory = 200) {
  Machine machine = makeMachine(n, memory, link, LinkModel::Unlimited);
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b)
      if (b != a + 1)
        cut(machine, a, b);
  return machine;
}

/// An operator on the first device, and one that reads it on each other.
Problem broadcast(Machine machine, int64_t bytes) {
  Problem problem;
  problem.machine = std::move(machine);
  auto n = static_cast<int32_t>(problem.machine.devices.size());
  for (int32_t d = 0; d < n; ++d) {
    problem.graph.ops.push_back(makeOp("op" + std::to_string(d), 5, {}));
    problem.graph.ops[d].pin = problem.machine.devices[d].name;
    if (d > 0)
      problem.graph.edges.push_back({0, 0, d});
  }
  problem.graph.ops[0].outputs.emplace_back(bytes);
  return problem;
}

TEST(Relay, OverAsManyDevicesAsItTakes) {
  Problem problem = broadcast(chain(4), 100);
  ASSERT_THAT(check(problem), IsEmpty());
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(result.placement->makespanNs, 5 + 3 * 1000 + 5);
  // The evaluator has the same step, and so has an explanation.
  std::string error;
  auto evaluator = AssignmentEvaluator::create(problem, error);
  Evaluation found;
  ASSERT_EQ(evaluator->evaluate(result.placement->device, {}, found), "");
  EXPECT_EQ(found.makespanNs, result.placement->makespanNs);
  EXPECT_THAT(found.peakBytes, ElementsAre(100, 100, 100, 100));
  Explainer explainer(problem, *result.placement, {});
  Explanation e = explainer.explain(3);
  EXPECT_EQ(e.devices[3].limit, Limit::None);
  EXPECT_EQ(e.devices[3].arrivalNs, 3005);
  EXPECT_EQ(e.againNs, result.placement->makespanNs);
}

TEST(Relay, WhereThatIsAllTheRoomThereIs) {
  // d1 must hold the copy that it only passes on.
  Problem problem = broadcast(chain(3), 100);
  problem.graph.ops.erase(problem.graph.ops.begin() + 1);
  problem.graph.edges = {{0, 0, 1}};
  problem.machine.devices[1].memory = 100;
  EXPECT_TRUE(place(problem, {}).placement);
  problem.machine.devices[1].memory = 99;
  PlaceResult result = place(problem, {});
  EXPECT_FALSE(result.placement);
  EXPECT_THAT(result.error, HasSubstr("ruled out"));
}

TEST(Relay, ControlSignalsNeedALink) {
  Problem problem = broadcast(chain(3), 100);
  problem.graph.edges[1].output = -1;
  EXPECT_THAT(check(problem),
              ElementsAre(HasSubstr("operator 2 'op2', which waits for it, "
                                    "must be on devices without a link")));
}

TEST(Relay, OfNoTimeKeepsItsOrderInAFile) {
  // The quickest way to d1 leads over d2, in no time.
  Problem problem = broadcast(chain(3), 0);
  problem.machine.links.assign(9, std::nullopt);
  problem.machine.links[0 * 3 + 2] = problem.machine.links[2 * 3 + 1] =
      Link{0, 100};
  problem.machine.links[0 * 3 + 1] = Link{30, 100};
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(result.placement->makespanNs, 10);
  std::string text;
  ASSERT_EQ(formatPlacement(problem, *result.placement, {}, text), "");
  Placement read;
  ASSERT_EQ(parsePlacement(text, "file", problem, read), "");
  EXPECT_THAT(verify(problem, read), IsEmpty());
  // From a device before it has come there: no order of these is valid.
  std::swap(read.transfers[0], read.transfers[1]);
  EXPECT_THAT(verify(problem, read),
              testing::Contains(HasSubstr("before its tensor is there")));
}

TEST(Relay, DevicesThatCannotTalkAreNamed) {
  Problem problem = diamond();
  problem.machine.links.assign(4, std::nullopt);
  std::string error;
  auto evaluator = AssignmentEvaluator::create(problem, error);
  std::vector<int32_t> apart = {0, 1, 0, 0}, together = {0, 0, 0, 0};
  Evaluation found;
  ASSERT_EQ(evaluator->evaluate(apart, {}, found), "");
  EXPECT_EQ(found.problem,
            "operator 0 'a' on d0 and operator 1 'b' on d1, which reads it, "
            "have no link, and no other devices pass it on: add links or a "
            "link_default");
  EXPECT_EQ(found.makespanNs, never);
  ASSERT_EQ(evaluator->evaluate(together, {}, found), "");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.makespanNs, 2020);
}

/// A control edge and a data edge without a link: the exact search looked for a
/// transfer that cannot be.
TEST(Relay, ExactSearchWithoutLinks) {
  Problem problem;
  problem.machine = makeMachine(2, 100'000);
  problem.machine.links.assign(4, std::nullopt);
  problem.machine.linkModel = LinkModel::Duplex;
  problem.graph.ops = {makeOp("a", 6813, {}), makeOp("b", 2369, {1742}),
                       makeOp("c", 3322, {})};
  problem.graph.edges = {{0, -1, 2}, {1, 0, 2}};
  for (Objective objective : {Objective::Makespan, Objective::MaxLoad}) {
    PlaceOptions options;
    options.objective = objective;
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_EQ(result.placement->makespanNs, 6813 + 2369 + 3322);
  }
}

class MissingLinks : public testing::TestWithParam<uint32_t> {
protected:
  /// A problem whose machine lacks about half of its links.
  Problem draw() {
    Problem problem = randomProblem(GetParam());
    std::mt19937 random(GetParam());
    for (auto &link : problem.machine.links)
      if (random() % 2)
        link.reset();
    return problem;
  }
  Assignment drawDevices(const Model &model, std::mt19937 &random) {
    Assignment device(model.numNodes);
    for (Unit u = 0; u < model.numUnits; ++u) {
      int32_t d = 0;
      do
        d = static_cast<int32_t>(random() % model.numDevices);
      while (!model.mayUse(u, d));
      for (int32_t i : model.members[u])
        device[i] = d;
    }
    return device;
  }
};

/// What the scheduler makes of an assignment is valid, with its peaks, and what
/// the evaluator of the search has.
TEST_P(MissingLinks, SchedulesAreValid) {
  Problem problem = draw();
  for (Device &device : problem.machine.devices)
    device.memory = int64_t(1) << 40;
  if (!check(problem).empty())
    GTEST_SKIP() << "contradictory";
  Model model(problem);
  Scheduler scheduler(model);
  Evaluator evaluator(model);
  std::mt19937 random(GetParam());
  for (int trial = 0; trial < 20; ++trial) {
    Assignment device = drawDevices(model, random);
    std::vector<int32_t> ofUnit;
    for (Unit u = 0; u < model.numUnits; ++u)
      ofUnit.push_back(device[model.members[u].front()]);
    Schedule schedule, quick;
    int64_t makespan = scheduler.run(device, {}, &schedule);
    ASSERT_EQ(evaluator.run(ofUnit, {}, never, &quick), makespan);
    if (makespan == never)
      continue;
    EXPECT_NE(maxLoad(model, device), never);
    for (const Schedule *each : {&schedule, &quick}) {
      std::vector<DeviceUsage> usage;
      ASSERT_THAT(verify(problem, toPlacement(model, device, *each), &usage),
                  IsEmpty());
      std::vector<int64_t> peaks = schedulePeaks(model, device, *each);
      for (int32_t d = 0; d < model.numDevices; ++d)
        ASSERT_EQ(peaks[d], usage[d].peakBytes);
    }
    // Some order of the steps needs less than that schedule.
    std::vector<int64_t> least = memory::leastPeaks(model, device);
    for (int32_t d = 0; d < model.numDevices; ++d)
      problem.machine.devices[d].memory = least[d];
    if (memory::scheduleWithin(scheduler, model, device, schedule)) {
      EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)),
                  IsEmpty());
    }
    for (Device &each : problem.machine.devices)
      each.memory = int64_t(1) << 40;
  }
}

/// Every placer's answer survives a file and is judged as it says.
TEST_P(MissingLinks, AnswersSurviveFiles) {
  Problem problem = draw();
  if (!check(problem).empty())
    GTEST_SKIP() << "contradictory";
  for (const std::string &placer : placerNames()) {
    PlaceOptions options;
    options.placer = placer;
    options.budget = Budget::ofEvaluations(20);
    PlaceResult result = place(problem, options);
    ASSERT_THAT(result.error, testing::Not(HasSubstr("internal")));
    if (!result.placement)
      continue;
    std::string text;
    ASSERT_EQ(formatPlacement(problem, *result.placement, {}, text), "");
    Placement read;
    ASSERT_EQ(parsePlacement(text, "file", problem, read), "");
    ASSERT_THAT(verify(problem, read), IsEmpty()) << placer;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, MissingLinks, testing::Range(0u, 40u));

} // namespace
