//===- MaxLoadSearch.cpp - Search for the smallest largest load -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/MaxLoadSearch.h"
#include "Grouping/Clusters.h"
#include "Memory/Memory.h"
#include "Placers/Splits.h"
#include "Search/Exhaustive.h"
#include "Search/LoadAnnealing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::search;

namespace {

/// A device per unit and its largest load.
struct Trial {
  int64_t value = never;
  std::vector<int32_t> device;
};

bool isBetter(const Trial &a, const Trial &b) { return a.value < b.value; }

/// How many visits a budget of evaluations allows.
int64_t visitLimit(const Model &model, const Budget &budget) {
  if (budget.kind == Budget::Kind::Evaluations)
    // One of the other searches' evaluations looks at every node.
    return std::max<int64_t>(budget.evaluations, 1) *
           std::max(model.numNodes, 1);
  return automaticLoadEvaluations(model) * std::max(model.numNodes, 1);
}

class MaxLoadSearch {
public:
  MaxLoadSearch(const Model &model, const SearchOptions &options);
  SearchResult run(const std::vector<Assignment> &starts);

private:
  static constexpr size_t eliteSize = 6;
  /// Looks at every vertex and net that a round is worth.
  static constexpr int64_t looksPerRound = 120;
  /// Looks that clustering and building a graph take as long as.
  static constexpr int64_t looksToBuild = 20;

  int64_t size() const { return graph.numVertices() + graph.numNets(); }
  double spent() const;
  void calibrate(const Assignment &start);
  bool fits(const std::vector<int32_t> &device);
  void offer(Trial found);
  bool tryAll();
  std::vector<Trial> begin(const std::vector<Assignment> &starts);
  std::vector<int32_t> randomDevices();
  void joinDearNets(grouping::DisjointSets &sets,
                    const std::vector<int32_t> *keep);
  void joinByTraffic(grouping::DisjointSets &sets,
                     const std::vector<int32_t> *keep);
  void round(std::vector<int32_t> start, bool warm);
  void annealClusters(std::vector<int32_t> &device, bool warm, int64_t most);
  int64_t anneal(const LoadGraph &onGraph, std::vector<int32_t> &device,
                 double hot, double cold, int64_t most);
  Assignment toAssignment(const std::vector<int32_t> &device) const;

  const Model &model;
  const SearchOptions &options;
  LoadGraph graph;
  Random random;
  std::chrono::steady_clock::time_point beginning;
  int64_t visits = 0; ///< vertices and nets that were looked at
  int64_t limit;      ///< of these, unless seconds count
  bool memoryMatters = false;
  double passingShare = 1; ///< of what passes through a device: is held at once
  double roundShare = 0;   ///< the same as one round has it
  std::vector<Trial> elite; ///< best first, all with a schedule
};

MaxLoadSearch::MaxLoadSearch(const Model &model, const SearchOptions &options)
    : model(model), options(options), graph(model), random(options.seed),
      beginning(std::chrono::steady_clock::now()),
      limit(visitLimit(model, options.budget)) {
  int64_t bytes = 0;
  for (int32_t v = 0; v < graph.numVertices(); ++v)
    bytes += graph.resident[v] + graph.passing[v];
  for (int64_t copy : graph.copy)
    bytes += copy;
  for (int32_t d = 0; d < model.numDevices; ++d)
    memoryMatters |= bytes > model.deviceMemory(d);
}

/// Share of the budget that is spent; all of it at the lower bound and when
/// the search is cancelled.
double MaxLoadSearch::spent() const {
  if (!elite.empty() && elite.front().value <= options.lowerBound)
    return 1;
  if (options.cancelled && options.cancelled())
    return 1;
  if (options.budget.kind == Budget::Kind::Seconds)
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         beginning)
               .count() /
           options.budget.seconds;
  return static_cast<double>(visits) / static_cast<double>(limit);
}

