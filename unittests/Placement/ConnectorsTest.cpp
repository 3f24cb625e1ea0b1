//===- ConnectorsTest.cpp - Units between clusters --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Connectors.h"
#include "Schedule/Evaluator.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::search;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// Two layers of \p steps cells, a sum of both at each step, and a third layer
/// that reads the sums; sums are with the first layer.
struct Residual {
  explicit Residual(int32_t steps, int64_t sumTime = 1) {
    problem.machine = makeMachine(3, int64_t(1) << 40, {10, 1000});
    auto add = [&](const std::string &name, int64_t time, int32_t cluster,
                   const std::vector<int32_t> &sources) {
      auto number = static_cast<int32_t>(problem.graph.ops.size());
      problem.graph.ops.push_back(makeOp(name, time, {100}));
      for (int32_t source : sources)
        problem.graph.edges.push_back({source, 0, number});
      clusterOf.push_back(cluster);
      return number;
    };
    for (int32_t t = 0; t < steps; ++t) {
      int32_t a = add("a" + std::to_string(t), 10'000, 0, {});
      int32_t b = add("b" + std::to_string(t), 10'000, 1, {a});
      sums.push_back(add("sum" + std::to_string(t), sumTime, 0, {a, b}));
      add("c" + std::to_string(t), 10'000, 2, {sums.back()});
    }
  }
  std::vector<Connector> connectors() const {
    Model model(problem);
    UnitTable units(model);
    return findConnectors(units, Traffic(model), units.makeLevel(clusterOf, 3));
  }
  Problem problem;
  std::vector<int32_t> clusterOf, sums;
};

TEST(Connectors, AreShortAndBetweenClusters) {
  Residual residual(4);
  std::vector<Connector> found = residual.connectors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].units, residual.sums);
  // Their own cluster first.
  EXPECT_THAT(found[0].around, ElementsAre(0, 1, 2));
}

TEST(Connectors, DoLittleOfTheWork) {
  // Longer than a transfer, which takes 110 ns.
  EXPECT_THAT(Residual(4, 111).connectors(), IsEmpty());
  // Shorter, but two per cent of everything together.
  Residual residual(4, 109);
  for (Operator &op : residual.problem.graph.ops)
    if (!op.name.starts_with("sum"))
      op.timeNs = {{"", 1500}};
  EXPECT_THAT(residual.connectors(), IsEmpty());
}

TEST(Evaluations, ThatAreGivenUpCountInPart) {
  Residual residual(50);
  Model model(residual.problem);
  Evaluator evaluator(model);
  std::vector<int32_t> alone(model.numUnits, 0);
  int64_t whole = evaluator.run(alone, {}, never);
  ASSERT_NE(whole, never);
  EXPECT_DOUBLE_EQ(evaluator.share(), 1);
  // More work than the cut-off: nothing is simulated.
  EXPECT_EQ(evaluator.run(alone, {}, whole / 2), never);
  EXPECT_LT(evaluator.share(), 0.3);
  // Every step is sent there and back: given up on the way.
  std::vector<int32_t> turns(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    turns[u] = residual.clusterOf[u];
  int64_t spread = evaluator.run(turns, {}, never);
  EXPECT_EQ(evaluator.run(turns, {}, spread - 1), never);
  EXPECT_GT(evaluator.share(), 0.3);
  EXPECT_LT(evaluator.share(), 1);
  EXPECT_EQ(evaluator.run(turns, {}, spread), spread);
}

} // namespace
