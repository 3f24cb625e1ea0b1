//===- StepsTest.cpp - Grouping step by step --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/GroupingSteps.h"
#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A chain of \p layers forward operators and the backward operators that run
/// it back; each reads what its forward operator has left.
Problem training(int32_t layers, int64_t bytes = 10, int64_t resident = 0) {
  Problem problem;
  problem.machine = makeMachine(2);
  for (int32_t i = 0; i < layers; ++i) {
    problem.graph.ops.push_back(makeOp("f" + std::to_string(i), 100, {bytes}));
    problem.graph.ops.back().resident = resident;
    if (i > 0)
      problem.graph.edges.push_back({i - 1, 0, i});
  }
  for (int32_t i = layers; i-- > 0;) {
    auto id = static_cast<int32_t>(problem.graph.ops.size());
    problem.graph.ops.push_back(makeOp("b" + std::to_string(i), 200, {bytes}));
    problem.graph.ops.back().backward = true;
    problem.graph.ops.back().forward = i;
    problem.graph.edges.push_back({id - 1, 0, id});
    if (id != layers)
      problem.graph.edges.push_back({i, 0, id});
  }
  return problem;
}

PlaceOptions with(const std::vector<std::string> &grouping) {
  PlaceOptions options;
  options.placer = "metf";
  options.budget = Budget::none();
  options.grouping = grouping;
  return options;
}

TEST(Forward, BackwardOperatorsFollow) {
  Problem problem = training(/*layers=*/6);
  problem.graph.ops[2].pin = "d1";
  for (const auto &steps : std::vector<std::vector<std::string>>{
           {"forward"},
           {"forward", "coplace", "fuse"},
           {"coplace", "fuse", "forward"},
           {"fuse", "forward", "coplace", "fuse"},
           {"forward", "fuse", "coplace", "forward"}}) {
    PlaceResult result = place(problem, with(steps));
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    EXPECT_THAT(result.notes, IsEmpty());
    for (size_t i = 6; i < 12; ++i)
      EXPECT_EQ(result.placement->device[i],
                result.placement->device[*problem.graph.ops[i].forward]);
    EXPECT_EQ(result.placement->device[2], 1);
  }
}

TEST(Forward, StepsAreReported) {
  Problem problem = training(/*layers=*/6);
  problem.graph.ops[0].group = problem.graph.ops[1].group = "g";
  Model model(problem);
  session::Grouping grouping =
      session::applySteps(problem, model, {"colocate", "forward", "fuse"});
  ASSERT_EQ(grouping.steps.size(), 3u);
  EXPECT_EQ(grouping.steps[0].name, "colocate");
  EXPECT_EQ(grouping.steps[0].groupsBefore, 12);
  EXPECT_EQ(grouping.steps[0].groupsAfter, 11);
  EXPECT_DOUBLE_EQ(grouping.steps[0].largestWork, 200.0 / 1800);
  EXPECT_DOUBLE_EQ(grouping.steps[0].largestMemory, 20.0 / 120);
  EXPECT_EQ(grouping.steps[1].groupsBefore, 11);
  EXPECT_EQ(grouping.steps[1].groupsAfter, 5);
  EXPECT_EQ(grouping.steps[1].operatorsAfter, 12);
  EXPECT_DOUBLE_EQ(grouping.steps[1].largestWork, 600.0 / 1800);
  EXPECT_EQ(grouping.steps[2].operatorsBefore, 12);
  EXPECT_EQ(grouping.steps[2].operatorsAfter, grouping.coarsening.numNodes);
  EXPECT_EQ(grouping.steps[2].groupsAfter, 5);
}

TEST(Forward, PinsKeepThemApart) {
  Problem problem = training(/*layers=*/4);
  problem.graph.ops[0].pin = "d0";
  problem.graph.ops[7].pin = "d1"; // the backward operator of 0
  PlaceResult result = place(problem, with({"forward"}));
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], HasSubstr("1 backward operators do not follow"));
}

TEST(Forward, NotWhenTheMemoryForbidsIt) {
  // Forward operators hold 60 bytes, backward ones 60: a pair fits no device,
  // a forward with another's backward does not either, all four devices do.
  Problem problem = training(/*layers=*/2, /*bytes=*/1);
  problem.machine = makeMachine(4, 100);
  for (Operator &op : problem.graph.ops)
    op.resident = 60;
  PlaceResult result = place(problem, with({"forward"}));
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], HasSubstr("2 backward operators do not follow"));

  // Every pair fits a device, but three pairs do not fit two.
  problem = training(/*layers=*/3, /*bytes=*/1, /*resident=*/35);
  problem.machine = makeMachine(2, 110);
  for (size_t i = 3; i < 6; ++i)
    problem.graph.ops[i].resident = 30;
  result = place(problem, with({"forward"}));
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  ASSERT_FALSE(result.notes.empty());
  EXPECT_THAT(result.notes[0], HasSubstr("'forward' is left out"));
  EXPECT_EQ(result.grouping[0].groupsAfter, 6);
}

