//===- Seeding.cpp - Good assignments from coarse clusters ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Seeding.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::search;

Seeding::Seeding(MeteredEvaluator &evaluator, const UnitTable &units,
                 const Traffic &traffic, Random &random)
    : evaluator(evaluator), units(units), traffic(traffic), random(random) {}

void Seeding::addClustering() {
  constexpr double grains[] = {200, 100, 400, 50};
  constexpr int mostRounds = 60;
  auto index = levels.size() - groupings;
  Clustering::Options options;
  options.small = 1 / grains[index % 4];
  options.ratio = index / 4 % 2 ? 8 : 16;
  options.noise = index == 0 ? 0 : 0.03;
  Clustering clustering(units.model(), traffic);
  for (int round = 0; round < mostRounds; ++round)
    if (!clustering.joinRound(options, random))
      break;
  // About as long as a few schedules.
  evaluator.charge(4);
  addLevel(units.makeLevel(clustering.clusterOf(), clustering.size()),
           clustering.traffic());
}

void Seeding::addGroups(const Level &groups) {
  addLevel(groups, traffic.contracted(groups.clusterOf, groups.members.size()));
  ++groupings;
}

void Seeding::addLevel(Level level, Traffic traffic) {
  levels.push_back(std::move(level));
  between.push_back(std::move(traffic));
  surrogates.emplace_back(units, levels.back(), between.back());
  auto &pick = picks.emplace_back();
  double sum = 0;
  for (int32_t c = 0; c < levels.back().members.size(); ++c) {
    double work = 0;
    for (Unit u : levels.back().members[c])
      work += units.work(u);
    pick.push_back(sum += std::sqrt(work) + 1e-9);
  }
}

void Seeding::moveCluster(Solution &solution, const Level &level,
                          int32_t cluster, int32_t d) const {
  for (Unit u : level.members[cluster])
    if (units.model().mayUse(u, d))
      solution.device[u] = d;
}

/// Evaluates and keeps what is among the best; true when it is.
bool Seeding::consider(Solution solution, size_t level) {
  int64_t worst =
      elite.size() < eliteSize ? never : elite.back().solution.value - 1;
  solution.value = evaluator.value(solution, worst);
  if (solution.value == never || solution.value > worst)
    return false;
  for (const Member &other : elite)
    if (other.solution.value == solution.value)
      return false;
  auto at = std::upper_bound(elite.begin(), elite.end(), solution.value,
                             [](int64_t value, const Member &member) {
                               return value < member.solution.value;
                             });
  elite.insert(at, {std::move(solution), level});
  if (elite.size() > eliteSize)
    elite.pop_back();
  return true;
}

void Seeding::add(Solution solution) { consider(std::move(solution), 0); }

void Seeding::sample(size_t index) {
  const Level &level = levels[index];
  const Surrogate &surrogate = surrogates[index];
  int32_t devices = units.model().numDevices;
  Surrogate::Weights weights;
  weights.traffic = 0.03 * std::pow(30, random.real());
  weights.cut = random.oneIn(2) ? 0 : 0.02 * std::pow(50, random.real());
  weights.norm = random.oneIn(2) ? 3 : 4;
  weights.devices = devices;
  if (devices > 2 && random.oneIn(4))
    weights.devices = 2 + random.below(devices - 1);
  constexpr int32_t mostSteps = 30'000;
  weights.steps = std::min(60 * surrogate.size() + 500, mostSteps);
  std::vector<int32_t> on = surrogate.sample(weights, random);
  // A step touches as much as a few nodes of an evaluation do.
  evaluator.charge(4.0 * weights.steps / units.model().numNodes);
  Solution solution;
  solution.device.resize(units.model().numUnits);
  for (Unit u = 0; u < units.model().numUnits; ++u) {
    int32_t d = on[level.clusterOf[u]];
    for (int32_t e = 0; !units.model().mayUse(u, d); ++e)
      d = e;
    solution.device[u] = d;
  }
  consider(std::move(solution), index);
}

