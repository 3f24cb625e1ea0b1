//===- FitOptimumTest.cpp - Plans for a memory and the best ones ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FitOptimum.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Recompute/Rewrite.h"
#include "Baechi/Placement/Study/FitSweep.h"
#include "TestProblems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// As `scripts/check-fit` asks for.
int64_t fromEnvironment(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}

class Draw {
public:
  explicit Draw(uint32_t seed) : random(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  }

private:
  std::mt19937 random;
};

/// Operators that read one to three before them.
void makeRandom(Graph &graph, Draw &draw, int32_t count) {
  for (int32_t op = 1; op < count; ++op)
    for (int64_t k = draw(1, 3); k-- > 0;)
      graph.edges.push_back({static_cast<int32_t>(draw(0, op - 1)), 0, op});
}

/// Forwards, and backwards over what forwards has left.
void makeTraining(Graph &graph, Draw &draw, int32_t count) {
  int32_t layers = count / 2;
  for (int32_t op = 1; op < count; ++op) {
    graph.edges.push_back({op - 1, 0, op});
    if (op >= layers && count - 1 - op < op - 1)
      graph.edges.push_back({count - 1 - op, 0, op});
    if (op > 2 && draw(0, 4) == 0)
      graph.edges.push_back({op - 3, 0, op});
  }
}

/// Branches between a fork and a join.
void makeWide(Graph &graph, Draw &draw, int32_t count) {
  auto branches = static_cast<int32_t>(draw(2, 4));
  for (int32_t op = 1; op + 1 < count; ++op)
    graph.edges.push_back({op <= branches ? 0 : op - branches, 0, op});
  for (int32_t op = std::max(1, count - 1 - branches); op + 1 < count; ++op)
    graph.edges.push_back({op, 0, count - 1});
  if (draw(0, 1) && count > 2)
    graph.edges.push_back({0, 0, count - 1});
}

Problem randomProblem(Draw &draw, int32_t most) {
  constexpr int64_t unit = 1000;
  Problem problem;
  problem.machine = makeMachine(2, int64_t(1) << 40,
                                {draw(0, 1) * draw(1, 900), draw(300, 4000)});
  problem.machine.devices[1] = {"pool0", kPool, int64_t(1) << 40};
  Graph &graph = problem.graph;
  auto count = static_cast<int32_t>(draw(4, draw(6, most)));
  for (int32_t op = 0; op < count; ++op) {
    graph.ops.push_back(makeOp("o" + std::to_string(op), draw(1, 9) * unit,
                               {draw(1, 4) * unit}));
    if (draw(0, 4) == 0)
      graph.ops.back().scratch = draw(1, 2) * unit;
  }
  std::array shapes = {makeRandom, makeTraining, makeWide};
  shapes[draw(0, 2)](graph, draw, count);
  // Parameters and inputs.
  for (int32_t op = 0; op < count / 4; ++op)
    if (draw(0, 2) == 0 &&
        std::none_of(graph.edges.begin(), graph.edges.end(),
                     [&](const Edge &edge) { return edge.to == op; })) {
      graph.ops[op].resident = graph.ops[op].outputs.front().bytes;
      graph.ops[op].outputs.front().memory = 0;
      graph.ops[op].timeNs.front().second = 0;
      graph.ops[op].scratch = 0;
    }
  std::vector<uint8_t> read(count, 0);
  for (const Edge &edge : graph.edges)
    read[edge.from] = 1;
  for (int32_t op = 0; op + 1 < count; ++op) {
    if (!read[op])
      graph.edges.push_back({op, 0, count - 1});
    graph.ops[op].result = graph.ops[op].resident == 0 && draw(0, 29) == 0;
  }
  graph.ops.back().result = true;
  auto byEnds = [](const Edge &a, const Edge &b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  };
  std::sort(graph.edges.begin(), graph.edges.end(), byEnds);
  graph.edges.erase(std::unique(graph.edges.begin(), graph.edges.end(),
                                [&](const Edge &a, const Edge &b) {
                                  return !byEnds(a, b) && !byEnds(b, a);
                                }),
                    graph.edges.end());
  return problem;
}

/// Of one of the means: how its plans compare with the best there are.
struct Tally {
  const char *name;
  FitWay FitPoint::*way;
  bool again, pool;
  int64_t equal = 0, close = 0, worse = 0, missed = 0, undecided = 0;
  double worst = 1;

  int64_t decided() const { return equal + close + worse + missed; }
};

