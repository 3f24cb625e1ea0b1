//===- MemoryTest.cpp - Memory limits ---------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Baechi/Placement/Session/PlaceBriefly.h"
#include "Memory/Orders.h"
#include "Placers/Registry.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Four chains of a large tensor each, all ready at once.
Problem wideChains(int64_t memory, int32_t devices = 1) {
  Problem problem;
  problem.machine = makeMachine(devices, memory);
  for (int32_t k = 0; k < 4; ++k) {
    std::string name = std::to_string(k);
    problem.graph.ops.push_back(makeOp("make" + name, 10, {100}));
    problem.graph.ops.push_back(makeOp("use" + name, 10, {1}));
    problem.graph.edges.push_back({2 * k, 0, 2 * k + 1});
  }
  return problem;
}

TEST(Memory, OrderKeepsThePeakLow) {
  // The makers first would hold 400 bytes; one chain after the other 101.
  Problem problem = wideChains(101);
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(result.placement->makespanNs, 80);
  EXPECT_LE(result.usage[0].peakBytes, 101);
}

TEST(Memory, LimitsNeverDeadlock) {
  Problem problem = wideChains(101, 2);
  Model model(problem);
  Scheduler scheduler(model);
  // Everything is made on d0 and used on d1, where two copies do not fit.
  Assignment device{0, 1, 0, 1, 0, 1, 0, 1};
  Schedule schedule;
  ASSERT_TRUE(memory::scheduleWithin(scheduler, model, device, schedule));
  EXPECT_THAT(verify(problem, toPlacement(model, device, schedule)), IsEmpty());
}

TEST(Memory, TooSmallForOneOperatorIsProven) {
  Problem problem = wideChains(100);
  PlaceResult result = place(problem, {});
  EXPECT_FALSE(result.placement);
  EXPECT_THAT(result.error,
              HasSubstr("no placement can fit the memories: operator 1 'use0' "
                        "needs 101 bytes at once"));
}

TEST(Memory, ResidentSumIsProven) {
  Problem problem = diamond();
  problem.machine = makeMachine(2, 100);
  for (Operator &op : problem.graph.ops)
    op.resident = 60;
  PlaceResult result = place(problem, {});
  EXPECT_THAT(result.error, HasSubstr("resident bytes of all operators are "
                                      "240, the memories of all devices 200"));
  EXPECT_THAT(result.error, HasSubstr("\n  290 bytes of 200 in all"));
  // Per device, whoever holds most there, and how much would do.
  EXPECT_THAT(result.error, HasSubstr(" bytes of 100 on d1, 50 too many"));
  EXPECT_THAT(result.error, HasSubstr("\nthe largest on d1 are\n  operator"));
  EXPECT_THAT(result.error, HasSubstr("\nwith 150 bytes on every device a "
                                      "placement was found"));
  problem.machine = makeMachine(2, 150);
  EXPECT_TRUE(place(problem, {}).placement);
}

TEST(Memory, LargestGroupIsProven) {
  Problem problem = diamond();
  problem.machine = makeMachine(3, 100);
  for (int32_t i : {0, 1}) {
    problem.graph.ops[i].resident = 60;
    problem.graph.ops[i].group = "big";
  }
  EXPECT_THAT(place(problem, {}).error,
              HasSubstr("group 'big' (2 operators) has 120 resident bytes"));
}

TEST(Memory, ConfinedOperatorsAreProven) {
  Problem problem = diamond();
  problem.machine = makeMachine(3, 100);
  problem.machine.devices[0].kind = "cpu";
  for (int32_t i : {1, 2}) {
    problem.graph.ops[i].resident = 60;
    problem.graph.ops[i].timeNs = {{"cpu", 5}};
  }
  EXPECT_THAT(place(problem, {}).error,
              HasSubstr("the operators that can only be on d0 are 120 bytes"));
}

TEST(Memory, ResidentBytesSplitTheGraph) {
  Problem problem = diamond(/*work=*/10, /*bytes=*/1);
  problem.machine = makeMachine(2, 100);
  for (Operator &op : problem.graph.ops)
    op.resident = 40;
  for (const placers::Placer &placer : placers::allPlacers()) {
    if (placer.ignoresMemory)
      continue;
    PlaceResult result =
        place(problem, onlyPlacer(std::string(placer.name), problem));
    if (placer.name == "single") {
      EXPECT_FALSE(result.placement);
      EXPECT_THAT(result.error,
                  HasSubstr("no single device can run the whole graph: it "
                            "needs 163 bytes of 100 on d0"));
      continue;
    }
    ASSERT_TRUE(result.placement) << placer.name << ": " << result.error;
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    EXPECT_FALSE(result.singleDeviceNs);
  }
}

