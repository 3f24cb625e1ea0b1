//===- Clusters.cpp - Units that talk a lot ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Clusters.h"
#include "Model/Sorting.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

namespace {

struct Pair {
  int32_t a, b;
  double traffic;
  double score;
};

/// The traffic between clusters, one entry a pair.
std::vector<Pair> trafficPairs(const Model &model,
                               const std::vector<int32_t> &clusterOf,
                               int32_t clusters) {
  std::vector<Pair> pairs;
  std::vector<int32_t> targets;
  // A tensor that goes nearly everywhere says little about neighbours.
  constexpr size_t manyTargets = 64;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t from = clusterOf[model.unit[model.producer[t]]];
    targets.clear();
    for (int32_t user : model.users[t]) {
      int32_t to = clusterOf[model.unit[user]];
      if (to == from ||
          std::find(targets.begin(), targets.end(), to) != targets.end())
        continue;
      targets.push_back(to);
      if (targets.size() > manyTargets)
        break;
    }
    auto traffic = static_cast<double>(model.meanTransfer(t) + 1);
    for (int32_t to : targets)
      pairs.push_back({std::min(from, to), std::max(from, to), traffic, 0});
  }
  countingSort(pairs, clusters, [](const Pair &pair) { return pair.b; });
  countingSort(pairs, clusters, [](const Pair &pair) { return pair.a; });
  auto last = pairs.begin();
  for (auto begin = pairs.begin(); begin != pairs.end();) {
    auto end = std::find_if(begin, pairs.end(), [&](const Pair &pair) {
      return pair.a != begin->a || pair.b != begin->b;
    });
    // The same sum whatever order the tensors have.
    std::sort(begin, end, [](const Pair &x, const Pair &y) {
      return x.traffic < y.traffic;
    });
    Pair sum = *begin;
    for (++begin; begin != end; ++begin)
      sum.traffic += begin->traffic;
    *last++ = sum;
  }
  pairs.erase(last, pairs.end());
  return pairs;
}

void scorePairs(std::vector<Pair> &pairs, int32_t clusters, double noise,
                Random &random) {
  std::vector<double> total(clusters, 0);
  for (const Pair &pair : pairs) {
    total[pair.a] += pair.traffic;
    total[pair.b] += pair.traffic;
  }
  for (Pair &pair : pairs)
    pair.score = pair.traffic / std::min(total[pair.a], total[pair.b]) *
                 (1 - noise + 2 * noise * random.real());
}

} // namespace

std::vector<int32_t>
baechi::placement::grouping::clusterUnits(const Model &model,
                                          const ClusterOptions &options,
                                          Random &random, int32_t &count) {
  UnitMerger merger(model, options.workShare, options.memoryShare);
  double total = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    total += static_cast<double>(model.meanTime(i));
  std::vector<int32_t> clusterOf(model.numUnits);
  std::iota(clusterOf.begin(), clusterOf.end(), 0);
  count = model.numUnits;
  // Every round merges the best 30 %, so that the traffic stays current.
  constexpr int maxRounds = 60;
  constexpr double mergedShare = 0.3;
  for (int round = 0; round < maxRounds && count > 1; ++round) {
    std::vector<Unit> unitIn(count);
    for (Unit u = 0; u < model.numUnits; ++u)
      unitIn[clusterOf[u]] = u;
    auto pairs = trafficPairs(model, clusterOf, count);
    scorePairs(pairs, count, options.noise, random);
    auto wanted =
        std::max<int32_t>(1, static_cast<int32_t>(count * mergedShare));
    int32_t merged = 0;
    auto merge = [&](const Pair &pair) {
      Unit a = unitIn[pair.a], b = unitIn[pair.b];
      if (merger.find(a) == merger.find(b))
        return;
      auto smaller =
          static_cast<double>(std::min(merger.workOf(a), merger.workOf(b)));
      if (smaller >= total * options.small &&
          pair.traffic < options.ratio * smaller)
        return;
      merged += merger.join(a, b);
    };
    visitInOrder(
        pairs, 2 * static_cast<size_t>(wanted),
        [](const Pair &x, const Pair &y) {
          return std::tie(y.score, x.a, x.b) < std::tie(x.score, y.a, y.b);
        },
        [&](const Pair &pair) {
          merge(pair);
          return merged < wanted;
        });
    if (merged == 0)
      break;
    clusterOf = merger.number(count);
  }
  return clusterOf;
}

/// Co-placement's own; \p evenShares: the most work of a group, in even shares
/// of the devices.
static ClusterOptions coplaceOptions(const Model &model, double small,
                                     double evenShares) {
  ClusterOptions options;
  options.small = small;
  options.workShare = std::min(0.5, evenShares / model.numDevices);
  options.memoryShare = 0.25;
  return options;
}

static constexpr double ownSmall = 0.01, ownShares = 1.2;

void baechi::placement::grouping::coplace(const Model &model,
                                          Coarsening &coarsening) {
  joinFreely(model, freeShare, coarsening);
  Model merged = coarsen(model, coarsening);
  Random random;
  int32_t count;
  std::vector<int32_t> clusters = clusterUnits(
      merged, coplaceOptions(model, ownSmall, ownShares), random, count);
  for (Unit &u : coarsening.unit)
    u = clusters[u];
  coarsening.numUnits = count;
}

std::vector<std::vector<Unit>>
baechi::placement::grouping::coplaceLevels(const Model &model) {
  Coarsening free = Coarsening::identity(model);
  joinFreely(model, freeShare, free);
  Model merged = coarsen(model, free);
  std::vector<std::vector<Unit>> levels;
  // Each takes as long as the first.
  constexpr int32_t manyUnits = 50'000;
  for (double shares : {ownShares, 0.8, 0.6})
    for (double small : {ownSmall, 0.02, 0.05, 0.1}) {
      if (!levels.empty() && merged.numUnits > manyUnits)
        return levels;
      Random random;
      int32_t count;
      std::vector<int32_t> clusters = clusterUnits(
          merged, coplaceOptions(model, small, shares), random, count);
      std::vector<Unit> groups;
      groups.reserve(free.unit.size());
      for (Unit u : free.unit)
        groups.push_back(clusters[u]);
      if (std::find(levels.begin(), levels.end(), groups) == levels.end())
        levels.push_back(std::move(groups));
    }
  return levels;
}
