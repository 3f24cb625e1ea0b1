//===- SweepTest.cpp - What other machines would do -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Study/Sweep.h"
#include "Study/MachineVariant.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::vector<std::string> names(const Machine &machine) {
  std::vector<std::string> result;
  for (const Device &device : machine.devices)
    result.push_back(device.name);
  return result;
}

TEST(MachineVariant, MoreFewerAndOtherDevices) {
  Problem problem = diamond();
  problem.machine = makeMachine(2, 1000, {10, 1000}, LinkModel::Duplex);
  study::MachineVariants variants(problem);
  EXPECT_THAT(variants.notes(), IsEmpty());
  Machine one = variants.make(1, 500, 1);
  EXPECT_THAT(names(one), ElementsAre("d0"));
  EXPECT_EQ(one.devices[0].memory, 500);
  Machine four = variants.make(4, 1000, 2.5);
  EXPECT_THAT(names(four), ElementsAre("d0", "d1", "d2", "d3"));
  EXPECT_EQ(four.linkModel, LinkModel::Duplex);
  EXPECT_EQ(four.devices[3].kind, "gpu");
  EXPECT_EQ(four.link(0, 3)->latencyNs, 10);
  EXPECT_EQ(four.link(3, 0)->bytesPerUs, 2500);
  EXPECT_FALSE(four.link(2, 2));
  problem.machine = four;
  EXPECT_THAT(check(problem), IsEmpty());
}

TEST(MachineVariant, NamesDoNotCollide) {
  Problem problem = diamond();
  problem.machine = makeMachine(3);
  problem.machine.devices[0].name = "gpu0";
  problem.machine.devices[1].name = "gpu3";
  problem.machine.devices[2].name = "d2";
  EXPECT_THAT(names(study::MachineVariants(problem).make(5, 1, 1)),
              ElementsAre("gpu0", "gpu3", "d2", "gpu4", "gpu5"));
}

TEST(MachineVariant, OtherKinds) {
  Problem problem = diamond();
  problem.machine = makeMachine(3);
  problem.machine.devices[1].kind = "cpu";
  problem.machine.devices[1].memory = 77;
  problem.machine.links[0 * 3 + 1] = Link{5, 100};
  {
    study::MachineVariants variants(problem);
    EXPECT_THAT(names(variants.make(2, 1, 1)), ElementsAre("d0", "d2"));
    EXPECT_THAT(variants.notes(), ElementsAre(HasSubstr("is left out")));
  }
  problem.graph.ops[1].timeNs = {{"cpu", 10}};
  study::MachineVariants variants(problem);
  EXPECT_TRUE(variants.keepsOthers());
  Machine machine = variants.make(3, 1, 0.5);
  EXPECT_THAT(names(machine), ElementsAre("d0", "d2", "d3", "d1"));
  EXPECT_EQ(machine.devices[3].memory, 77);
  EXPECT_EQ(machine.devices[3].kind, "cpu");
  // The cpu's links are those it had with the pattern.
  EXPECT_EQ(machine.link(2, 3)->latencyNs, 5);
  EXPECT_EQ(machine.link(2, 3)->bytesPerUs, 50);
  EXPECT_EQ(machine.link(0, 2)->bytesPerUs, 500);
  EXPECT_THAT(variants.notes(), ElementsAre(HasSubstr("stay as they are"),
                                            HasSubstr("the links")));
}

TEST(MachineVariant, SlowLinksStillMove) {
  Problem problem = diamond();
  problem.machine = makeMachine(2, 1, {0, 1});
  EXPECT_EQ(
      study::MachineVariants(problem).make(2, 1, 0.01).link(0, 1)->bytesPerUs,
      1);
}

