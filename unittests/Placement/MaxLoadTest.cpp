//===- MaxLoadTest.cpp - Loads, their search and splits ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/MaxLoadSearch.h"
#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Bounds/Bounds.h"
#include "Memory/Memory.h"
#include "Model/Random.h"
#include "Placers/Splits.h"
#include "Search/LoadState.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

Assignment toAssignment(const Model &model,
                        const std::vector<int32_t> &unitDevice) {
  Assignment device(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    device[i] = unitDevice[model.unit[i]];
  return device;
}

/// A random problem, on every third machine with staged transfers, on every
/// fourth with a link less.
Problem loadProblem(uint32_t seed) {
  Problem problem = randomProblem(seed);
  Machine &machine = problem.machine;
  auto devices = static_cast<int32_t>(machine.devices.size());
  if (seed % 3 == 0)
    machine.stagedThrough = machine.devices.back().kind;
  else if (seed % 4 == 0 && devices > 1)
    machine.links[1].reset();
  return problem;
}

/// Every assignment of few units; calls \p visit(unit devices).
template <typename Visit>
void forEachAssignment(const Model &model, Visit visit) {
  std::vector<int32_t> device(model.numUnits, 0);
  for (;;) {
    bool allowed = true;
    for (Unit u = 0; u < model.numUnits; ++u)
      allowed &= model.mayUse(u, device[u]);
    if (allowed)
      visit(device);
    Unit u = 0;
    while (u < model.numUnits && ++device[u] == model.numDevices)
      device[u++] = 0;
    if (u == model.numUnits)
      return;
  }
}

/// A chain of \p times, each sending \p bytes to the next.
Problem chain(const std::vector<int64_t> &times, int64_t bytes,
              int32_t devices) {
  Problem problem;
  problem.machine = makeMachine(devices);
  for (size_t i = 0; i < times.size(); ++i) {
    problem.graph.ops.push_back(
        makeOp("op" + std::to_string(i), times[i], {bytes}));
    if (i > 0)
      problem.graph.edges.push_back(
          {static_cast<int32_t>(i) - 1, 0, static_cast<int32_t>(i)});
  }
  return problem;
}

/// A device that passes a tensor on is quicker than the slow link to where it
/// goes.
TEST(MaxLoad, CountsTheWaysThatAPlacementHas) {
  Problem problem = chain({10, 10}, 90, 3);
  problem.machine.linkModel = LinkModel::Parallel;
  problem.machine.links[2] = Link{5000, 1000}; // from 0 to 2
  ASSERT_THAT(check(problem), IsEmpty());
  Model model(problem);
  EXPECT_EQ(maxLoad(model, {0, 2}), 5090);
  Placement placement;
  placement.device = {0, 2};
  placement.startNs = {0, 210};
  placement.makespanNs = 220;
  placement.transfers = {{0, 0, 0, 1, 10, 110}, {0, 0, 1, 2, 110, 210}};
  EXPECT_EQ(maxLoad(model, placement), 100);
  PlaceResult judged = judge(problem, placement, {});
  EXPECT_EQ(judged.error, "");
  EXPECT_EQ(judged.maxLoadNs, 100);
}

/// What exclusive links and devices carry, the makespan covers.
TEST(MaxLoad, IsNeverAboveTheStep) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = loadProblem(seed);
    if (problem.machine.stagedThrough)
      continue;
    PlaceResult result = place(problem, {});
    if (result.placement)
      EXPECT_LE(result.maxLoadNs, result.placement->makespanNs) << seed;
  }
}

TEST(StagedLoad, SendsOnceAndFetchesOnEveryDevice) {
  // a is read by b and c on two other devices; 1 byte takes 1 ns, and 10 more.
  Problem problem = diamond(1000, 90);
  problem.machine = makeMachine(4);
  problem.machine.devices[3].kind = "cpu";
  problem.machine.stagedThrough = "cpu";
  EXPECT_THAT(check(problem), IsEmpty());
  Model model(problem);
  // Device 0: a, d and sending a, fetching b and c.
  EXPECT_EQ(maxLoad(model, {0, 0, 0, 0}), 2020);
  EXPECT_EQ(maxLoad(model, {0, 1, 2, 0}), 1000 + 100 + 100);
  EXPECT_EQ(maxLoad(model, {1, 0, 0, 0}), 2010 + 100);
  // The stage neither sends nor fetches.
  EXPECT_EQ(maxLoad(model, {3, 3, 3, 0}), 2010);
  EXPECT_EQ(maxLoad(model, {0, 3, 3, 3}), 2010);
}

TEST(StagedLoad, InMachineFiles) {
  Problem problem = diamond();
  problem.machine.stagedThrough = "gpu";
  std::string text;
  EXPECT_EQ(formatMachine(problem.machine, text), "");
  Machine again;
  EXPECT_EQ(parseMachine(text, "m.json", again), "");
  EXPECT_EQ(again.stagedThrough, "gpu");
  problem.machine.stagedThrough = "host";
  EXPECT_THAT(check(problem), ElementsAre(HasSubstr("of kind 'host'")));
  problem.machine.devices[1].kind = "host";
  problem.machine.links[1].reset();
  EXPECT_THAT(check(problem), ElementsAre(HasSubstr("'d0': add them")));
}