/// One to three clusters of a good solution move, or two change places.
void Seeding::mutate() {
  double r = random.real();
  const Member &member =
      elite[static_cast<size_t>(static_cast<double>(elite.size()) * r * r)];
  Solution solution = member.solution;
  size_t index = member.level;
  const Level &level = levels[index];
  auto pick = [&] {
    const auto &pick = picks[index];
    auto it =
        std::lower_bound(pick.begin(), pick.end(), random.real() * pick.back());
    return static_cast<int32_t>(std::min<ptrdiff_t>(
        it - pick.begin(), static_cast<ptrdiff_t>(pick.size()) - 1));
  };
  if (random.oneIn(3)) {
    int32_t a = pick(), b = pick();
    int32_t onA = solution.device[level.members[a].front()];
    int32_t onB = solution.device[level.members[b].front()];
    moveCluster(solution, level, a, onB);
    moveCluster(solution, level, b, onA);
  } else {
    // One draw a statement: compilers order operands as they like.
    int moves = 1;
    moves += random.oneIn(3);
    moves += random.oneIn(6);
    while (moves-- > 0) {
      int32_t cluster = pick();
      moveCluster(solution, level, cluster,
                  random.below(units.model().numDevices));
    }
  }
  if (solution.device == member.solution.device)
    evaluator.charge(1); // the loop must end
  else
    consider(std::move(solution), index);
}

/// Every cluster goes where most of its work is.
void Seeding::gather(Solution &solution, const Level &level) const {
  std::vector<double> work(units.model().numDevices);
  for (int32_t c = 0; c < level.members.size(); ++c) {
    std::fill(work.begin(), work.end(), 0);
    for (Unit u : level.members[c])
      work[solution.device[u]] += units.work(u) + 1;
    auto most = std::max_element(work.begin(), work.end());
    moveCluster(solution, level, c, static_cast<int32_t>(most - work.begin()));
  }
}

/// Textbook annealing (Kirkpatrick et al. 1983) of whole groups: they are few,
/// and what keeps all steps in time of a layer together is found at once.
void Seeding::annealGroups(size_t index, double until) {
  constexpr double hot = 0.03, cold = 0.0001;
  const Level &level = levels[index];
  int32_t count = level.members.size(), devices = units.model().numDevices;
  if (count < 2 || devices < 2 || elite.empty())
    return;
  Solution current = elite.front().solution;
  gather(current, level);
  current.value = evaluator.value(current, never);
  if (current.value == never)
    return; // devices that must talk then have no link
  Solution best = current;
  double begin = evaluator.spent();
  for (double now = begin; now < until; now = evaluator.spent()) {
    double progress = (now - begin) / (until - begin);
    double temperature =
        static_cast<double>(best.value) * hot * std::pow(cold / hot, progress);
    Solution next = current;
    int32_t a = random.below(count);
    if (random.oneIn(4)) {
      int32_t b = random.below(count);
      int32_t onA = next.device[level.members[a].front()];
      moveCluster(next, level, a, next.device[level.members[b].front()]);
      moveCluster(next, level, b, onA);
    } else {
      moveCluster(next, level, a, random.below(devices));
    }
    if (next.device == current.device) {
      evaluator.charge(0.1); // the loop must end
      continue;
    }
    auto limit =
        static_cast<int64_t>(static_cast<double>(current.value) -
                             temperature * std::log(random.real() + 1e-12));
    next.value = evaluator.value(next, limit);
    if (next.value > limit)
      continue;
    current = std::move(next);
    if (current.value < best.value)
      best = current;
  }
  consider(std::move(best), index);
}

void Seeding::run(double until) {
  constexpr size_t mostClusterings = 10;
  constexpr int mutationsBegin = 2 * samplesEach;
  constexpr double groupsShare = 0.5;
  double begin = evaluator.spent();
  for (size_t k = 0; k < groupings; ++k)
    annealGroups(k, begin + (until - begin) * groupsShare *
                                static_cast<double>(k + 1) /
                                static_cast<double>(groupings));
  for (int k = 0; evaluator.spent() < until; ++k) {
    if (k % samplesEach == 0 && levels.size() < groupings + mostClusterings)
      addClustering();
    if (elite.size() >= 3 && k >= mutationsBegin && random.real() < 0.85)
      mutate();
    else if (k < samplesEach * static_cast<int>(levels.size() - groupings))
      sample(levels.size() - 1);
    else
      sample(random.below(static_cast<int64_t>(levels.size())));
  }
}

std::vector<Solution> Seeding::best(size_t count) const {
  std::vector<Solution> result;
  auto differs = [&](const Solution &a, const Solution &b, double share) {
    double work = 0;
    for (size_t u = 0; u < a.device.size(); ++u)
      if (a.device[u] != b.device[u])
        work += units.work(static_cast<Unit>(u));
    return a.value != b.value && work >= share * units.allWork();
  };
  // Different ones first, then whatever there is.
  for (double share : {0.04, 0.0})
    for (const Member &member : elite)
      if (result.size() < count &&
          std::all_of(result.begin(), result.end(), [&](const Solution &other) {
            return differs(member.solution, other, share);
          }))
        result.push_back(member.solution);
  std::sort(
      result.begin(), result.end(),
      [](const Solution &a, const Solution &b) { return a.value < b.value; });
  return result;
}