/// \p number: of the graph, to find it again.
void compare(const Problem &problem, const FitPoint &point, size_t mostStates,
             int64_t number, Tally &tally) {
  std::vector<uint8_t> repeats(problem.graph.ops.size(), 0);
  if (tally.again)
    repeats = repeatsOf(problem.graph, "gpu").mayRepeat;
  FitOptimum optimum(problem.graph, repeats, *problem.machine.link(0, 1),
                     point.memoryBytes, tally.pool);
  const FitWay &way = point.*tally.way;
  int64_t most = way.fits ? way.stepNs : int64_t(1) << 60;
  auto answer = optimum.run(most, mostStates);
  if (answer == FitOptimum::Answer::Undecided) {
    ++tally.undecided;
  } else if (answer == FitOptimum::Answer::NotBelow) {
    tally.equal += way.fits;
  } else if (!way.fits) {
    ++tally.missed;
    std::printf("graph %lld: %s finds nothing\n",
                static_cast<long long>(number), tally.name);
  } else {
    double ratio =
        static_cast<double>(most) / static_cast<double>(optimum.bestNs());
    tally.worst = std::max(tally.worst, ratio);
    ++(ratio <= 1.05 ? tally.close : tally.worse);
    if (ratio > 1.05)
      std::printf("graph %lld: %s takes %.3f times as long\n",
                  static_cast<long long>(number), tally.name, ratio);
  }
}

using Tallies = std::array<Tally, 3>;

constexpr Tallies noneYet = {Tally{"again", &FitPoint::again, true, false},
                             Tally{"pool", &FitPoint::pool, false, true},
                             Tally{"both", &FitPoint::both, true, true}};

/// Plans a graph for a random memory; false: every memory that holds it holds
/// it as it is.
bool judge(int64_t number, int32_t mostOps, size_t states, Tallies &tallies) {
  Draw draw(static_cast<uint32_t>(number));
  Problem problem = randomProblem(draw, mostOps);
  int64_t floor = memoryFloor(problem.graph).bytes;
  int64_t lean = leanOrdersOf(problem.graph, {"gpu", {}}).front().peakBytes;
  if (lean <= floor)
    return false;
  FitSweepOptions options;
  options.memory = {
      {SweepMemory::Kind::Bytes, static_cast<double>(draw(floor, lean - 1))}};
  options.place.budget = Budget::ofEvaluations(50);
  FitSweep sweep = fitSweep(problem, options);
  EXPECT_EQ(sweep.error, "");
  for (Tally &tally : tallies)
    compare(problem, sweep.points.at(0), states, number, tally);
  return true;
}

TEST(FitOptimum, PlansOfSmallGraphsAreTheBest) {
  int64_t graphs = fromEnvironment("BAECHI_FIT_GRAPHS", 200);
  int64_t seed = fromEnvironment("BAECHI_FIT_SEED", 1);
  auto most = static_cast<int32_t>(fromEnvironment("BAECHI_FIT_OPS", 12));
  size_t states = fromEnvironment("BAECHI_FIT_STATES", 20'000);
  Tallies tallies = noneYet;
  for (int64_t done = 0, number = seed; done < graphs; ++number)
    done += judge(number, most, states, tallies);
  for (const Tally &tally : tallies) {
    auto number = [](int64_t count) { return static_cast<long long>(count); };
    std::printf("%s: %lld equal, %lld at most 5 %% above, %lld more, at most "
                "%.3f times as long; %lld not found, %lld undecided\n",
                tally.name, number(tally.equal), number(tally.close),
                number(tally.worse), tally.worst, number(tally.missed),
                number(tally.undecided));
    EXPECT_GE(tally.equal, tally.decided() * 95 / 100) << tally.name;
    EXPECT_EQ(tally.worse, 0) << tally.name;
    EXPECT_EQ(tally.missed, 0) << tally.name;
    EXPECT_GT(tally.decided(), tally.undecided) << tally.name;
  }
}

/// Graphs for which something shorter was there than what was found, or
/// something where nothing was found.
TEST(FitOptimum, PlansThatWereTooLongAreGood) {
  for (int64_t number : {102023, 301090, 301111, 301379}) {
    Tallies tallies = noneYet;
    EXPECT_TRUE(judge(number, 20, 200'000, tallies));
    for (const Tally &tally : tallies)
      EXPECT_EQ(tally.equal + tally.close, tally.decided())
          << number << " " << tally.name;
    EXPECT_EQ(tallies.back().decided(), 1) << number;
  }
}

} // namespace
