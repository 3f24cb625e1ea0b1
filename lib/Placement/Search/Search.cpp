//===- Search.cpp - Improvement of an assignment ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Seeding.h finds good assignments of coarse clusters. The best few of these
/// that differ are annealed (Annealing.h) in rounds that keep the better ones,
/// the last one to the end of the budget.
///
//===----------------------------------------------------------------------===//

#include "Search/Search.h"
#include "Grouping/Clusters.h"
#include "Search/Annealing.h"
#include "Search/Exhaustive.h"
#include "Search/MaxLoadSearch.h"
#include "Search/Seeding.h"

#include <algorithm>

using namespace baechi::placement;

namespace {

/// From every unit alone to a few clusters.
Hierarchy makeHierarchy(const UnitTable &units, const Traffic &traffic,
                        Affinity affinity, Random &random) {
  constexpr int32_t fewest = 3;
  Clustering::Options options;
  options.affinity = affinity;
  options.workShare = 0.5;
  options.roundShare = 0.4;
  options.noise = 0.03;
  Clustering clustering(units.model(), traffic);
  Hierarchy levels;
  do
    levels.push_back(
        units.makeLevel(clustering.clusterOf(), clustering.size()));
  while (clustering.size() > fewest && clustering.joinRound(options, random));
  return levels;
}

std::vector<Solution> anneal(Judge &judge, const UnitTable &units,
                             const std::vector<Hierarchy> &hierarchies,
                             std::vector<Solution> solutions, Random &random) {
  Annealing annealing(judge, units, hierarchies, random);
  auto byValue = [](const Solution &a, const Solution &b) {
    return a.value < b.value;
  };
  double begin = judge.spent();
  // Successive halving: rounds of equal cost, each with a third of the last.
  int rounds = solutions.size() > 4 ? 3 : solutions.size() > 1 ? 2 : 1;
  for (int round = 0; round < rounds; ++round) {
    bool isLast = round == rounds - 1;
    size_t count = isLast       ? 1
                   : round == 0 ? solutions.size()
                                : std::max<size_t>(1, solutions.size() / 3);
    double roundEnd = isLast ? 1 : begin + (1 - begin) * 0.4 * (round + 1);
    Annealing::Options options;
    options.hot = 0.003 / (1 + round);
    options.coarse = 0.8 + 0.2 * round;
    options.fine = 1.5 + 0.5 * round;
    for (size_t k = 0; k < count; ++k) {
      double now = judge.spent();
      options.until = now + (roundEnd - now) / static_cast<double>(count - k);
      solutions[k] = annealing.run(std::move(solutions[k]), options);
    }
    std::stable_sort(solutions.begin(), solutions.end(), byValue);
  }
  return solutions;
}

/// A device for every unit. A unit of several of the start's is where the first
/// of its nodes is that is where all of them may be.
Solution project(const Model &merged, const Coarsening &merging,
                 const Assignment &start) {
  Solution solution;
  solution.device.assign(merged.numUnits, -1);
  for (size_t i = 0; i < start.size(); ++i) {
    Unit u = merged.unit[merging.node[i]];
    if (solution.device[u] < 0 && merged.mayUse(u, start[i]))
      solution.device[u] = start[i];
  }
  for (Unit u = 0; u < merged.numUnits; ++u)
    for (int32_t d = 0; solution.device[u] < 0; ++d)
      if (merged.mayUse(u, d))
        solution.device[u] = d;
  return solution;
}

std::vector<Solution> findSolutions(Judge &judge, std::vector<Solution> starts,
                                    const SearchOptions &options) {
  const Model &model = judge.model();
  if (haveFewAssignments(model))
    return tryAll(judge, 4);
  Random random(options.seed);
  UnitTable units(model);
  Traffic traffic(model);
  Seeding seeding(judge, units, traffic, random);
  for (Solution &start : starts)
    seeding.add(std::move(start));
  bool isShort = judge.size() < 3;
  seeding.run(isShort ? 0.4 : 0.15);
  std::vector<Hierarchy> hierarchies;
  for (Affinity affinity : {Affinity::Work, Affinity::Traffic, Affinity::Share})
    hierarchies.push_back(makeHierarchy(units, traffic, affinity, random));
  Hierarchy &mixed = hierarchies.emplace_back(1, hierarchies[0][0]);
  mixed.insert(mixed.end(), seeding.clusterings().begin(),
               seeding.clusterings().end());
  return anneal(judge, units, hierarchies, seeding.best(isShort ? 3 : 8),
                random);
}

} // namespace

SearchResult baechi::placement::search(const Model &model,
                                       const std::vector<Assignment> &starts,
                                       const SearchOptions &options) {
  if (options.objective == Objective::MaxLoad)
    return searchMaxLoad(model, starts, options);
  Coarsening merging = Coarsening::identity(model);
  joinFreely(model, freeShare, merging);
  fuse(model, merging);
  Model merged = coarsen(model, merging);
  std::vector<Solution> solutions;
  for (const Assignment &start : starts)
    solutions.push_back(project(merged, merging, start));
  Judge judge(merged, options);
  SearchResult result;
  result.mergedNodes = merged.numNodes;
  for (const Solution &solution :
       findSolutions(judge, std::move(solutions), options)) {
    Found &found = result.best.emplace_back();
    Schedule schedule;
    bool isScheduled = judge.record(solution, schedule);
    for (int32_t node : merging.node) {
      found.device.push_back(solution.device[merged.unit[node]]);
      if (isScheduled)
        found.start.push_back(schedule.start[node]);
    }
  }
  result.evaluations = judge.spentEvaluations();
  return result;
}
