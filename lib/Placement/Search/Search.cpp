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
#include "Memory/Orders.h"
#include "Search/Annealing.h"
#include "Search/Exhaustive.h"
#include "Search/Seeding.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

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

bool isBetter(const Solution &a, const Solution &b) {
  return a.value < b.value;
}

/// Beyond so many units a hierarchy takes as long as several evaluations.
constexpr int32_t manyUnits = 100'000;

/// The stages of one search.
class Stages {
public:
  /// \p fine has the units of \p evaluator, unmerged nodes.
  Stages(const SearchModels &models, MeteredEvaluator &evaluator,
         MeteredEvaluator &fine, Meter &meter, uint64_t seed,
         const std::vector<std::vector<int32_t>> &groupings)
      : evaluator(evaluator), fine(fine), meter(meter), random(seed),
        units(*models.units), traffic(models.traffic) {
    for (const auto &groupOf : groupings)
      groups.push_back(units.makeLevel(
          groupOf, *std::max_element(groupOf.begin(), groupOf.end()) + 1));
  }

  std::vector<Solution> run(const std::vector<Solution> &starts);

private:
  std::vector<Solution> startOver(const std::vector<Solution> &starts,
                                  double seedingEnd, double end);
  void anneal(std::vector<Solution> &solutions, double end);

  void polish(std::vector<Solution> &solutions);

  MeteredEvaluator &evaluator, &fine;
  Meter &meter;
  Random random;
  const UnitTable &units;
  const Traffic &traffic;
  std::vector<Level> groups; ///< known ones
  std::vector<Hierarchy> hierarchies;
};

/// Successive halving: rounds of about equal cost, each with a third of the
/// last one's solutions. Leaves the best first.
void Stages::anneal(std::vector<Solution> &solutions, double end) {
  double begin = evaluator.spent();
  int rounds = solutions.size() > 4 ? 3 : solutions.size() > 1 ? 2 : 1;
  size_t count = solutions.size();
  for (int round = 0; round < rounds; ++round) {
    bool isLast = round == rounds - 1;
    if (round > 0)
      count = isLast ? 1 : std::max<size_t>(1, count / 3);
    double roundEnd = isLast ? end : begin + (end - begin) * 0.4 * (round + 1);
    Annealing annealing(evaluator, units, hierarchies, random);
    annealing.setGuides(solutions);
    Annealing::Options options;
    options.hot = 0.003 / (1 + round);
    options.coarse = 0.8 + 0.2 * round;
    options.fine = 1.5 + 0.5 * round;
    for (size_t k = 0; k < count; ++k) {
      double now = evaluator.spent();
      options.until = now + (roundEnd - now) / static_cast<double>(count - k);
      solutions[k] = annealing.run(std::move(solutions[k]), options);
    }
    std::stable_sort(solutions.begin(), solutions.end(), isBetter);
  }
}

/// New clusterings, new samples, and a first annealing of the best few.
std::vector<Solution> Stages::startOver(const std::vector<Solution> &starts,
                                        double seedingEnd, double end) {
  constexpr size_t finalists = 3;
  Seeding seeding(evaluator, units, traffic, random);
  for (const Solution &start : starts)
    seeding.add(start);
  for (const Level &known : groups)
    seeding.addGroups(known);
  seeding.run(seedingEnd);
  hierarchies.clear();
  std::vector<Affinity> affinities{Affinity::Work, Affinity::Traffic,
                                   Affinity::Share};
  if (units.model().numUnits > manyUnits)
    affinities = {Affinity::Share};
  for (Affinity affinity : affinities)
    hierarchies.push_back(makeHierarchy(units, traffic, affinity, random));
  Hierarchy &mixed = hierarchies.emplace_back(1, hierarchies[0][0]);
  mixed.insert(mixed.end(), seeding.clusterings().begin(),
               seeding.clusterings().end());
  std::vector<Solution> solutions = seeding.best(finalists);
  anneal(solutions, end);
  return solutions;
}

/// The rest of the budget on the unmerged nodes, whose order is free. What it
/// began with stays: it may be better as merged.
void Stages::polish(std::vector<Solution> &solutions) {
  // None can be scheduled: devices that must talk have no link.
  if (solutions.empty())
    return;
  for (Solution &solution : solutions)
    solution.value = fine.value(solution, never);
  std::stable_sort(solutions.begin(), solutions.end(), isBetter);
  Annealing annealing(fine, units, hierarchies, random);
  annealing.setGuides(solutions);
  Annealing::Options options;
  options.hot = 0.001;
  options.coarse = 1.2;
  options.fine = 3;
  Solution polished = annealing.run(solutions.front(), options);
  solutions.insert(solutions.begin(), std::move(polished));
}

std::vector<Solution> Stages::run(const std::vector<Solution> &starts) {
  // Long searches begin several times: what the first second finds depends
  // more on its luck than on the time it gets.
  constexpr int mostRestarts = 12;
  constexpr double seedingShare = 0.4, restartShare = 0.5, polishFrom = 0.7;
  int restarts = meter.size() < 3
                     ? 1
                     : std::clamp(static_cast<int>(meter.size() * restartShare),
                                  2, mostRestarts);
  if (restarts == 1) {
    std::vector<Solution> found = startOver(starts, seedingShare, 0.9);
    polish(found);
    return found;
  }
  std::vector<Solution> pool;
  for (int k = 0; k < restarts; ++k) {
    double begin = evaluator.spent();
    double end = restartShare * (k + 1) / restarts;
    auto found = startOver(k == 0 ? starts : std::vector<Solution>(),
                           begin + (end - begin) * seedingShare, end);
    if (!found.empty())
      pool.push_back(std::move(found.front()));
  }
  std::stable_sort(pool.begin(), pool.end(), isBetter);
  anneal(pool, polishFrom);
  polish(pool);
  return pool;
}