Assignment
MaxLoadSearch::toAssignment(const std::vector<int32_t> &device) const {
  Assignment assignment(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    assignment[i] = device[model.unit[i]];
  return assignment;
}

/// How much of the bytes that pass through a device are there at once, going
/// by one assignment.
void MaxLoadSearch::calibrate(const Assignment &start) {
  std::vector<int64_t> all(model.numDevices, 0), always(model.numDevices, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    all[start[i]] += graph.passing[model.unit[i]];
    always[start[i]] += model.resident[i];
  }
  auto peaks = memory::leastPeaks(model, start);
  passingShare = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (all[d] > 0)
      passingShare =
          std::max(passingShare, static_cast<double>(peaks[d] - always[d]) /
                                     static_cast<double>(all[d]));
  passingShare = std::min(passingShare, 1.0);
}

/// Whether some schedule keeps within the memories.
bool MaxLoadSearch::fits(const std::vector<int32_t> &device) {
  if (!memoryMatters)
    return true;
  LoadState most(graph, *model.machine, 1);
  most.assign(device);
  if (most.feasible())
    return true;
  constexpr int64_t schedules = 5;
  visits += schedules * (model.numNodes + model.numTensors);
  Scheduler scheduler(model);
  Schedule schedule;
  return memory::scheduleWithin(scheduler, model, toAssignment(device),
                                schedule);
}

void MaxLoadSearch::offer(Trial found) {
  if (found.value == never ||
      (elite.size() >= eliteSize && !isBetter(found, elite.back())))
    return;
  for (const Trial &other : elite)
    if (other.value == found.value)
      return;
  if (!fits(found.device)) {
    // More is held at once than the annealing thought.
    passingShare = std::min(1.0, passingShare * 1.05 + 0.01);
    return;
  }
  auto at = std::upper_bound(elite.begin(), elite.end(), found, isBetter);
  elite.insert(at, std::move(found));
  if (elite.size() > eliteSize)
    elite.pop_back();
}

std::vector<int32_t> MaxLoadSearch::randomDevices() {
  std::vector<int32_t> device(graph.numVertices());
  for (int32_t v = 0; v < graph.numVertices(); ++v) {
    device[v] = random.below(graph.devices);
    while (!graph.mayUse(v, device[v]))
      device[v] = (device[v] + 1) % graph.devices;
  }
  return device;
}

/// Joins the ends of the nets whose transfers take longest, down to a random
/// share of the best load: none of these is cut in a good assignment.
void MaxLoadSearch::joinDearNets(grouping::DisjointSets &sets,
                                 const std::vector<int32_t> *keep) {
  auto load = static_cast<double>(elite.front().value);
  constexpr double widest = 5; // down to exp(-5), 1/150
  double share = std::exp(-widest * random.real());
  std::vector<std::pair<double, int32_t>> nets;
  for (int32_t net = 0; net < graph.numNets(); ++net) {
    double ns = 0;
    for (int32_t c = 0; c < graph.classes; ++c)
      ns += static_cast<double>(
                graph.transfer[static_cast<size_t>(net) * graph.classes + c]) /
            graph.classes;
    if (ns >= share * load)
      nets.emplace_back(-ns, net);
  }
  std::sort(nets.begin(), nets.end());
  grouping::UnitMerger merger(model, 1, 1);
  for (auto [ns, net] : nets) {
    int32_t from = graph.producer[net];
    for (int32_t user : graph.users[net])
      if ((!keep || (*keep)[from] == (*keep)[user]) &&
          static_cast<double>(merger.workOf(from) + merger.workOf(user)) <=
              load &&
          merger.join(from, user))
        sets.join(from, user);
  }
}

/// Bounded co-placement by traffic, of a random grain.
void MaxLoadSearch::joinByTraffic(grouping::DisjointSets &sets,
                                  const std::vector<int32_t> *keep) {
  constexpr double grains[] = {400, 200, 100, 50, 25};
  grouping::ClusterOptions cluster;
  cluster.small = 1 / grains[random.below(std::size(grains))];
  cluster.workShare = 1.0 / model.numDevices;
  cluster.noise = 0.1;
  int32_t count;
  std::vector<int32_t> clusterOf =
      grouping::clusterUnits(model, cluster, random, count);
  // A cluster's units on one device are a vertex.
  int32_t devices = keep ? model.numDevices : 1;
  std::vector<Unit> first(static_cast<size_t>(count) * devices, -1);
  for (Unit u = 0; u < model.numUnits; ++u) {
    Unit &other = first[static_cast<size_t>(clusterOf[u]) * devices +
                        (keep ? (*keep)[u] : 0)];
    if (other < 0)
      other = u;
    else
      sets.join(other, u);
  }
}

/// Anneals for \p most visits at the most.
int64_t MaxLoadSearch::anneal(const LoadGraph &onGraph,
                              std::vector<int32_t> &device, double hot,
                              double cold, int64_t most) {
  LoadAnnealing annealing(onGraph, *model.machine, roundShare, random);
  int64_t before = visits;
  int64_t best = annealing.run(
      device, {hot, cold, [&] {
                 visits = before + annealing.visits();
                 return spent() >= 1 ? 1
                                     : static_cast<double>(annealing.visits()) /
                                           static_cast<double>(most);
               }});
  visits = before + annealing.visits();
  return best;
}

/// A round's first half, on clusters of units. With \p warm those of a cluster
/// are on one device of \p device.
void MaxLoadSearch::annealClusters(std::vector<int32_t> &device, bool warm,
                                   int64_t most) {
  visits += looksToBuild * size();
  grouping::DisjointSets sets(graph.numVertices());
  const std::vector<int32_t> *keep = warm ? &device : nullptr;
  if (!elite.empty() && !random.oneIn(3))
    joinDearNets(sets, keep);
  else
    joinByTraffic(sets, keep);
  int32_t count;
  std::vector<int32_t> vertexOf = sets.number(count);
  LoadGraph coarse(model, vertexOf, count);
  std::vector<int32_t> coarseDevice(count);
  for (Unit u = 0; u < model.numUnits; ++u)
    coarseDevice[vertexOf[u]] = device[u];
  for (int32_t v = 0; v < count; ++v)
    while (!coarse.mayUse(v, coarseDevice[v]))
      coarseDevice[v] = (coarseDevice[v] + 1) % model.numDevices;
  anneal(coarse, coarseDevice, warm ? 0.05 : 0.1, 0.001, most);
  for (Unit u = 0; u < model.numUnits; ++u)
    device[u] = coarseDevice[vertexOf[u]];
}

void MaxLoadSearch::round(std::vector<int32_t> start, bool warm) {
  int64_t most = std::max<int64_t>(looksPerRound * size(), 5000) / 2;
  // What is held at once differs between assignments: now and then less than
  // it seems is enough.
  roundShare = memoryMatters ? passingShare * (1 - 0.6 * random.real()) : 0;
  annealClusters(start, warm, most);
  int64_t value = anneal(graph, start, 0.01, 0.0003, most);
  if (value == never) {
    // Nothing seemed to fit: less may be held at once than it seemed.
    passingShare *= 0.95;
    value = maxLoad(model, toAssignment(start));
  }
  offer({value, std::move(start)});
}

/// Every assignment where these are few: the least that fits is the optimum.
bool MaxLoadSearch::tryAll() {
  constexpr int32_t fewUnits = 1000;
  std::optional<int64_t> count = fewAssignments(model);
  if (model.numUnits > fewUnits || !count || *count * size() > limit)
    return false;
  std::vector<int32_t> free; // vertices that have a choice
  Trial trial{never, std::vector<int32_t>(graph.numVertices())};
  auto next = [&](int32_t v, int32_t d) {
    while (d < graph.devices && !graph.mayUse(v, d))
      ++d;
    return d;
  };
  for (int32_t v = 0; v < graph.numVertices(); ++v) {
    trial.device[v] = next(v, 0);
    if (next(v, trial.device[v] + 1) < graph.devices)
      free.push_back(v);
  }
  // Assignments are numbers whose digits are the devices.
  std::vector<Trial> all;
  for (size_t carry = 0; carry < free.size() || all.empty();) {
    visits += size();
    trial.value = maxLoad(model, toAssignment(trial.device));
    all.push_back(trial);
    for (carry = 0; carry < free.size(); ++carry) {
      int32_t v = free[carry];
      trial.device[v] = next(v, trial.device[v] + 1);
      if (trial.device[v] < graph.devices)
        break;
      trial.device[v] = next(v, 0);
    }
  }
  std::stable_sort(all.begin(), all.end(), isBetter);
  // The least that fits is the best: none is left out for the budget.
  for (Trial &each : all)
    if (elite.empty() && !(options.cancelled && options.cancelled()))
      offer(std::move(each));
  return true;
}

/// Offers the starts; returns those that rounds should begin with.
std::vector<Trial> MaxLoadSearch::begin(const std::vector<Assignment> &starts) {
  std::vector<Trial> seeds;
  auto add = [&](const Assignment &assignment) {
    Trial found{maxLoad(model, assignment),
                std::vector<int32_t>(model.numUnits)};
    for (int32_t i = 0; i < model.numNodes; ++i)
      found.device[model.unit[i]] = assignment[i];
    seeds.push_back(found);
    offer(std::move(found));
  };
  for (const Assignment &start : starts)
    add(start);
  if (memoryMatters && elite.empty()) {
    Assignment packed(model.numNodes);
    memory::packUnits(model, packed);
    if (memory::repair(model, packed))
      add(packed);
  }
  if (memoryMatters && !elite.empty())
    calibrate(toAssignment(elite.front().device));
  std::stable_sort(seeds.begin(), seeds.end(), isBetter);
  constexpr size_t mostSeeds = 4;
  if (!options.isFirst) {
    seeds.resize(std::min(seeds.size(), mostSeeds));
    return seeds;
  }
  placers::SplitOptions splitOptions;
  constexpr int64_t looksPerOrder = 40, mostLooks = 5'000'000;
  splitOptions.orders = static_cast<int32_t>(
      std::clamp<int64_t>(mostLooks / (looksPerOrder * size() + 1), 2, 8));
  splitOptions.passingShare = memoryMatters ? passingShare : 0;
  visits += splitOptions.orders * looksPerOrder * size();
  for (const Assignment &split : placers::contiguousSplits(model, splitOptions))
    add(split);
  std::stable_sort(seeds.begin(), seeds.end(), isBetter);
  seeds.resize(std::min(seeds.size(), mostSeeds));
  return seeds;
}

SearchResult MaxLoadSearch::run(const std::vector<Assignment> &starts) {
  bool optimal = tryAll();
  if (!optimal)
    for (Trial &seed : begin(starts))
      if (spent() < 1)
        round(std::move(seed.device), /*warm=*/true);
  while (!optimal && spent() < 1) {
    if (elite.empty() || random.oneIn(3)) {
      round(randomDevices(), /*warm=*/false);
    } else {
      double r = random.real();
      auto k = static_cast<size_t>(static_cast<double>(elite.size()) * r * r);
      round(elite[k].device, /*warm=*/true);
    }
  }
  SearchResult result;
  result.evaluations = visits / std::max(model.numNodes, 1);
  result.allTried = optimal && !(options.cancelled && options.cancelled());
  for (const Trial &found : elite)
    result.best.push_back({toAssignment(found.device), {}});
  return result;
}

} // namespace

int64_t
baechi::placement::search::automaticLoadEvaluations(const Model &model) {
  // Most is about a second.
  constexpr int64_t most = 20'000'000, perUnit = 200'000;
  return std::min(most, perUnit * model.numUnits) / std::max(model.numNodes, 1);
}

SearchResult
baechi::placement::search::searchMaxLoad(const Model &model,
                                         const std::vector<Assignment> &starts,
                                         const SearchOptions &options) {
  return MaxLoadSearch(model, options).run(starts);
}