TEST(SweepMemory, Forms) {
  SweepMemory memory;
  EXPECT_EQ(parseSweepMemory("own", memory), "");
  EXPECT_EQ(memory.kind, SweepMemory::Kind::AsIs);
  EXPECT_EQ(parseSweepMemory("8GiB", memory), "");
  EXPECT_EQ(memory.kind, SweepMemory::Kind::Bytes);
  EXPECT_EQ(memory.value, 8.0 * (1 << 30));
  EXPECT_EQ(parseSweepMemory("1.5MB", memory), "");
  EXPECT_EQ(memory.value, 1.5e6);
  EXPECT_EQ(parseSweepMemory("8 GiB", memory), "");
  EXPECT_EQ(memory.value, 8.0 * (1 << 30));
  EXPECT_EQ(parseSweepMemory("1000", memory), "");
  EXPECT_EQ(memory.value, 1000);
  EXPECT_EQ(parseSweepMemory("50%", memory), "");
  EXPECT_EQ(memory.kind, SweepMemory::Kind::Share);
  EXPECT_EQ(memory.value, 50);
  for (const char *wrong : {"", "GiB", "8 GiBs", "-1", "1e30TiB", "nan", "8Gb"})
    EXPECT_THAT(parseSweepMemory(wrong, memory), HasSubstr("unknown memory"))
        << wrong;
}

/// Branches of 1,000 ns and 100 resident bytes each.
Problem branches(int32_t count) {
  Problem problem;
  problem.machine = makeMachine(2, 1000);
  problem.graph.ops.push_back(makeOp("in", 10, {10}));
  for (int32_t k = 1; k <= count; ++k) {
    problem.graph.ops.push_back(makeOp("b" + std::to_string(k), 1000, {0}));
    problem.graph.ops.back().resident = 100;
    problem.graph.edges.push_back({0, 0, k});
  }
  return problem;
}

const SweepPoint &pointOf(const Sweep &sweep, int32_t devices, int64_t memory,
                          double speed) {
  for (const SweepPoint &point : sweep.points)
    if (point.devices == devices && point.memoryBytes == memory &&
        point.linkSpeed == speed)
      return point;
  ADD_FAILURE() << devices << " " << memory << " " << speed;
  static SweepPoint none;
  return none;
}

TEST(Sweep, DevicesMemoriesAndLinks) {
  Problem problem = branches(4);
  SweepOptions options;
  options.devices = {1, 2, 4};
  options.memory = {{}, {SweepMemory::Kind::Bytes, 120}};
  options.links = {1, 4};
  Sweep found = sweep(problem, options);
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.pattern, "d0");
  EXPECT_EQ(found.oneDeviceNs, 4010);
  EXPECT_EQ(found.oneDeviceBytes, 410);
  // One device has no links, so that there is one point less.
  ASSERT_EQ(found.points.size(), 2u + 3u + 3u);
  EXPECT_EQ(pointOf(found, 1, 1000, 1).makespanNs, 4010);
  EXPECT_EQ(pointOf(found, 2, 1000, 1).makespanNs, 10 + 20 + 2000);
  EXPECT_FALSE(pointOf(found, 1, 120, 1).valid);
  EXPECT_FALSE(pointOf(found, 2, 120, 1).valid);
  EXPECT_THAT(pointOf(found, 2, 120, 1).problem, HasSubstr("resident bytes"));
  const SweepPoint &tight = pointOf(found, 4, 120, 1);
  EXPECT_TRUE(tight.valid) << tight.problem;
  EXPECT_LE(tight.peakBytes, 120);
  EXPECT_LE(pointOf(found, 4, 1000, 4).makespanNs,
            pointOf(found, 4, 1000, 1).makespanNs);
}

TEST(Sweep, LeastMemoryIsFoundAndProven) {
  Problem problem = branches(4);
  SweepOptions options;
  options.devices = {1, 2, 4, 8};
  Sweep found = sweep(problem, options);
  ASSERT_EQ(found.leastMemory.size(), 4u);
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const LeastMemory &least : found.leastMemory) {
    ASSERT_TRUE(least.bytes) << least.problem;
    EXPECT_GE(*least.bytes, least.provenBytes);
    EXPECT_LE(*least.bytes, before);
    before = *least.bytes;
    // Each holds its share of the branches, one of them while it runs reads 10.
    int64_t share = 4 / std::min(least.devices, 4) * 100;
    EXPECT_GE(*least.bytes, share);
    EXPECT_LE(*least.bytes, share + 10);
    // It is what place accepts.
    Problem machine = problem;
    machine.machine =
        study::MachineVariants(problem).make(least.devices, *least.bytes, 1);
    EXPECT_TRUE(place(machine, {}).placement);
  }
}