/// A device for every unit. A unit of several of the start's is where the first
/// of its nodes is that is where all of them may be.
Solution project(const Model &merged, const grouping::Coarsening &merging,
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

/// A group for every unit, numbered from 0. A unit of several of the model's is
/// in the group of its first node.
std::vector<int32_t> project(const Model &model, const Model &merged,
                             const grouping::Coarsening &merging,
                             const std::vector<Unit> &groupOf) {
  std::vector<int32_t> result(merged.numUnits, -1);
  std::vector<int32_t> number(model.numUnits, -1);
  int32_t count = 0;
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t &group = result[merged.unit[merging.node[i]]];
    if (group >= 0)
      continue;
    int32_t &known = number[groupOf[model.unit[i]]];
    if (known < 0)
      known = count++;
    group = known;
  }
  return result;
}

/// The ranks of the nodes by the start of what they were merged into.
std::vector<int64_t> startsOf(const Model &model,
                              const grouping::Coarsening &merging,
                              const Schedule &schedule) {
  // Of equal starts the first in topological order.
  std::vector<std::pair<int64_t, int32_t>> order(model.order.size());
  for (int32_t k = 0; k < model.numNodes; ++k)
    order[k] = {schedule.start[merging.node[model.order[k]]], k};
  std::sort(order.begin(), order.end());
  std::vector<int64_t> rank(order.size());
  for (size_t k = 0; k < order.size(); ++k)
    rank[model.order[order[k].second]] = static_cast<int64_t>(k);
  return rank;
}

} // namespace

SearchModel::SearchModel(Model of,
                         const std::vector<std::vector<int32_t>> *known)
    : model(std::move(of)) {
  if (model.memoryMatters())
    leanOrders = known && !known->empty() ? *known : memory::leanOrders(model);
}

SearchModels::SearchModels(const Model &model, const SearchModels *alike)
    : joining(grouping::Coarsening::identity(model)) {
  grouping::joinFreely(model, grouping::freeShare, joining);
  // Coarsening looks at links and numbers of devices.
  bool areJoined = alike && alike->joining.node == joining.node;
  joined = SearchModel(grouping::coarsen(model, joining),
                       areJoined ? &alike->joined.leanOrders : nullptr);
  merging = joining;
  // The unmerged have the last word.
  constexpr double delayShare = 1.0 / 500;
  grouping::fuse(model, merging, delayShare);
  bool areMerged = alike && alike->merging.node == merging.node;
  merged = SearchModel(grouping::coarsen(model, merging),
                       areMerged ? &alike->merged.leanOrders : nullptr);
  units.emplace(merged.model);
  traffic = Traffic(merged.model);
}

SearchResult baechi::placement::search::search(
    const Model &model, const SearchModels &models,
    const std::vector<Assignment> &starts, const SearchOptions &options) {
  const grouping::Coarsening &joining = models.joining,
                             &merging = models.merging;
  const Model &joined = models.joined.model, &merged = models.merged.model;
  std::vector<Solution> solutions;
  for (const Assignment &start : starts)
    solutions.push_back(project(merged, merging, start));
  std::vector<std::vector<int32_t>> groupings;
  for (const std::vector<Unit> &groupOf : options.groupings)
    groupings.push_back(project(model, merged, merging, groupOf));
  Meter meter(merged, options);
  MeteredEvaluator evaluator(models.merged, meter);
  MeteredEvaluator fine(models.joined, meter,
                        static_cast<double>(joined.numNodes) /
                            std::max(merged.numNodes, 1));
  constexpr size_t few = 4;
  SearchResult result;
  std::optional<int64_t> all = fewAssignments(joined);
  result.allTried = all && fine.affords(*all);
  std::vector<Solution> best =
      result.allTried
          ? tryAll(fine, few)
          : Stages(models, evaluator, fine, meter, options.seed, groupings)
                .run(solutions);
  best.resize(std::min(best.size(), few));
  for (const Solution &solution : best) {
    Found &found = result.best.emplace_back();
    for (int32_t node : joining.node)
      found.device.push_back(solution.device[joined.unit[node]]);
    // Schedules of all nodes of a large model take as long as a dozen
    // evaluations: the others begin the next round as they are.
    if (joined.numNodes > manyUnits && result.best.size() > 1) {
      found.value = solution.value;
      continue;
    }
    Schedule schedule;
    if (fine.record(solution, schedule))
      found.starts.push_back(startsOf(model, joining, schedule));
    // Merged operators hold back less urgent ones, which may be better.
    if (evaluator.record(solution, schedule))
      found.starts.push_back(startsOf(model, merging, schedule));
  }
  result.evaluations = static_cast<int64_t>(meter.evaluations());
  if (options.cancelled && options.cancelled())
    result.allTried = false;
  return result;
}
