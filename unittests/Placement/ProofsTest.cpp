//===- ProofsTest.cpp - Why nothing can fit ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Memory/Packing.h"
#include "Model/Random.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using baechi::placement::Random;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::string proofOf(const Problem &problem) {
  return memory::proveInfeasible(problem, Model(problem)).why;
}

bool goesIn(std::vector<int64_t> items, std::vector<int64_t> bins) {
  if (items.empty())
    return true;
  int64_t item = items.back();
  items.pop_back();
  for (int64_t &bin : bins)
    if (bin >= item) {
      bin -= item;
      if (goesIn(items, bins))
        return true;
      bin += item;
    }
  return false;
}

TEST(Packing, ProvesOnlyWhatIsTrue) {
  Random random(11);
  int32_t proven = 0, fails = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<int64_t> items(1 + random.below(7)), bins(1 + random.below(3));
    for (int64_t &item : items)
      item = random.below(30);
    bool even = random.oneIn(2);
    int64_t size = random.below(60);
    for (int64_t &bin : bins)
      bin = even ? size : random.below(60);
    bool fits = goesIn(items, bins);
    bool proof = memory::provePackingFails(items, bins).has_value();
    EXPECT_FALSE(fits && proof) << "trial " << trial;
    fails += !fits;
    proven += proof;
  }
  // Not all can be proven, but most.
  EXPECT_GT(proven, fails * 9 / 10);
  EXPECT_LT(proven, 3000);
}

TEST(Packing, CountsPieces) {
  // Seven of 30 in two of 100: three each.
  auto proof = memory::provePackingFails(std::vector<int64_t>(7, 30),
                                         std::vector<int64_t>{100, 119});
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->piece, 30);
  EXPECT_EQ(static_cast<int64_t>(proof->needed), 7);
  EXPECT_EQ(static_cast<int64_t>(proof->available), 6);
}

TEST(Packing, LargeItemsKeepOthersOut) {
  // 60 and 60 leave 40 each, too little for three of 30 (Martello & Toth).
  auto proof = memory::provePackingFails(
      std::vector<int64_t>{60, 60, 30, 30, 30}, std::vector<int64_t>{100, 100});
  ASSERT_TRUE(proof);
}

TEST(Proofs, WhatAGroupHoldsForLater) {
  // big waits in its group for late, while the middle one runs there.
  Problem problem;
  problem.machine = makeMachine(2, 170);
  problem.graph.ops = {makeOp("big", 1, {100}), makeOp("middle", 1, {80}),
                       makeOp("late", 1, {1})};
  problem.graph.edges = {{0, -1, 1}, {0, 0, 2}, {1, -1, 2}};
  for (Operator &op : problem.graph.ops)
    op.group = "g";
  EXPECT_THAT(proofOf(problem),
              HasSubstr("operator 1 'middle' needs 180 bytes at once"));
  // Where late is free to be elsewhere, big's tensor is, too.
  problem.graph.ops[2].group.reset();
  EXPECT_THAT(proofOf(problem), IsEmpty());
  EXPECT_TRUE(place(problem, {}).placement);
}

TEST(Proofs, WhatIsAliveOnAllDevices) {
  // Eight tensors of 50 wait for the last operator, whoever holds them.
  Problem problem;
  problem.machine = makeMachine(3, 100);
  for (int32_t i = 0; i < 8; ++i) {
    problem.graph.ops.push_back(makeOp("make" + std::to_string(i), 1, {50}));
    problem.graph.ops.push_back(makeOp("use" + std::to_string(i), 1, {}));
  }
  problem.graph.ops.push_back(makeOp("barrier", 1, {}));
  for (int32_t i = 0; i < 8; ++i) {
    problem.graph.edges.push_back({2 * i, 0, 2 * i + 1});
    problem.graph.edges.push_back({2 * i, -1, 16});
    problem.graph.edges.push_back({16, -1, 2 * i + 1});
  }
  EXPECT_THAT(
      proofOf(problem),
      AllOf(HasSubstr("while operator 16 'barrier' runs, 400 bytes must "
                      "be held, whatever the order of the operators: "),
            HasSubstr("; all devices together have 300")));
  EXPECT_EQ(memory::proveInfeasible(problem, Model(problem)).op, 16);
  problem.machine = makeMachine(4, 100);
  EXPECT_THAT(proofOf(problem), IsEmpty());
}

TEST(Proofs, ParametersInParts) {
  // Five of 40 in three of 79: one each, whatever the sum.
  Problem problem;
  problem.machine = makeMachine(3, 79);
  for (int32_t i = 0; i < 5; ++i) {
    problem.graph.ops.push_back(makeOp("p", 1, {}));
    problem.graph.ops.back().resident = 40;
  }
  EXPECT_THAT(proofOf(problem),
              HasSubstr("the parameters and results of all operators are 200 "
                        "bytes in parts that fill 5 times 40, the memories "
                        "there only 3"));
}

