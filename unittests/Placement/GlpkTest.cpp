//===- GlpkTest.cpp - The GLPK back end -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/Favourites.h"
#include "Placers/Placers.h"
#include "TestProblems.h"
#include "TestPrograms.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Lp/Glpk.h"
#include "Baechi/Placement/Lp/NativeSolver.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::DoubleNear;

namespace {

TEST(Glpk, ChainHasFavouritesOnly) {
  LpProgram program{{1, 2, 3}, {{0, 1, 10}, {1, 2, 10}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(longestPath(program, solution.x), DoubleNear(6, 1e-6));
}

TEST(Glpk, ForkSharesTheFavourite) {
  // Two equal children: each gets half of the saving, w = 1 + 5 + 2.
  LpProgram program{{1, 2, 2}, {{0, 1, 10}, {0, 2, 10}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(solution.x[0] + solution.x[1], testing::Ge(1 - 1e-6));
  EXPECT_THAT(longestPath(program, solution.x), DoubleNear(8, 1e-6));
}

TEST(Glpk, ForkWithADearAndACheapChild) {
  // The dear child is the favourite until both take the same: 3 = 10 x, so
  // w = 1 + 3 (1 - y) ... with y = 10/13 for the dear one.
  LpProgram program{{1, 2, 2}, {{0, 1, 10}, {0, 2, 3}}};
  LpSolution solution = createGlpkSolver()->solve(program, 10);
  ASSERT_TRUE(solution.optimal) << solution.note;
  EXPECT_THAT(longestPath(program, solution.x),
              DoubleNear(3 + 10 * 3 / 13.0, 1e-6));
}

/// Both solvers, and what they must agree on.
void compare(const LpProgram &program, double seconds = 60) {
  LpSolution reference = createGlpkSolver()->solve(program, seconds);
  LpSolution native = createNativeSolver()->solve(program, 60);
  ASSERT_TRUE(reference.optimal) << reference.note;
  ASSERT_TRUE(native.optimal) << native.note;
  EXPECT_NEAR(reference.value, native.value, 1e-6 * native.value);
  EXPECT_LE(native.bound, reference.value * (1 + 1e-9));
}

TEST(Glpk, AgreesWithTheNativeSolver) {
  for (int kind = 0; kind < numKinds; ++kind)
    for (uint32_t seed = 100; seed < 130; ++seed) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << " seed " << seed);
      compare(randomProgram(seed, static_cast<Kind>(kind), 60));
    }
}

TEST(Glpk, AgreesWithTheNativeSolverOnLargerPrograms) {
  for (int kind = 0; kind < numKinds; ++kind) {
    SCOPED_TRACE(testing::Message() << "kind " << kind);
    compare(randomProgram(7, static_cast<Kind>(kind), 700));
  }
}

/// The program of an instance of data/msr: times on accelerators, the cost of
/// one transfer.
LpProgram readInstance(const std::filesystem::path &file) {
  nlohmann::json instance = nlohmann::json::parse(std::ifstream(file));
  std::map<int64_t, std::vector<std::pair<int64_t, double>>> users;
  std::map<int64_t, int32_t> waiting;
  std::map<int64_t, double> time;
  auto id = [](const nlohmann::json &value) {
    return value.is_string() ? std::stoll(value.get<std::string>())
                             : value.get<int64_t>();
  };
  for (const auto &node : instance["nodes"]) {
    time[id(node["id"])] = node["fpgaLatency"];
    waiting[id(node["id"])] = 0;
  }
  for (const auto &edge : instance["edges"]) {
    users[id(edge["sourceId"])].emplace_back(id(edge["destId"]), edge["cost"]);
    ++waiting[id(edge["destId"])];
  }
  std::vector<int64_t> order;
  for (const auto &[node, count] : waiting)
    if (count == 0)
      order.push_back(node);
  std::map<int64_t, int32_t> position;
  for (size_t k = 0; k < order.size(); ++k) {
    position[order[k]] = static_cast<int32_t>(k);
    for (const auto &[user, cost] : users[order[k]])
      if (--waiting[user] == 0)
        order.push_back(user);
  }
  LpProgram program;
  for (int64_t node : order) {
    program.time.push_back(time[node]);
    std::map<int32_t, double> transfer;
    for (const auto &[user, cost] : users[node])
      transfer[position[user]] += cost;
    for (const auto &[user, cost] : transfer)
      program.edges.push_back({position[node], user, cost});
  }
  return program;
}

TEST(Glpk, AgreesWithTheNativeSolverOnRealGraphs) {
  int32_t count = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(
           BAECHI_SOURCE_DIR "/data/msr")) {
    // The other folder has the experts' placements.
    if (entry.path().extension() != ".json" ||
        entry.path().string().find("-inputs") == std::string::npos)
      continue;
    SCOPED_TRACE(entry.path().filename());
    compare(readInstance(entry.path()));
    ++count;
  }
  EXPECT_EQ(count, 24);
}

/// Minutes of GLPK: with --gtest_also_run_disabled_tests.
TEST(Glpk, DISABLED_AgreesWithTheNativeSolverOnTheModels) {
  const std::string folder = BAECHI_SOURCE_DIR "/data/graphs/";
  Problem problem;
  ASSERT_EQ(readMachine(folder + "machine_4x8GiB.json", problem.machine), "");
  for (const char *name : {"inception_v3", "gnmt40", "gnmt50"}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(readGraph(folder + name + ".json.xz", problem.graph), "");
    compare(lp::favouriteProgram(Model(problem)), 1000);
  }
}

TEST(Glpk, NoEdges) {
  EXPECT_TRUE(createGlpkSolver()->solve({{1, 2}, {}}, 10).optimal);
}

TEST(Glpk, PlacesThroughTheProgram) {
  auto solver = createGlpkSolver();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = randomProblem(seed);
    if (!check(problem).empty())
      continue;
    PlaceOptions options;
    options.solver = solver.get();
    options.budget = Budget::none();
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_TRUE(verify(problem, *result.placement).empty());
    EXPECT_TRUE(result.notes.empty()) << result.notes.front();
  }
}

TEST(Glpk, TimeLimitIsReported) {
  // 3,000 random edges do not end within a microsecond.
  LpProgram program;
  program.time.assign(1000, 1);
  for (int32_t i = 0; i < 997; ++i)
    for (int32_t k = 1; k <= 3; ++k)
      program.edges.push_back({i, i + k, 10.0 + (i * 7 + k * 13) % 50});
  LpSolution solution = createGlpkSolver()->solve(program, 1e-6);
  EXPECT_FALSE(solution.optimal);
  EXPECT_TRUE(solution.x.empty());
  EXPECT_NE(solution.note.find("time limit"), std::string::npos);
}

} // namespace