class Loads : public testing::TestWithParam<uint32_t> {};

TEST_P(Loads, AreKeptUpToDateByMoves) {
  Problem problem = loadProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins, groups or links contradict each other";
  Model model(problem);
  LoadGraph graph(model);
  baechi::placement::Random random(GetParam());
  std::vector<int32_t> device(model.numUnits);
  auto draw = [&](Unit u) {
    int32_t d = random.below(model.numDevices);
    while (!model.mayUse(u, d))
      d = (d + 1) % model.numDevices;
    return d;
  };
  for (Unit u = 0; u < model.numUnits; ++u)
    device[u] = draw(u);
  search::LoadState state(graph, problem.machine, 1), fresh = state;
  state.assign(device);
  for (int k = 0; k < 100; ++k) {
    Unit u = random.below(model.numUnits);
    device[u] = draw(u);
    if (device[u] == state.deviceOf(u))
      continue;
    std::vector<int64_t> expected(state.values().begin(), state.values().end());
    state.forEachChange(u, device[u], [&](size_t index, int64_t change) {
      expected[index] += change;
    });
    state.move(u, device[u]);
    fresh.assign(device);
    ASSERT_THAT(state.values(), testing::ElementsAreArray(fresh.values()));
    ASSERT_THAT(state.values(), testing::ElementsAreArray(expected));
    Assignment assignment = toAssignment(model, device);
    int64_t load = maxLoad(model, assignment);
    // A control edge across a missing link blocks, too.
    if (load == never || state.maxLoad() != never)
      ASSERT_EQ(state.maxLoad(), load);
    else
      ASSERT_EQ(Scheduler(model).run(assignment), never);
  }
}

