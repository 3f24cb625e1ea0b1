//===- OriginalsMistakesTest.cpp - What the original got wrong --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reference implementation of Baechi (Jeon et al., SoCC 2020) has twelve
/// known mistakes. A test for each, that ours does not share it.
///
//===----------------------------------------------------------------------===//

#include "Grouping/Coarsen.h"
#include "Grouping/Grouping.h"
#include "Lp/Favourites.h"
#include "Placers/Placers.h"
#include "Schedule/Schedule.h"
#include "TestProblems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::IsEmpty;

namespace {

PlaceResult placePure(const Problem &problem, const std::string &placer,
                      std::vector<std::string> grouping = {}) {
  PlaceOptions options;
  options.placer = placer;
  options.grouping = std::move(grouping);
  options.budget = Budget::none();
  PlaceResult result = place(problem, options);
  EXPECT_TRUE(result.placement) << result.error;
  if (result.placement) {
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  }
  return result;
}

/// Independent operators with resident bytes.
Problem residents(const std::vector<int64_t> &bytes, Machine machine) {
  Problem problem;
  problem.machine = std::move(machine);
  for (size_t k = 0; k < bytes.size(); ++k) {
    problem.graph.ops.push_back(makeOp("op" + std::to_string(k), 10, {}));
    problem.graph.ops.back().resident = bytes[k];
  }
  return problem;
}

// 1. m-TOPO's cap came from one kind of memory, its need from another: graphs
// of parameters failed with ample memory.
TEST(OriginalsMistakes, OneKindOfMemoryForCapAndNeed) {
  Problem problem = residents({50, 50, 50, 50}, makeMachine(2, 1000));
  PlaceResult result = placePure(problem, "mtopo");
  for (const DeviceUsage &device : result.usage)
    EXPECT_GT(device.residentBytes, 0);
}

// 2. Uniform m-TOPO never looked at the limit.
TEST(OriginalsMistakes, UniformFillingKeepsTheLimit) {
  Machine machine = makeMachine(2, 1000);
  machine.devices[0].memory = 60; // an even share would be 100 + 50
  PlaceResult result = placePure(residents({50, 50, 50, 50}, machine), "mtopo");
  EXPECT_LE(result.usage[0].peakBytes, 60);
}

// 3. A group was placed without charging it: later ones over-committed the
// device, and the placer stopped.
TEST(OriginalsMistakes, GroupsAreChargedWhenTheyArePlaced) {
  Problem problem = residents({10, 60, 10, 60}, makeMachine(2, 100));
  problem.graph.ops[0].group = problem.graph.ops[1].group = "a";
  problem.graph.ops[2].group = problem.graph.ops[3].group = "b";
  for (const char *placer : {"metf", "msct"}) {
    PlaceResult result = placePure(problem, placer);
    ASSERT_TRUE(result.placement);
    EXPECT_NE(result.placement->device[0], result.placement->device[2]);
  }
}

// 4. Fused operators were not charged for resident memory.
TEST(OriginalsMistakes, FusedOperatorsKeepTheirResidentBytes) {
  Problem problem = residents({30, 40, 50}, makeMachine(2));
  for (Operator &op : problem.graph.ops) {
    op.outputs.emplace_back(8);
    op.group = "all";
  }
  problem.graph.edges = {{0, 0, 1}, {1, 0, 2}};
  Model model(problem);
  grouping::Coarsening fused = grouping::Coarsening::identity(model);
  grouping::fuse(model, fused);
  Model coarse = grouping::coarsen(model, fused);
  ASSERT_EQ(coarse.numNodes, 1);
  EXPECT_EQ(coarse.resident[0], 120);
  PlaceResult result = placePure(problem, "metf", {"colocate", "fuse"});
  EXPECT_EQ(result.usage[result.placement->device[0]].residentBytes, 120);
}

// 5. The simulator added resident bytes after the peak was taken, never for
// sinks, and never charged received copies.
TEST(OriginalsMistakes, ThePeakHasResidentBytesSinksAndCopies) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("source", 10, {100}), makeOp("sink", 10, {})};
  problem.graph.ops[1].resident = 1000;
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[1].pin = "d1";
  problem.graph.edges = {{0, 0, 1}};
  PlaceResult result = placePure(problem, "metf");
  EXPECT_EQ(result.usage[0].peakBytes, 100);
  EXPECT_EQ(result.usage[1].peakBytes, 1100);
}