TEST(Sweep, BetterMachinesAreNeverWorse) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Problem problem = randomProblem(seed);
    for (Operator &op : problem.graph.ops)
      op.pin.reset();
    SweepOptions options;
    options.devices = {1, 2, 3};
    options.memory = {{SweepMemory::Kind::Share, 200},
                      {SweepMemory::Kind::Share, 60}};
    options.links = {0.5, 1, 2};
    options.place.budget = Budget::ofEvaluations(20);
    options.leastMemory = false;
    Sweep found = sweep(problem, options);
    if (!found.error.empty()) // a machine of one device
      continue;
    for (const SweepPoint &a : found.points)
      for (const SweepPoint &b : found.points)
        if (a.valid && a.devices <= b.devices &&
            a.memoryBytes <= b.memoryBytes && a.linkSpeed <= b.linkSpeed) {
          EXPECT_TRUE(b.valid) << "seed " << seed;
          EXPECT_LE(b.makespanNs, a.makespanNs) << "seed " << seed;
          EXPECT_GE(b.makespanNs, b.lowerBoundNs);
          EXPECT_LE(b.peakBytes, b.memoryBytes);
        }
  }
}

TEST(Sweep, KeepsDevicesThatOperatorsNeed) {
  Problem problem = branches(2);
  problem.machine = makeMachine(2, 1000);
  problem.machine.devices[1].kind = "cpu";
  problem.graph.ops[0].timeNs = {{"cpu", 10}};
  SweepOptions options;
  options.devices = {1, 2};
  options.links = {1};
  Sweep found = sweep(problem, options);
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.oneDeviceNs, 0);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("stay as they are")));
  for (const SweepPoint &point : found.points)
    EXPECT_TRUE(point.valid || point.memoryBytes < 1000) << point.problem;
}

TEST(Sweep, PinsThatAreNotThere) {
  Problem problem = branches(2);
  problem.graph.ops[1].pin = "d1";
  SweepOptions options;
  options.devices = {1, 2};
  Sweep found = sweep(problem, options);
  EXPECT_EQ(found.error, "");
  EXPECT_THAT(pointOf(found, 1, 1000, 1).problem,
              HasSubstr("pinned to 'd1', which the machine does not have"));
  EXPECT_TRUE(pointOf(found, 2, 1000, 1).valid);
  ASSERT_EQ(found.leastMemory.size(), 2u);
  EXPECT_FALSE(found.leastMemory[0].bytes);
  EXPECT_THAT(found.leastMemory[0].problem, HasSubstr("pinned to 'd1'"));
  EXPECT_TRUE(found.leastMemory[1].bytes);
}

TEST(Sweep, Errors) {
  Problem problem = branches(2);
  SweepOptions options;
  options.devices = {0};
  EXPECT_THAT(sweep(problem, options).error, HasSubstr("0 devices"));
  options.devices = {};
  EXPECT_THAT(sweep(problem, options).error, HasSubstr("no numbers"));
  options.devices = {1};
  options.links = {0};
  EXPECT_THAT(sweep(problem, options).error, HasSubstr("0 times as fast"));
  options = {};
  problem.machine = makeMachine(1);
  EXPECT_THAT(sweep(problem, options).error, HasSubstr("has no link"));
  options.devices = {1};
  EXPECT_EQ(sweep(problem, options).error, "");
  problem.machine.devices.clear();
  problem.machine.links.clear();
  EXPECT_THAT(sweep(problem, options).error, HasSubstr("no device"));
}

TEST(Sweep, EmptyGraph) {
  Problem problem;
  problem.machine = makeMachine(2);
  Sweep found = sweep(problem, {});
  EXPECT_EQ(found.error, "");
  for (const SweepPoint &point : found.points)
    EXPECT_TRUE(point.valid) << point.problem;
  for (const LeastMemory &least : found.leastMemory)
    EXPECT_EQ(least.bytes, 0);
}

} // namespace
