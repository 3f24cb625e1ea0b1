//===- GpuRunTest.cpp - Operators that share a GPU ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/GpuRun.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "gtest/gtest.h"

using namespace baechi;
using support::Access;

namespace {
using Times = std::vector<std::pair<int64_t, int64_t>>;

Access reads(uintptr_t place) { return {64 * place, 64 * place + 64, false}; }
Access writes(uintptr_t place) { return {64 * place, 64 * place + 64, true}; }

Times timesOf(std::vector<GpuOperator> run) {
  Times times;
  for (SimulatedInterval time : simulateGpuRun(run))
    times.push_back({time.start, time.end});
  return times;
}

constexpr int64_t half = blocksThatFill / 2, all = blocksThatFill;

TEST(GpuRun, WhatReadsFollowsWhatWrites) {
  EXPECT_EQ((Times{{0, 100}, {100, 300}, {300, 330}}),
            timesOf({{100, 1, {writes(0)}},
                     {200, 1, {reads(0), writes(1)}},
                     {30, 1, {reads(1), writes(0)}}}));
}

TEST(GpuRun, FewBlocksRunBesideOthers) {
  // Both halves fit: each takes what it takes alone.
  EXPECT_EQ((Times{{0, 100}, {0, 60}}),
            timesOf({{100, half, {writes(0)}}, {60, half, {writes(1)}}}));
  // More blocks than fill a GPU are not more than a GPU.
  EXPECT_EQ((Times{{0, 200}, {0, 200}}),
            timesOf({{100, 9 * all, {writes(0)}}, {100, all, {writes(1)}}}));
}

TEST(GpuRun, WhatDoesNotFitBecomesSlowerByOneFactor) {
  // A whole and a half: 1.5 times as slow until the shorter one ends at 90 of
  // its 60; 40 are left of the other one, alone.
  EXPECT_EQ((Times{{0, 130}, {0, 90}}),
            timesOf({{100, all, {writes(0)}}, {60, half, {writes(1)}}}));
  // Three wholes, of which one follows the first: two share until 200, then
  // the third and what is left of the second.
  EXPECT_EQ((Times{{0, 200}, {0, 400}, {200, 400}}),
            timesOf({{100, all, {writes(0)}},
                     {200, all, {writes(1)}},
                     {100, all, {reads(0), writes(2)}}}));
}

TEST(GpuRun, UnknownBlocksFillIt) {
  EXPECT_EQ((Times{{0, 200}, {0, 200}}),
            timesOf({{100, 0, {writes(0)}}, {100, 0, {writes(1)}}}));
}

TEST(GpuRun, MemoryThatIsUsedAgainIsWaitedFor) {
  // The third writes where the second reads, though it needs nothing of it.
  EXPECT_EQ((Times{{0, 10}, {10, 60}, {60, 70}}),
            timesOf({{10, 1, {writes(0)}},
                     {50, 1, {reads(0), writes(1)}},
                     {10, 1, {writes(0)}}}));
}

TEST(GpuRun, OperatorsWithoutTimeEndAtOnce) {
  EXPECT_EQ((Times{{0, 10}, {10, 10}, {10, 15}}),
            timesOf({{10, 1, {writes(0)}},
                     {0, 1, {reads(0), writes(1)}},
                     {5, 1, {reads(1)}}}));
  EXPECT_EQ(Times{}, timesOf({}));
}

/// Appends an operator of a GPU to what device `device` does.
void append(StepProgram &program, size_t device, GpuOperator op) {
  program.devices[device].push_back({Instruction::Kind::Operator, op.ns, 0, 0,
                                     /*ofLastStep=*/false,
                                     int32_t(program.ofGpus.size())});
  program.ofGpus.push_back(std::move(op));
}
void append(StepProgram &program, size_t device, Instruction::Kind kind) {
  program.devices[device].push_back({kind});
}

TEST(GpuRun, MessagesOfAStepRunBesideIt) {
  using Kind = Instruction::Kind;
  StepProgram program;
  program.devices.resize(2);
  program.queues = {{0, 1, {{4096, 40}}, /*isCarried=*/true, {1}}};
  program.queues[0].messages[0].lastSliceNs = 40;
  append(program, 0, {100, half, {writes(0)}});
  append(program, 0, {80, half, {writes(1)}});
  append(program, 0, Kind::Send);
  append(program, 0, {500, all, {writes(2)}});
  append(program, 1, Kind::Recv);
  append(program, 1, {10, half, {writes(0)}});
  append(program, 1, Kind::AwaitRecv);
  append(program, 1, {30, half, {reads(1)}});
  placement::RuntimeCosts costs;
  costs.operatorNs = 1000; // of host devices
  costs.sharedPercent = 300;
  costs.stepNs = 7;
  std::optional<SimulatedStep> step = simulateStep(program, costs);
  ASSERT_TRUE(step);
  // What is sent is offered when the run before it ends, at 100; the copy takes
  // nobody's time.
  EXPECT_EQ(100, step->copies[0][0].start);
  EXPECT_EQ(140, step->copies[0][0].end);
  EXPECT_EQ(100, step->operators[0][2].start);
  EXPECT_EQ(140, step->operators[1][1].start);
  EXPECT_EQ(607, step->makespanNs);
  // Halves: 50 + 40 + 500 + 5 + 15.
  EXPECT_EQ(610, leastOnOneGpuNs(program));
}
} // namespace