// 6. Transfers were booked in the order of the queue: a tensor that was ready
// at 11 left at 2005.
TEST(OriginalsMistakes, TransfersLeaveWhenTheyAreReady) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("early", 11), makeOp("late", 2000),
                       makeOp("a", 3000, {}), makeOp("b", 1, {})};
  problem.graph.edges = {{0, 0, 2}, {1, 0, 3}};
  for (int32_t k : {0, 1, 2, 3})
    problem.graph.ops[k].pin = k < 2 ? "d0" : "d1";
  for (const char *placer : {"metf", "msct", "mtopo"}) {
    PlaceResult result = placePure(problem, placer);
    ASSERT_EQ(result.placement->transfers.size(), 2u);
    for (const Transfer &transfer : result.placement->transfers)
      EXPECT_EQ(transfer.startNs, result.placement->startNs[transfer.op] +
                                      (transfer.op == 0 ? 11 : 2000));
  }
}

// 7. The topological order was stale after fusion, and 8. fusion made cycles.
TEST(OriginalsMistakes, FusedGraphsHaveATopologicalOrder) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    // One group: fusion would like to make one node of all.
    for (Operator &op : problem.graph.ops)
      op.group = "all", op.pin.reset();
    if (!check(problem).empty())
      continue;
    Model model(problem);
    grouping::Coarsening fused = grouping::Coarsening::identity(model);
    grouping::fuse(model, fused);
    Model coarse = grouping::coarsen(model, fused);
    ASSERT_EQ(static_cast<int32_t>(coarse.order.size()), coarse.numNodes);
    std::vector<int32_t> position(coarse.numNodes);
    for (int32_t k = 0; k < coarse.numNodes; ++k)
      position[coarse.order[k]] = k;
    for (int32_t i = 0; i < coarse.numNodes; ++i)
      coarse.forEachUser(
          i, [&](int32_t user) { EXPECT_LT(position[i], position[user]); });
  }
}

TEST(OriginalsMistakes, FusionLeavesDiamondsAcyclic) {
  // a and d are one group; b and c run in between.
  Problem problem = diamond();
  problem.graph.edges.push_back({0, 0, 3});
  problem.graph.ops[0].group = problem.graph.ops[3].group = "ends";
  Model model(problem);
  grouping::Coarsening fused = grouping::Coarsening::identity(model);
  grouping::fuse(model, fused);
  EXPECT_NE(fused.node[0], fused.node[3]);
}

// 9. Rounding by a threshold left symmetric forks without a favourite child,
// or gave an operator two.
TEST(OriginalsMistakes, ForksHaveOneFavouriteChild) {
  Problem problem = diamond();
  Model model(problem);
  std::vector<std::string> notes;
  auto child = lp::favouriteChildren(model, nullptr, 1, notes);
  EXPECT_TRUE(child[0] == 1 || child[0] == 2) << child[0];
  std::vector<int> parents(model.numNodes, 0);
  for (int32_t c : child)
    if (c >= 0) {
      EXPECT_EQ(++parents[c], 1) << "node " << c;
    }
}

// 10. Placer and simulator counted transfers by different rules.
TEST(OriginalsMistakes, ThePlacersStartsAreTheSchedules) {
  for (LinkModel linkModel : {LinkModel::Unlimited, LinkModel::Parallel,
                              LinkModel::Duplex, LinkModel::Sequential}) {
    Problem problem;
    problem.machine = makeMachine(2, int64_t(1) << 40, {10, 1000}, linkModel);
    problem.graph.ops = {makeOp("a", 5, {500}), makeOp("b", 7, {300}),
                         makeOp("c", 9, {})};
    problem.graph.edges = {{0, 0, 1}, {1, 0, 2}};
    for (int32_t k : {0, 1, 2})
      problem.graph.ops[k].pin = k == 1 ? "d1" : "d0";
    Model model(problem);
    placers::EarliestStart found = placers::earliestStart(model);
    Schedule schedule;
    Scheduler(model).run(found.device, {}, &schedule);
    EXPECT_EQ(found.start, schedule.start);
  }
}

// 11. The whole list was sorted again in every step. Quadratic time would not
// end before the test's time limit.
TEST(OriginalsMistakes, WideGraphsArePlaced) {
  Problem problem;
  problem.machine = makeMachine(4);
  constexpr int32_t wide = 40'000;
  for (int32_t k = 0; k < wide; ++k)
    problem.graph.ops.push_back(makeOp("op", 10, {}));
  for (size_t k = 0; k < problem.graph.ops.size(); ++k)
    problem.graph.ops[k].name += std::to_string(k);
  PlaceResult result = placePure(problem, "metf");
  EXPECT_EQ(result.placement->makespanNs, wide / 4 * 10);
}

// 12. Results were worse than a single device.
TEST(OriginalsMistakes, NeverWorseThanOneDevice) {
  // A transfer takes longer than all the work.
  Problem problem = diamond(/*work=*/100, /*bytes=*/1'000'000);
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement);
  EXPECT_EQ(result.placement->makespanNs, *result.singleDeviceNs);
  EXPECT_EQ(result.placement->makespanNs, 220);
}

} // namespace
