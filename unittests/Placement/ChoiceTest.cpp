//===- ChoiceTest.cpp - Pairwise choices against all choices --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Choice/SolveChoice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

using namespace baechi::placement;
using testing::HasSubstr;

namespace {
/// Every choice in turn; nothing where none is feasible.
std::optional<WideSum> cheapest(const ChoiceProgram &program) {
  std::optional<WideSum> best;
  Choice choice(program.nodes.size(), 0);
  while (true) {
    ChoiceValue value = evaluateChoice(program, choice);
    if (value.isFeasible() && (!best || value.cost < *best))
      best = value.cost;
    size_t node = 0;
    while (node < choice.size() &&
           ++choice[node] == int32_t(program.nodes[node].strategies.size()))
      choice[node++] = 0;
    if (node == choice.size())
      return best;
  }
}

ChoiceProgram randomProgram(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  ChoiceProgram program;
  int nodes = 1 + below(8);
  for (int node = 0; node < nodes; ++node) {
    ChoiceNode made;
    made.begin = below(6);
    made.end = made.begin + below(5);
    for (int count = 1 + below(3); count > 0; --count)
      made.strategies.push_back(
          {below(12) == 0 ? infiniteCost : below(50), below(20)});
    program.nodes.push_back(std::move(made));
  }
  for (int count = below(2 * nodes + 1); count > 0; --count) {
    ChoiceEdge edge{below(nodes), below(nodes), {}};
    size_t entries = program.nodes[edge.first].strategies.size() *
                     program.nodes[edge.second].strategies.size();
    for (size_t entry = 0; entry < entries; ++entry)
      edge.costs.push_back(below(8) == 0 ? infiniteCost : below(40));
    program.edges.push_back(std::move(edge));
  }
  if (below(3))
    program.usageLimit = below(60);
  return program;
}

TEST(Choice, RandomProgramsAgainstAllChoices) {
  int optimal = 0, feasible = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    ChoiceProgram program = randomProgram(seed);
    ASSERT_EQ(checkChoiceProgram(program), "");
    std::optional<WideSum> best = cheapest(program);
    ChoiceOptions options;
    options.work = 1'000'000;
    ChoiceResult result = solveChoice(program, options);
    if (!best) {
      EXPECT_TRUE(result.status == ChoiceStatus::Infeasible ||
                  result.status == ChoiceStatus::NotFound)
          << "seed " << seed;
      EXPECT_TRUE(result.choice.empty()) << "seed " << seed;
      continue;
    }
    ++feasible;
    ASSERT_FALSE(result.status == ChoiceStatus::Infeasible) << "seed " << seed;
    EXPECT_LE(result.bound, *best) << "seed " << seed;
    if (result.choice.empty())
      continue;
    ChoiceValue value = evaluateChoice(program, result.choice);
    EXPECT_TRUE(value.isFeasible()) << "seed " << seed;
    EXPECT_EQ(value.cost, result.value.cost) << "seed " << seed;
    EXPECT_GE(value.cost, *best) << "seed " << seed;
    optimal += value.cost == *best;
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GE(optimal, feasible * 99 / 100) << "of " << feasible;
}

TEST(Choice, TheSameWorkGivesTheSameAnswer) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    ChoiceProgram program = randomProgram(seed);
    ChoiceOptions options;
    options.work = 100'000;
    EXPECT_EQ(solveChoice(program, options).choice,
              solveChoice(program, options).choice);
  }
}

TEST(Choice, TreesWithoutALimitAreOptimal) {
  std::mt19937 random(1);
  ChoiceProgram program;
  for (int node = 0; node < 2000; ++node) {
    ChoiceNode made{0, 1, {}};
    for (int strategy = 0; strategy < 4; ++strategy)
      made.strategies.push_back({int64_t(random() % 1000), 0});
    program.nodes.push_back(made);
    if (node == 0)
      continue;
    ChoiceEdge edge{int32_t(random() % unsigned(node)), node, {}};
    for (int entry = 0; entry < 16; ++entry)
      edge.costs.push_back(int64_t(random() % 1000));
    program.edges.push_back(std::move(edge));
  }
  ChoiceResult result = solveChoice(program);
  EXPECT_EQ(result.status, ChoiceStatus::Optimal);
  EXPECT_TRUE(result.value.cost == result.bound);
}

TEST(Choice, ErrorsNameThePlace) {
  ChoiceProgram program;
  program.nodes = {{0, 1, {{1, 1}}}, {0, 1, {}}};
  EXPECT_NE(checkChoiceProgram(program), "");
  program.nodes[1].strategies = {{1, 1}, {2, 2}};
  EXPECT_EQ(checkChoiceProgram(program), "");
  program.edges = {{0, 1, {1}}};
  EXPECT_NE(checkChoiceProgram(program), "");
  program.edges = {{0, 7, {1, 2}}};
  EXPECT_NE(checkChoiceProgram(program), "");
  program.edges = {};
  EXPECT_NE(checkChoice(program, {0}), "");
  EXPECT_NE(checkChoice(program, {0, 2}), "");
  EXPECT_EQ(checkChoice(program, {0, 1}), "");
}

TEST(Choice, DamagedFilesAreErrors) {
  const std::string text =
      R"({"problem": {"name": "p", "nodes": {"intervals": [[0, 1], [0, 2]],
          "costs": [[1, 2], [3]], "usages": [[1, 1], [5]]},
          "edges": {"nodes": [[0, 1]], "costs": [[1, 0]]},
          "usage_limit": 6}})";
  ChoiceProgram program;
  ASSERT_EQ(parseChoiceProgram(text, "p.json", program), "");
  EXPECT_TRUE(solveChoice(program).value.cost == 5);
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    ChoiceProgram damaged;
    EXPECT_THAT(parseChoiceProgram(text.substr(0, length), "p.json", damaged),
                HasSubstr("p.json"));
  }
  EXPECT_THAT(parseChoiceProgram(text + '\0' + "more", "p.json", program),
              HasSubstr("p.json: byte 214 is zero"));
}
} // namespace
