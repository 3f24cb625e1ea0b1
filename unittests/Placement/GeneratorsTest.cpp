//===- GeneratorsTest.cpp - The graphs that benchmarks place ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generators.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Session/Place.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using testing::IsEmpty;

namespace {

class Generators : public testing::TestWithParam<std::string> {};

TEST_P(Generators, SizeIsWhatWasAskedFor) {
  for (int32_t operators : {1000, 5000, 20000}) {
    auto size = static_cast<int32_t>(
        benchmarks::generate(GetParam(), operators).ops.size());
    EXPECT_GE(size, operators);
    EXPECT_LE(size, operators + operators / 3);
  }
}

TEST_P(Generators, SameNameAndSizeGiveTheSameGraph) {
  std::string once, again;
  ASSERT_EQ(formatGraph(benchmarks::generate(GetParam(), 1000), once), "");
  ASSERT_EQ(formatGraph(benchmarks::generate(GetParam(), 1000), again), "");
  EXPECT_EQ(once, again);
}

TEST_P(Generators, BackwardOperatorsBelongToForwardOnes) {
  Graph graph = benchmarks::generate(GetParam(), 3000);
  int32_t backward = 0, updates = 0;
  for (const Operator &op : graph.ops) {
    backward += op.backward;
    updates += op.name.starts_with("train/");
    EXPECT_EQ(op.backward, op.forward.has_value()) << op.name;
    if (op.forward) {
      EXPECT_FALSE(graph.ops[*op.forward].backward) << op.name;
    }
  }
  EXPECT_GT(backward, static_cast<int32_t>(graph.ops.size()) / 3);
  EXPECT_GT(updates, 10);
}

TEST_P(Generators, GraphsCanBePlaced) {
  Problem problem{benchmarks::generate(GetParam(), 2000),
                  benchmarks::uniformMachine(8, int64_t(1) << 50)};
  ASSERT_THAT(check(problem), IsEmpty());
  PlaceOptions options;
  options.placer = "metf";
  EXPECT_TRUE(place(problem, options).placement);
}

TEST(Generators, UnknownNamesGiveNothing) {
  EXPECT_TRUE(benchmarks::generate("vgg", 1000).ops.empty());
}

INSTANTIATE_TEST_SUITE_P(Families, Generators,
                         testing::ValuesIn(benchmarks::generatorNames()),
                         [](const auto &info) { return info.param; });

} // namespace
