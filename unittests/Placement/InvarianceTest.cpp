//===- InvarianceTest.cpp - Other names, better machines --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/DeviceOrder.h"
#include "Session/WeakerMachines.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <string>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

class Invariance : public testing::TestWithParam<uint32_t> {
protected:
  void SetUp() override {
    problem = randomProblem(GetParam());
    if (!check(problem).empty())
      GTEST_SKIP() << "the random pins or groups contradict each other";
  }

  /// Every device gets so much of what the whole step takes on one device.
  void limitMemory(int64_t percent) {
    Problem one = problem;
    for (Operator &op : one.graph.ops) {
      op.pin.reset();
      op.timeNs = {{"", 1}};
    }
    one.machine = makeMachine(1);
    int64_t peak = place(one, options).usage.at(0).peakBytes;
    for (Device &device : problem.machine.devices)
      device.memory = peak * percent / 100;
  }

  Problem problem;
  PlaceOptions options;
};

/// Links, memories and pins go with the devices; their kinds stay where they
/// are.
TEST_P(Invariance, NumbersOfDevicesOfOneKind) {
  Machine &machine = problem.machine;
  auto count = static_cast<int32_t>(machine.devices.size());
  std::mt19937 random(GetParam());
  if (GetParam() % 2)
    for (std::optional<Link> &link : machine.links)
      if (link)
        link->bytesPerUs = 1 + static_cast<int64_t>(random() % 3) * 1000;
  limitMemory(80);
  if (GetParam() % 3 == 0)
    machine.devices.front().memory *= 2;
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int32_t k = count; k-- > 1;)
    if (auto other = static_cast<int32_t>(random() % (k + 1));
        machine.devices[order[k]].kind == machine.devices[order[other]].kind)
      std::swap(order[k], order[other]);
  PlaceResult result = place(problem, options);
  problem.machine = reorder(machine, order);
  PlaceResult again = place(problem, options);
  ASSERT_EQ(result.placement.has_value(), again.placement.has_value());
  if (!result.placement)
    return;
  EXPECT_THAT(verify(problem, *again.placement), IsEmpty());
  EXPECT_EQ(result.placement->makespanNs, again.placement->makespanNs);
  EXPECT_EQ(result.winner, again.winner);
  EXPECT_EQ(result.lowerBoundNs, again.lowerBoundNs);
}

/// The search is a heuristic, so that a better machine may get a worse
/// placement; never by more than this.
constexpr double tolerance = 0.1;

TEST_P(Invariance, BetterMachinesAreNotWorse) {
  limitMemory(70);
  PlaceResult result = place(problem, options);
  if (!result.placement)
    GTEST_SKIP() << "nothing fits";
  double limit =
      static_cast<double>(result.placement->makespanNs) * (1 + tolerance) + 1;
  Problem roomy = problem;
  for (Device &device : roomy.machine.devices)
    device.memory *= 2;
  Problem fast = problem;
  for (std::optional<Link> &link : fast.machine.links)
    if (link)
      *link = {link->latencyNs / 2, link->bytesPerUs * 2};
  for (const Problem &better : {roomy, fast}) {
    PlaceResult other = place(better, options);
    ASSERT_TRUE(other.placement) << other.error;
    EXPECT_LE(other.placement->makespanNs, limit);
  }
}

/// The same problem without pins on so many devices that are as the first one.
Problem onEqualDevices(Problem problem, int32_t count, LinkModel links) {
  for (Operator &op : problem.graph.ops)
    op.pin.reset();
  Device first = problem.machine.devices.front();
  problem.machine = makeMachine(count, first.memory, {200, 300}, links);
  for (Device &device : problem.machine.devices)
    device.kind = first.kind;
  return problem;
}