TEST_P(Loads, OfClustersAreThoseOfTheirUnits) {
  Problem problem = loadProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins, groups or links contradict each other";
  Model model(problem);
  // Units of equal allowed devices in pairs.
  std::vector<int32_t> vertexOf(model.numUnits), device;
  int32_t count = 0;
  for (Unit u = 0; u < model.numUnits; ++u) {
    bool joins = u % 2 == 1;
    for (int32_t d = 0; d < model.numDevices && joins; ++d)
      joins = model.mayUse(u, d) == model.mayUse(u - 1, d);
    vertexOf[u] = joins ? count - 1 : count++;
  }
  LoadGraph graph(model, vertexOf, count);
  baechi::placement::Random random(GetParam());
  for (int32_t v = 0; v < count; ++v) {
    device.push_back(random.below(model.numDevices));
    while (!graph.mayUse(v, device[v]))
      device[v] = (device[v] + 1) % model.numDevices;
  }
  search::LoadState state(graph, problem.machine, 1);
  state.assign(device);
  std::vector<int32_t> unitDevice(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    unitDevice[u] = device[vertexOf[u]];
  int64_t load = maxLoad(model, toAssignment(model, unitDevice));
  if (load == never || state.maxLoad() != never) {
    EXPECT_EQ(state.maxLoad(), load);
  }
}

/// On graphs small enough to try everything.
TEST_P(Loads, SearchFindsTheLeast) {
  Problem problem = loadProblem(GetParam());
  auto &ops = problem.graph.ops;
  ops.resize(std::min<size_t>(ops.size(), 7));
  std::erase_if(problem.graph.edges, [&](const Edge &edge) {
    return std::max(edge.from, edge.to) >= static_cast<int32_t>(ops.size());
  });
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins, groups or links contradict each other";
  bool tight = GetParam() % 2 == 0;
  if (tight) {
    int64_t bytes = 0;
    for (const Operator &op : ops)
      bytes += op.resident;
    for (Device &device : problem.machine.devices)
      device.memory =
          bytes / static_cast<int64_t>(problem.machine.devices.size()) + 4000;
  }
  Model model(problem);
  Scheduler scheduler(model);
  int64_t least = never;
  forEachAssignment(model, [&](const std::vector<int32_t> &device) {
    Assignment assignment = toAssignment(model, device);
    Schedule schedule;
    if (int64_t load = maxLoad(model, assignment);
        load < least &&
        memory::scheduleWithin(scheduler, model, assignment, schedule))
      least = load;
  });
  search::SearchOptions options;
  options.objective = Objective::MaxLoad;
  options.budget = Budget::ofEvaluations(20'000);
  search::SearchResult result = search::searchMaxLoad(model, {}, options);
  if (least == never) {
    EXPECT_THAT(result.best, IsEmpty());
    return;
  }
  EXPECT_LE(bounds::maxLoadBound(model).value, least);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(maxLoad(model, result.best.front().device), least);
  search::SearchResult again = search::searchMaxLoad(model, {}, options);
  EXPECT_EQ(again.best.front().device, result.best.front().device);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Loads, testing::Range(0u, 40u));

TEST(Splits, OfAChainAreOptimal) {
  Problem problem = chain({50, 10, 10, 10, 40, 40}, 10, 2);
  Model model(problem);
  // Cut before the last two or before the first of these: 80 and 80 of 160.
  auto splits = placers::contiguousSplits(model, {});
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(maxLoad(model, splits.front()), 80);
  // A tensor that takes 510 ns to move is not cut if that can be helped.
  problem.graph.ops[3].outputs = {Output(500)};
  splits = placers::contiguousSplits(Model(problem), {});
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(maxLoad(Model(problem), splits.front()), 90);
}

TEST(Splits, KeepMemoriesPinsAndKinds) {
  Problem problem = chain({10, 10, 10, 10}, 10, 2);
  for (Operator &op : problem.graph.ops)
    op.resident = 100;
  problem.machine.devices[1].memory = 100;
  auto splits = placers::contiguousSplits(Model(problem), {});
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(std::count(splits.front().begin(), splits.front().end(), 1), 1);
  problem.machine.devices[0].memory = 200;
  EXPECT_THAT(placers::contiguousSplits(Model(problem), {}), IsEmpty());
  problem.machine.devices[0].memory = 400;
  problem.graph.ops[0].pin = "d1";
  splits = placers::contiguousSplits(Model(problem), {});
  ASSERT_FALSE(splits.empty());
  EXPECT_THAT(splits.front(), ElementsAre(1, 0, 0, 0));
  // A device five times as slow gets one of twelve.
  problem = chain(std::vector<int64_t>(12, 10), 10, 2);
  problem.machine.devices[1].kind = "slow";
  for (Operator &op : problem.graph.ops)
    op.timeNs.emplace_back("slow", 50);
  splits = placers::contiguousSplits(Model(problem), {});
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(maxLoad(Model(problem), splits.front()), 100);
}

TEST(Splits, OverFewerDevices) {
  Problem problem = chain({10, 10, 10, 10, 10, 10}, 10, 3);
  placers::SplitOptions options;
  options.orders = 1;
  options.fewerDevices = true;
  std::vector<int64_t> loads;
  Model model(problem);
  for (const Assignment &split : placers::contiguousSplits(model, options))
    loads.push_back(maxLoad(model, split));
  // Transfers of 20 ns each way are the load of the middle of three.
  EXPECT_THAT(loads, ElementsAre(30, 40, 60));
  // Every cut costs: one device is the best in all.
  options.goal = placers::SplitGoal::Total;
  options.fewerDevices = false;
  auto splits = placers::contiguousSplits(model, options);
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(maxLoad(model, splits.front()), 60);
}

TEST(Splits, ManyUnitsAndDevicesStayAffordable) {
  std::vector<int64_t> times;
  for (int k = 0; k < 5000; ++k)
    times.push_back(1000 + k % 7);
  Problem problem = chain(times, 1, 16);
  for (int d = 0; d < 16; ++d) // as many kinds as devices
    problem.machine.devices[d].memory += d;
  placers::SplitOptions options;
  options.orders = 1;
  Model model(problem);
  auto splits = placers::contiguousSplits(model, options);
  ASSERT_FALSE(splits.empty());
  EXPECT_LE(maxLoad(model, splits.front()), 5000 * 1003 / 16 * 103 / 100);
}

TEST(Splits, FastestCutWhereTransfersAreShort) {
  Problem problem = chain({50, 50, 50, 50}, 1000, 2);
  problem.graph.ops[2].outputs = {Output(10)};
  for (Operator &op : problem.graph.ops)
    op.resident = 10000;
  {
    Model model(problem);
    Scheduler scheduler(model);
    auto splits = placers::fastestSplits(model, scheduler, 1);
    ASSERT_EQ(splits.size(), 1u);
    EXPECT_EQ(scheduler.run(splits.front()), 200); // nothing to gain by a cut
  }
  for (Device &device : problem.machine.devices)
    device.memory = 35000; // enough for three
  Model model(problem);
  Scheduler scheduler(model);
  auto splits = placers::fastestSplits(model, scheduler, 1);
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_NE(splits.front()[2], splits.front()[3]);
  EXPECT_EQ(scheduler.run(splits.front()), 220);
}

TEST(Splits, FastestAreSortedAndDifferent) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = loadProblem(seed);
    if (!check(problem).empty())
      continue;
    Model model(problem);
    Scheduler scheduler(model);
    auto splits = placers::fastestSplits(model, scheduler, 3);
    EXPECT_LE(splits.size(), 3u);
    int64_t before = 0;
    for (size_t k = 0; k < splits.size(); ++k) {
      int64_t makespan = scheduler.run(splits[k]);
      EXPECT_NE(makespan, never);
      EXPECT_LE(before, makespan);
      before = makespan;
      for (size_t other = 0; other < k; ++other)
        EXPECT_NE(splits[other], splits[k]) << "seed " << seed;
      for (int32_t i = 0; i < model.numNodes; ++i)
        EXPECT_TRUE(model.mayUse(model.unit[i], splits[k][i]));
    }
  }
}

} // namespace