TEST(Proofs, ResultsAreTogetherAtTheEnd) {
  Problem problem;
  problem.machine = makeMachine(2, 100);
  for (int32_t i = 0; i < 3; ++i) {
    problem.graph.ops.push_back(makeOp("r" + std::to_string(i), 1, {60}));
    problem.graph.ops.back().result = true;
  }
  EXPECT_THAT(proofOf(problem), HasSubstr("are 180 bytes"));
  // What takes no time can be made when the step ends.
  problem.graph.ops[2].timeNs = {{"", 0}};
  EXPECT_THAT(proofOf(problem), IsEmpty());
}

TEST(Proofs, SizesConfineToo) {
  // Each of the large ones goes into the large device alone.
  Problem problem;
  problem.machine = makeMachine(3, 50);
  problem.machine.devices[1].memory = 110;
  for (int64_t bytes : {60, 60}) {
    problem.graph.ops.push_back(makeOp("p", 1, {}));
    problem.graph.ops.back().resident = bytes;
  }
  EXPECT_THAT(proofOf(problem),
              HasSubstr("the operators that can only be on d1 are 120 bytes, "
                        "the memory there is 110"));
}

/// A few operators and memories that are about what they need.
Problem tightProblem(uint32_t seed) {
  Random random(seed);
  Problem problem;
  int32_t devices = 1 + random.below(3);
  problem.machine = makeMachine(devices);
  bool parameters = random.oneIn(2);
  auto count = 4 + random.below(3);
  for (int32_t i = 0; i < count; ++i) {
    int64_t time = random.oneIn(8) ? 0 : 1 + random.below(50);
    Operator op = makeOp("op" + std::to_string(i), time, {});
    for (int32_t k = random.below(3); k > 0; --k) {
      op.outputs.emplace_back(random.below(100));
      if (random.oneIn(6))
        op.outputs.back().memory = 0;
      else if (random.oneIn(6))
        op.outputs.back().copy = random.below(100);
    }
    op.scratch = random.oneIn(4) ? random.below(80) : 0;
    op.resident = parameters && random.oneIn(2) ? random.below(150) : 0;
    op.result = random.oneIn(6);
    if (random.oneIn(3))
      op.group = "g" + std::to_string(random.below(2));
    else if (random.oneIn(8))
      op.pin = "d" + std::to_string(random.below(devices));
    problem.graph.ops.push_back(std::move(op));
  }
  for (int32_t i = 1; i < count; ++i)
    for (int32_t k = random.below(3); k > 0; --k) {
      int32_t from = random.below(i);
      auto outputs =
          static_cast<int64_t>(problem.graph.ops[from].outputs.size());
      bool data = outputs > 0 && !random.oneIn(6);
      problem.graph.edges.push_back(
          {from, data ? random.below(outputs) : -1, i});
    }
  int64_t bytes = 0;
  for (const Operator &op : problem.graph.ops) {
    bytes += op.resident + op.scratch / 2;
    for (const Output &output : op.outputs)
      bytes += output.memory / 2;
  }
  for (Device &device : problem.machine.devices)
    device.memory = bytes * (80 + random.below(120)) / 100 / devices;
  return problem;
}

/// Whether any assignment has an order that fits.
bool someAssignmentFits(const Model &model, Assignment &device, Unit u) {
  if (u == model.numUnits) {
    memory::Steps steps(model, device);
    bool complete = false;
    if (!memory::searchOrder(steps, 1'000'000, complete).empty())
      return true;
    EXPECT_TRUE(complete);
    // What takes no time is only known to a schedule.
    Schedule schedule;
    Scheduler(model).run(device, {}, &schedule);
    return memory::excessOf(model, schedulePeaks(model, device, schedule)) == 0;
  }
  for (int32_t d = 0; d < model.numDevices; ++d) {
    if (!model.mayUse(u, d))
      continue;
    for (int32_t i : model.members[u])
      device[i] = d;
    if (someAssignmentFits(model, device, u + 1))
      return true;
  }
  return false;
}

TEST(Proofs, NeverWhereSomethingFitsAndRepairFindsIt) {
  int32_t fitting = 0, proven = 0, unproven = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Problem problem = tightProblem(seed);
    if (!check(problem).empty())
      continue;
    Model model(problem);
    Assignment device(model.numNodes);
    memory::LeanOrders lean(model);
    bool fits = someAssignmentFits(model, device, 0);
    std::string proof = memory::proveInfeasible(problem, model).why;
    EXPECT_FALSE(fits && !proof.empty()) << "seed " << seed << ": " << proof;
    fitting += fits;
    ++(!proof.empty() ? proven : unproven);
    if (fits && !memory::findFit(model, lean, device)) {
      // Its results may fit only at one instant.
      bool instants = false;
      for (int32_t i = 0; i < model.numNodes; ++i)
        instants |= model.minTime(i) == 0;
      EXPECT_TRUE(instants) << "seed " << seed;
    }
  }
  EXPECT_GT(fitting, 300);
  // Most of what does not fit is proven not to.
  EXPECT_GT(proven, (unproven - fitting) * 3);
}

} // namespace