TEST(Forward, WithoutForwardOperatorsItSaysSo) {
  PlaceResult result = place(diamond(), with({"forward"}));
  ASSERT_TRUE(result.placement) << result.error;
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], HasSubstr("has nothing to do"));
}

TEST(Forward, AGroupOfAllBackwardOperatorsDoesNotTieTheModel) {
  Problem problem = training(/*layers=*/20);
  for (size_t i = 20; i < 40; ++i)
    problem.graph.ops[i].group = "optimizer";
  session::Grouping grouping =
      session::applySteps(problem, Model(problem), {"forward"});
  EXPECT_GT(grouping.coarsening.numUnits, 2);
}

/// Residual blocks as in ResNet-50 (He et al. 2016) with their gradients and
/// parameter updates, a parameter and its update colocated: the graph on which
/// unbounded co-placement leaves one group.
Problem residualTraining(int32_t blocks) {
  Problem problem;
  problem.machine = makeMachine(4, int64_t(8) << 30, {134000, 5701});
  Graph &graph = problem.graph;
  auto add = [&](const std::string &name, int64_t time, int64_t bytes,
                 const std::vector<int32_t> &operands) {
    auto id = static_cast<int32_t>(graph.ops.size());
    graph.ops.push_back(makeOp(name, time, {bytes}));
    for (int32_t operand : operands)
      graph.edges.push_back({operand, 0, id});
    return id;
  };
  struct Layer {
    int32_t weight, input, forward;
  };
  std::vector<Layer> layers;
  std::vector<int32_t> adds;
  constexpr int64_t activation = 4 << 20, parameter = 1 << 20;
  int32_t last = add("input", 0, activation, {});
  for (int32_t b = 0; b < blocks; ++b) {
    int32_t shortcut = last;
    for (int k = 0; k < 3; ++k) {
      std::string name = "res" + std::to_string(b) + "/" + std::to_string(k);
      int32_t weight = add(name + "_w", 0, parameter, {});
      graph.ops[weight].resident = parameter;
      graph.ops[weight].outputs[0].memory = 0;
      graph.ops[weight].group = name;
      int32_t conv = add(name, 400000, activation, {weight, last});
      layers.push_back({weight, last, conv});
      last = add(name + "_relu", 20000, activation, {conv});
    }
    last = add("sum" + std::to_string(b), 20000, activation, {last, shortcut});
    adds.push_back(last);
  }
  int32_t gradient = add("loss_grad", 20000, activation, {last});
  for (int32_t b = blocks; b-- > 0;) {
    int32_t through = gradient;
    for (int k = 3; k-- > 0;) {
      const Layer &layer = layers[3 * b + k];
      // A copy: the operators move as more are added.
      std::string name = *graph.ops[layer.weight].group;
      int32_t filter =
          add(name + "_w_grad", 400000, parameter, {layer.input, gradient});
      int32_t update = add("SGD_" + name, 8000, 0, {layer.weight, filter});
      graph.ops[update].group = name;
      gradient =
          add(name + "_grad", 400000, activation, {layer.weight, gradient});
      for (int32_t op : {filter, update, gradient}) {
        graph.ops[op].backward = true;
        graph.ops[op].forward = layer.forward;
      }
    }
    gradient = add("sum_grad", 20000, activation, {gradient, through});
  }
  return problem;
}

void expectBalance(const Problem &problem, int32_t groups) {
  ASSERT_THAT(check(problem), IsEmpty());
  Model model(problem);
  for (const auto &names : std::vector<std::vector<std::string>>{
           {"colocate", "coplace", "fuse"},
           {"colocate", "forward", "coplace", "fuse"}}) {
    session::Grouping grouping = session::applySteps(problem, model, names);
    EXPECT_THAT(grouping.notes, IsEmpty());
    const GroupingStep &last = grouping.steps.back();
    EXPECT_GE(last.groupsAfter, groups);
    // At most a fifth above an even share on the four devices.
    EXPECT_LE(last.largestWork, 1.2 / 4);
    EXPECT_LT(last.operatorsAfter, last.operatorsBefore);
  }
}

TEST(Coplace, DoesNotSwallowAResNet) {
  expectBalance(residualTraining(/*blocks=*/16), /*groups=*/8);
}

TEST(Coplace, DoesNotSwallowGnmt) {
  Problem problem;
  ASSERT_EQ(
      readGraph(BAECHI_SOURCE_DIR "/data/graphs/gnmt40.json.xz", problem.graph),
      "");
  ASSERT_EQ(readMachine(BAECHI_SOURCE_DIR "/data/graphs/machine_4x8GiB.json",
                        problem.machine),
            "");
  expectBalance(problem, /*groups=*/8);
}

} // namespace