TEST(Memory, RepairSwapsWhereNoMoveHelps) {
  // 70 + 30 and 60 + 40 fit; from 70 + 40 and 60 + 30 no single move does.
  Problem problem;
  problem.machine = makeMachine(2, 100);
  for (int64_t bytes : {70, 40, 60, 30}) {
    problem.graph.ops.push_back(makeOp("p", 1, {}));
    problem.graph.ops.back().resident = bytes;
  }
  Model model(problem);
  Assignment device{0, 0, 1, 1};
  ASSERT_TRUE(memory::repair(model, device));
  auto peaks = memory::leastPeaks(model, device);
  EXPECT_LE(peaks[0], 100);
  EXPECT_LE(peaks[1], 100);
}

TEST(Memory, RepairKeepsPins) {
  Problem problem;
  problem.machine = makeMachine(2, 100);
  for (int k = 0; k < 2; ++k) {
    problem.graph.ops.push_back(makeOp("p", 1, {}));
    problem.graph.ops.back().resident = 80;
  }
  problem.graph.ops[0].pin = "d0";
  Model model(problem);
  Assignment device{0, 0};
  ASSERT_TRUE(memory::repair(model, device));
  EXPECT_EQ(device, (Assignment{0, 1}));
}

TEST(Memory, RepairMovesWhatBelongsTogether) {
  // Two chains of six that talk within, all on d0, which holds nine of twelve:
  // the whole of one chain moves, not its parts.
  Problem problem;
  problem.machine = makeMachine(2, 90);
  for (int32_t chain = 0; chain < 2; ++chain)
    for (int32_t k = 0; k < 6; ++k) {
      problem.graph.ops.push_back(makeOp("op", 100, {1000}));
      Operator &op = problem.graph.ops.back();
      op.outputs[0].memory = op.outputs[0].copy = 0;
      op.resident = 10;
      if (k > 0)
        problem.graph.edges.push_back({chain * 6 + k - 1, 0, chain * 6 + k});
    }
  Model model(problem);
  Assignment device(12, 0);
  ASSERT_TRUE(memory::repair(model, device));
  for (int32_t chain = 0; chain < 2; ++chain)
    for (int32_t k = 1; k < 6; ++k)
      EXPECT_EQ(device[chain * 6 + k], device[chain * 6]);
  EXPECT_NE(device[0], device[6]);
}

TEST(Memory, FitsUnevenDevices) {
  // One large device and three small ones, each of which takes one operator.
  Problem problem;
  problem.machine = makeMachine(4, 30);
  problem.machine.devices[2].memory = 100;
  for (int64_t bytes : {30, 30, 30, 25, 25, 25, 25}) {
    problem.graph.ops.push_back(makeOp("p", 1, {}));
    problem.graph.ops.back().resident = bytes;
  }
  Model model(problem);
  Assignment device;
  memory::LeanOrders lean(model);
  ASSERT_TRUE(memory::findFit(model, lean, device));
  EXPECT_EQ(memory::excessOf(model, memory::leastPeaks(model, device)), 0);
  EXPECT_TRUE(place(problem, {}).placement);
}

TEST(Memory, ResultsStayToTheEnd) {
  // Every result is kept: 400 bytes, although no two are needed at once.
  Problem problem = wideChains(399);
  for (Operator &op : problem.graph.ops)
    op.result = true;
  EXPECT_FALSE(place(problem, {}).placement);
  problem.machine = makeMachine(1, 404);
  EXPECT_TRUE(place(problem, {}).placement);
}

TEST(Memory, AdviceIsAllThatABriefErrorLacks) {
  int32_t found = 0, none = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = randomProblem(seed);
    for (Device &device : problem.machine.devices)
      device.memory = 9000;
    PlaceOptions options;
    options.budget = seed % 2 ? Budget::none() : Budget::ofEvaluations(50);
    PlaceResult brief = placeBriefly(problem, options);
    PlaceResult whole = place(problem, options);
    ASSERT_EQ(brief.placement.has_value(), whole.placement.has_value());
    if (whole.placement) {
      ++found;
      EXPECT_EQ(brief.placement->device, whole.placement->device);
      EXPECT_EQ(brief.placement->startNs, whole.placement->startNs);
      continue;
    }
    EXPECT_TRUE(whole.error.starts_with(brief.error));
    none += whole.error.size() > brief.error.size();
  }
  EXPECT_GT(found, 5);
  EXPECT_GT(none, 5);
}

} // namespace
