//===- ScotchTest.cpp - Min-cut placement by Scotch -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Placers/Scotch.h"
#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::Each;
using testing::IsEmpty;

namespace {

/// Two cliques of four vertices with one light edge between them.
PartitionProblem cliques() {
  PartitionProblem problem;
  problem.weight.assign(8, 10);
  problem.fixed.assign(8, -1);
  problem.share = {0.5, 0.5};
  for (int32_t a = 0; a < 8; ++a)
    for (int32_t b = a + 1; b < 8; ++b)
      if (a / 4 == b / 4)
        problem.edges.push_back({a, b, 100});
      else if (a == 3 && b == 4)
        problem.edges.push_back({a, b, 1});
  return problem;
}

std::vector<int32_t> partsOf(const PartitionProblem &problem) {
  std::vector<int32_t> part;
  EXPECT_EQ(createScotchPartitioner()->partition(problem, part), "");
  EXPECT_EQ(part.size(), problem.weight.size());
  for (size_t v = 0; v < part.size(); ++v) {
    EXPECT_GE(part[v], 0);
    EXPECT_LT(part[v], static_cast<int32_t>(problem.share.size()));
    if (problem.fixed[v] >= 0)
      EXPECT_EQ(part[v], problem.fixed[v]);
  }
  return part;
}

TEST(Scotch, CutsTheLightEdge) {
  auto part = partsOf(cliques());
  for (size_t v = 0; v < 8; ++v)
    EXPECT_EQ(part[v], v < 4 ? part[0] : 1 - part[0]);
  EXPECT_EQ(partsOf(cliques()), part);
}

TEST(Scotch, FixedVerticesStay) {
  PartitionProblem problem = cliques();
  problem.fixed[0] = 1;
  auto part = partsOf(problem);
  for (size_t v = 0; v < 8; ++v)
    EXPECT_EQ(part[v], v < 4);
  problem.fixed = {0, 1, 0, 1, 0, 1, 0, 1};
  EXPECT_EQ(partsOf(problem), problem.fixed);
}

TEST(Scotch, SharesAreKept) {
  PartitionProblem problem;
  problem.weight.assign(90, 1000);
  problem.fixed.assign(90, -1);
  for (int32_t v = 1; v < 90; ++v)
    problem.edges.push_back({v - 1, v, 5});
  problem.share = {2.0 / 3, 1.0 / 3};
  auto part = partsOf(problem);
  EXPECT_NEAR(static_cast<double>(std::count(part.begin(), part.end(), 0)), 60,
              6);
}

TEST(Scotch, OddGraphs) {
  PartitionProblem problem;
  problem.share = {0.5, 0.5};
  EXPECT_THAT(partsOf(problem), IsEmpty());
  problem.weight = {3}; // more parts than vertices
  problem.fixed = {-1};
  partsOf(problem);
  problem.weight.assign(5, 0); // no weight and no edges
  problem.fixed.assign(5, -1);
  partsOf(problem);
  problem.weight.assign(5, int64_t(1) << 60); // beyond 32 bits
  problem.edges = {{0, 1, int64_t(1) << 60}, {1, 2, 0}, {3, 4, 1}};
  partsOf(problem);
  problem.share = {1};
  EXPECT_THAT(partsOf(problem), Each(0));
}

PlaceOptions byMinCut(const Partitioner *scotch) {
  PlaceOptions options;
  options.placer = "min-cut";
  options.budget = Budget::none();
  options.partitioner = scotch;
  return options;
}

TEST(MinCut, RandomProblems) {
  auto scotch = createScotchPartitioner();
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceOptions options = byMinCut(scotch.get());
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << "seed " << seed << ": " << result.error;
    EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
    EXPECT_EQ(place(problem, options).placement->device,
              result.placement->device);
  }
}

TEST(MinCut, BeatsOneDeviceOnInception) {
  Problem problem;
  ASSERT_EQ(readGraph(BAECHI_SOURCE_DIR "/data/graphs/inception_v3.json.xz",
                      problem.graph),
            "");
  ASSERT_EQ(readMachine(BAECHI_SOURCE_DIR "/data/graphs/machine_4x8GiB.json",
                        problem.machine),
            "");
  auto scotch = createScotchPartitioner();
  PlaceResult result = place(problem, byMinCut(scotch.get()));
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_LT(result.placement->makespanNs, 252008000);
}

} // namespace