TEST_P(Invariance, MoreEqualDevicesAreNeverWorse) {
  limitMemory(GetParam() % 2 ? 60 : 120);
  LinkModel links = problem.machine.linkModel;
  options.budget = Budget::ofEvaluations(80);
  std::optional<int64_t> before;
  for (int32_t count : {2, 3, 4, 6}) {
    Problem equal = onEqualDevices(problem, count, links);
    if (!check(equal).empty())
      GTEST_SKIP() << "the first device cannot run all operators";
    PlaceResult result = place(equal, options);
    if (before) {
      ASSERT_TRUE(result.placement) << count << " devices: " << result.error;
      EXPECT_LE(result.placement->makespanNs, *before) << count << " devices";
    }
    if (result.placement)
      before = result.placement->makespanNs;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Invariance, testing::Range(0u, 30u));

/// Layers that read two of the layer before, more operators than are placed on
/// every weaker machine.
Problem manyOperators() {
  Problem problem;
  problem.machine = makeMachine(4);
  constexpr int32_t width = 6, layers = 200;
  for (int32_t i = 0; i < width * layers; ++i) {
    int64_t time = 20 + i * 37 % 200, bytes = i * 53 % 100;
    problem.graph.ops.push_back(makeOp("n" + std::to_string(i), time, {bytes}));
    if (i < width)
      continue;
    int32_t column = i % width, before = i - column - width;
    problem.graph.edges.push_back({before + column, 0, i});
    problem.graph.edges.push_back(
        {before + (column + 1 + i / width % 2) % width, 0, i});
  }
  return problem;
}

TEST(Links, ThatDoMoreAreNeverWorseThanSequentialOnes) {
  Problem problem = manyOperators();
  PlaceOptions few;
  few.budget = Budget::ofEvaluations(20);
  problem.machine.linkModel = LinkModel::Sequential;
  PlaceResult sequential = place(problem, few);
  ASSERT_TRUE(sequential.placement) << sequential.error;
  for (LinkModel more :
       {LinkModel::Duplex, LinkModel::Parallel, LinkModel::Unlimited}) {
    problem.machine.linkModel = more;
    PlaceResult result = place(problem, few);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_LE(result.placement->makespanNs, sequential.placement->makespanNs);
    // By construction, not by luck.
    auto isTheirs = [&](const Candidate &candidate) {
      return candidate.name == "sequential links" &&
             candidate.makespanNs == sequential.placement->makespanNs;
    };
    EXPECT_TRUE(std::any_of(result.candidates.begin(), result.candidates.end(),
                            isTheirs));
  }
}

/// Chains that exchange a lot: one device more does not help.
TEST(Devices, MoreAreNeverWorseOnLargerGraphs) {
  Problem problem = manyOperators();
  PlaceOptions few;
  few.budget = Budget::ofEvaluations(640);
  std::vector<int64_t> steps;
  for (int32_t count : {2, 3, 4}) {
    problem.machine = makeMachine(count, int64_t(1) << 40, {150, 2000});
    PlaceResult result = place(problem, few);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    steps.push_back(result.placement->makespanNs);
    // By construction, not by luck.
    EXPECT_EQ(std::any_of(result.candidates.begin(), result.candidates.end(),
                          [&](const Candidate &candidate) {
                            return candidate.name == "2 devices";
                          }),
              count > 2);
  }
  EXPECT_LE(steps[1], steps[0]);
  EXPECT_LE(steps[2], steps[0]);
}

using Parts = std::vector<std::vector<int32_t>>;

TEST(Parts, OfDevicesThatAreAllEqual) {
  Problem problem;
  problem.graph.ops = {makeOp("a", 1)};
  problem.machine = makeMachine(7);
  EXPECT_EQ(session::partsOf(problem),
            (Parts{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}}));
  problem.machine = makeMachine(2);
  EXPECT_THAT(session::partsOf(problem), IsEmpty());
  problem.machine = makeMachine(4);
  problem.graph.ops[0].pin = "d3";
  EXPECT_THAT(session::partsOf(problem), IsEmpty());
}

TEST(Parts, OfTwoKindsAndOneThatIsLinkedInAnotherWay) {
  Problem problem;
  problem.machine = makeMachine(6);
  problem.machine.devices[0].kind = problem.machine.devices[3].kind = "cpu";
  for (int32_t d = 0; d < 5; ++d)
    problem.machine.links[d * 6 + 5]->bytesPerUs = 1;
  problem.graph.ops = {makeOp("a", 1)};
  EXPECT_EQ(session::partsOf(problem), (Parts{{0, 3}, {1, 2}, {1, 2, 4}}));
  problem.graph.ops.push_back(makeOp("b", 1));
  problem.graph.ops[1].timeNs = {{"gpu", 1}};
  EXPECT_EQ(session::partsOf(problem), (Parts{{1, 2}, {1, 2, 4}}));
}

TEST(DeviceOrder, ByKindMemoryPinsAndLinks) {
  Problem problem;
  problem.machine = makeMachine(5);
  std::vector<Device> &devices = problem.machine.devices;
  devices[1].kind = "cpu";
  devices[2].memory *= 2;
  problem.graph.ops = {makeOp("a", 1)};
  problem.graph.ops[0].pin = "d0";
  problem.machine.links[4 * 5 + 1].reset();
  EXPECT_THAT(deviceOrder(problem), ElementsAre(2, 1, 4, 3, 0));
}

TEST(DeviceOrder, EqualDevicesStayInOrder) {
  Problem problem;
  problem.machine = makeMachine(4);
  EXPECT_THAT(deviceOrder(problem), ElementsAre(0, 1, 2, 3));
}

/// A ring of two and two: every device has the same links, in number.
TEST(DeviceOrder, LinksToWhatIsTold) {
  Problem problem;
  problem.machine = makeMachine(4);
  problem.graph.ops = {makeOp("a", 1)};
  problem.graph.ops[0].pin = "d0";
  for (int32_t d : {0, 1, 2, 3})
    problem.machine.links[d * 4 + (d ^ 2)].reset();
  // d2 has no link with d0, where the pin is; the others have one.
  EXPECT_THAT(deviceOrder(problem), ElementsAre(1, 3, 2, 0));
}

} // namespace
