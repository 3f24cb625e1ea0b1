//===- Search.cpp - Improvement of an assignment ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Search.h"
#include "Grouping/Clusters.h"
#include "Placers/Placers.h"
#include "Schedule/CriticalPath.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

using namespace baechi::placement;

namespace {

/// Units in clusters, those of a cluster in order of time.
struct Level {
  std::vector<int32_t> clusterOf;
  Rows members;
};

/// A device per unit, and what it is worth.
struct State {
  std::vector<int32_t> device;
  int64_t value = never;
};

/// How many evaluations a budget allows.
int64_t evaluationLimit(const Model &model, const Budget &budget) {
  if (budget.kind == Budget::Kind::Evaluations)
    return std::max<int64_t>(budget.evaluations, 1);
  // An evaluation looks at every node.
  constexpr int64_t visits = 8'000'000;
  return std::clamp<int64_t>(visits / std::max(model.numNodes, 1), 20, 20'000);
}

class Search {
public:
  Search(const Model &model, const SearchOptions &options);
  SearchResult run(const std::vector<Assignment> &starts);

private:
  static constexpr size_t eliteSize = 12;
  static constexpr size_t finalists = 3;
  static constexpr int64_t fewAssignments = 4096;

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }
  /// Share of the budget that is spent; all of it at the lower bound.
  double spent() const;
  int64_t evaluate(const std::vector<int32_t> &unitDevice, int64_t cutoff);
  int64_t judge(const std::vector<int32_t> &unitDevice, int64_t cutoff);
  bool haveFewAssignments() const;
  void tryAll();
  void addLevel(const std::vector<int32_t> &clusterOf, int32_t count);
  void addClusterings();
  void addToElite(State state);
  void mutateElite(double until);
  State anneal(State state, double until);
  void findCritical(const State &state);
  Unit pickUnit(const State &state, int32_t &target);
  std::vector<Unit> pickSet(const State &state, Unit u, double progress);
  bool memoryIsShort() const;
  bool mayMove(const std::vector<Unit> &units, int32_t d) const;

  const Model &model;
  const SearchOptions &options;
  Scheduler scheduler;
  Random random;
  std::chrono::steady_clock::time_point begin;
  int64_t evaluations = 0;
  int64_t limit;             ///< of these, unless seconds count
  int64_t bestValue = never; ///< of all that was evaluated
  std::vector<Level> levels; ///< levels[0]: every unit alone
  std::vector<State> elite;  ///< best first
  std::vector<int64_t> unitBegin;
  std::vector<double> cumulatedWork;
  std::vector<std::vector<Unit>> neighbours;
  bool memoryMatters = false;
  Assignment nodeDevice;
  CriticalPath critical;
};

Search::Search(const Model &model, const SearchOptions &options)
    : model(model), options(options), scheduler(model),
      begin(std::chrono::steady_clock::now()),
      limit(evaluationLimit(model, options.budget)),
      unitBegin(model.numUnits, never), cumulatedWork(model.numUnits),
      neighbours(model.numUnits), nodeDevice(model.numNodes) {
  std::vector<int64_t> head(model.numNodes, 0);
  std::vector<double> work(model.numUnits, 0);
  for (int32_t i : model.order) {
    model.forEachUser(i, [&](int32_t user) {
      head[user] = std::max(head[user], head[i] + model.meanTime(i));
    });
    Unit u = model.unit[i];
    unitBegin[u] = std::min(unitBegin[u], head[i]);
    work[u] += static_cast<double>(model.meanTime(i));
  }
  double total = std::accumulate(work.begin(), work.end(), 0.0);
  double sum = 0;
  for (Unit u = 0; u < model.numUnits; ++u)
    cumulatedWork[u] = sum += work[u] + 0.2 * total / model.numUnits + 1;
  constexpr size_t manyNeighbours = 40;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    Unit a = model.unit[model.producer[t]];
    for (int32_t user : model.users[t]) {
      Unit b = model.unit[user];
      if (a == b)
        continue;
      if (neighbours[a].size() < manyNeighbours)
        neighbours[a].push_back(b);
      if (neighbours[b].size() < manyNeighbours)
        neighbours[b].push_back(a);
    }
  }
  int64_t bytes = 0, smallest = never;
  for (int32_t i = 0; i < model.numNodes; ++i)
    bytes += model.resident[i] + model.scratch[i];
  for (int32_t t = 0; t < model.numTensors; ++t)
    bytes += std::max(model.memory[t], model.copy[t]);
  for (int32_t d = 0; d < model.numDevices; ++d)
    smallest = std::min(smallest, model.deviceMemory(d));
  memoryMatters = bytes > smallest;
  std::vector<int32_t> alone(model.numUnits);
  std::iota(alone.begin(), alone.end(), 0);
  addLevel(alone, model.numUnits);
}

double Search::spent() const {
  if (bestValue <= options.lowerBound)
    return 1;
  if (options.budget.kind == Budget::Kind::Seconds)
    return elapsed() / options.budget.seconds;
  return static_cast<double>(evaluations) / static_cast<double>(limit);
}

/// True unless every device can hold all that ever comes to it at once.
bool Search::memoryIsShort() const {
  std::vector<int64_t> bytes(model.numDevices, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    bytes[nodeDevice[i]] += model.resident[i] + model.scratch[i];
  std::vector<int32_t> seen(model.numDevices, -1);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t home = nodeDevice[model.producer[t]];
    bytes[home] += model.memory[t];
    for (int32_t user : model.users[t]) {
      int32_t d = nodeDevice[user];
      if (d == home || seen[d] == t)
        continue;
      seen[d] = t;
      bytes[d] += model.copy[t];
    }
  }
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (bytes[d] > model.deviceMemory(d))
      return true;
  return false;
}

/// The objective; above the cut-off any value above it. Bytes above the limits
/// cost their share of the memory, so that the search finds its way back.
int64_t Search::judge(const std::vector<int32_t> &unitDevice, int64_t cutoff) {
  for (int32_t i = 0; i < model.numNodes; ++i)
    nodeDevice[i] = unitDevice[model.unit[i]];
  Schedule schedule;
  int64_t value = never;
  bool mayOverflow = memoryMatters && memoryIsShort();
  if (options.objective == Objective::MaxLoad) {
    value = maxLoad(model, nodeDevice);
    if (value > cutoff || !mayOverflow)
      return value;
    scheduler.run(nodeDevice, {}, &schedule);
  } else {
    Scheduler::Options run;
    run.cutoff = cutoff;
    value = scheduler.run(nodeDevice, run, mayOverflow ? &schedule : nullptr);
    if (value == never || !mayOverflow)
      return value;
  }
  auto peaks = schedulePeaks(model, nodeDevice, schedule);
  double excess = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (peaks[d] > model.deviceMemory(d))
      excess += static_cast<double>(peaks[d] - model.deviceMemory(d)) /
                static_cast<double>(model.deviceMemory(d) + 1);
  return value + static_cast<int64_t>(
                     std::min(static_cast<double>(value) * 2 * excess, 1e18));
}

int64_t Search::evaluate(const std::vector<int32_t> &unitDevice,
                         int64_t cutoff) {
  ++evaluations;
  int64_t value = judge(unitDevice, cutoff);
  if (value <= cutoff)
    bestValue = std::min(bestValue, value);
  return value;
}

bool Search::haveFewAssignments() const {
  int64_t count = 1;
  for (Unit u = 0; u < model.numUnits && count <= fewAssignments; ++u) {
    int32_t devices = 0;
    for (int32_t d = 0; d < model.numDevices; ++d)
      devices += model.mayUse(u, d);
    count *= devices;
  }
  return count <= fewAssignments;
}

/// Every assignment, as numbers whose digits are the units' devices.
void Search::tryAll() {
  auto next = [&](Unit u, int32_t d) {
    while (d < model.numDevices && !model.mayUse(u, d))
      ++d;
    return d;
  };
  std::vector<int32_t> device(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    device[u] = next(u, 0);
  for (Unit carry = 0; carry < model.numUnits && spent() < 1;) {
    addToElite({device, evaluate(device, never)});
    for (carry = 0; carry < model.numUnits; ++carry) {
      device[carry] = next(carry, device[carry] + 1);
      if (device[carry] < model.numDevices)
        break;
      device[carry] = next(carry, 0);
    }
  }
}

void Search::addLevel(const std::vector<int32_t> &clusterOf, int32_t count) {
  std::vector<Unit> byTime(model.numUnits);
  std::iota(byTime.begin(), byTime.end(), 0);
  std::sort(byTime.begin(), byTime.end(), [&](Unit a, Unit b) {
    return std::tie(unitBegin[a], a) < std::tie(unitBegin[b], b);
  });
  Level level{clusterOf, {}};
  level.members.begin.assign(count + 1, 0);
  for (int32_t c : clusterOf)
    ++level.members.begin[c + 1];
  std::partial_sum(level.members.begin.begin(), level.members.begin.end(),
                   level.members.begin.begin());
  std::vector<int32_t> fill = level.members.begin;
  level.members.items.resize(model.numUnits);
  for (Unit u : byTime)
    level.members.items[fill[clusterOf[u]]++] = u;
  levels.push_back(std::move(level));
}

/// Clusterings of several grains; m-ETF with each as its groups is a start.
void Search::addClusterings() {
  constexpr int clusterings = 20;
  constexpr double grains[] = {200, 100, 400, 50, 800};
  for (int k = 0; k < clusterings && spent() < (k < 2 ? 1 : 0.15); ++k) {
    ClusterOptions cluster;
    cluster.small = 1 / grains[k % 5];
    cluster.ratio = k / 5 % 2 ? 8 : 16;
    cluster.workShare = k % 3 ? 0.6 : 1.2 / model.numDevices;
    cluster.noise = k < 5 ? 0 : 0.03;
    Coarsening coarsening = Coarsening::identity(model);
    coarsening.unit = clusterUnits(model, cluster, random, coarsening.numUnits);
    addLevel(coarsening.unit, coarsening.numUnits);
    Model grouped = coarsen(model, coarsening);
    Assignment found = earliestStart(grouped).device;
    State state{std::vector<int32_t>(model.numUnits), never};
    for (int32_t i = 0; i < model.numNodes; ++i)
      state.device[model.unit[i]] = found[i];
    state.value = evaluate(state.device, never);
    addToElite(std::move(state));
  }
}

void Search::addToElite(State state) {
  if (state.value == never)
    return;
  for (const State &other : elite)
    if (other.value == state.value)
      return;
  auto at = std::upper_bound(
      elite.begin(), elite.end(), state,
      [](const State &a, const State &b) { return a.value < b.value; });
  elite.insert(at, std::move(state));
  if (elite.size() > eliteSize)
    elite.pop_back();
}

bool Search::mayMove(const std::vector<Unit> &units, int32_t d) const {
  return std::all_of(units.begin(), units.end(),
                     [&](Unit u) { return model.mayUse(u, d); });
}

/// One to three clusters of a good state move, or two change places.
void Search::mutateElite(double until) {
  while (spent() < until && !elite.empty() && levels.size() > 1) {
    double r = random.real();
    State state =
        elite[static_cast<size_t>(static_cast<double>(elite.size()) * r * r)];
    auto levelIndex = 1 + random.below(static_cast<int64_t>(levels.size()) - 1);
    const Level &level = levels[levelIndex];
    int32_t count = level.members.size();
    auto moveTo = [&](int32_t c, int32_t d) {
      for (Unit u : level.members[c])
        if (model.mayUse(u, d))
          state.device[u] = d;
    };
    auto pick = [&] {
      auto it = std::lower_bound(cumulatedWork.begin(), cumulatedWork.end(),
                                 random.real() * cumulatedWork.back());
      auto u =
          std::min<ptrdiff_t>(it - cumulatedWork.begin(), model.numUnits - 1);
      return random.oneIn(2) ? level.clusterOf[u] : random.below(count);
    };
    if (random.oneIn(3)) {
      int32_t a = pick(), b = pick();
      int32_t da = state.device[level.members[a].front()];
      int32_t db = state.device[level.members[b].front()];
      moveTo(a, db);
      moveTo(b, da);
    } else {
      // One draw a statement: compilers order operands as they like.
      int moves = 1;
      moves += random.oneIn(3);
      moves += random.oneIn(6);
      while (moves-- > 0) {
        int32_t cluster = pick();
        moveTo(cluster, random.below(model.numDevices));
      }
    }
    int64_t worst = elite.size() < eliteSize ? never : elite.back().value - 1;
    state.value = evaluate(state.device, worst);
    if (state.value <= worst)
      addToElite(std::move(state));
  }
}

void Search::findCritical(const State &state) {
  critical = {};
  if (options.objective == Objective::MaxLoad)
    return;
  for (int32_t i = 0; i < model.numNodes; ++i)
    nodeDevice[i] = state.device[model.unit[i]];
  Schedule schedule;
  if (scheduler.run(nodeDevice, {}, &schedule) != never)
    critical = criticalPath(model, nodeDevice, schedule);
  ++evaluations;
}

/// A unit to move, and where to when that is clear (else -1).
Unit Search::pickUnit(const State &state, int32_t &target) {
  double r = random.real();
  target = -1;
  if (r < 0.25 && !critical.transfers.empty()) {
    const ScheduledTransfer &transfer = critical.transfers[random.below(
        static_cast<int64_t>(critical.transfers.size()))];
    Unit source = model.unit[model.producer[transfer.tensor]];
    if (random.oneIn(2)) {
      target = transfer.to;
      return source;
    }
    std::vector<Unit> there;
    for (int32_t user : model.users[transfer.tensor])
      if (state.device[model.unit[user]] == transfer.to)
        there.push_back(model.unit[user]);
    if (!there.empty()) {
      target = state.device[source];
      return there[random.below(static_cast<int64_t>(there.size()))];
    }
  }
  if (r < 0.5 && !critical.nodes.empty())
    return model.unit[critical.nodes[random.below(
        static_cast<int64_t>(critical.nodes.size()))]];
  if (r < 0.85) {
    auto it = std::lower_bound(cumulatedWork.begin(), cumulatedWork.end(),
                               random.real() * cumulatedWork.back());
    return static_cast<Unit>(
        std::min<ptrdiff_t>(it - cumulatedWork.begin(), model.numUnits - 1));
  }
  return random.below(model.numUnits);
}

/// The units that move together with \p u: the cluster around it at a random
/// level, the part of it on the same device, or a window of time of that. The
/// further the search, the smaller.
std::vector<Unit> Search::pickSet(const State &state, Unit u, double progress) {
  std::vector<Unit> set;
  bool alone = random.real() < 0.2 + 0.6 * progress;
  const Level &level =
      alone || levels.size() < 2
          ? levels.front()
          : levels[1 + random.below(static_cast<int64_t>(levels.size()) - 1)];
  auto members = level.members[level.clusterOf[u]];
  auto size = static_cast<int32_t>(members.size());
  int32_t low = 0, high = size - 1;
  double kind = random.real();
  if (kind > 0.5 && size > 1) {
    auto at = static_cast<int32_t>(
        std::find(members.begin(), members.end(), u) - members.begin());
    double length = size * random.real() * random.real();
    double before = random.real();
    if (kind > 0.6)
      low = std::max(0, at - static_cast<int32_t>(length * before));
    if (kind < 0.6 || kind > 0.7)
      high =
          std::min(size - 1, at + static_cast<int32_t>(length * (1 - before)));
  }
  bool all = kind > 0.4 && kind < 0.5;
  for (int32_t k = low; k <= high; ++k)
    if (all || state.device[members[k]] == state.device[u])
      set.push_back(members[k]);
  return set;
}

State Search::anneal(State state, double until) {
  State best = state;
  double from = spent();
  constexpr double hot = 0.003;
  constexpr int refresh = 20;
  int accepted = refresh;
  std::vector<std::pair<Unit, int32_t>> undo;
  for (double now = from; now < until; now = spent()) {
    if (accepted >= refresh) {
      findCritical(state);
      accepted = 0;
    }
    double progress = (now - from) / (until - from);
    double temperature = static_cast<double>(state.value) * hot *
                         (1 - progress) * (1 - progress);
    int32_t target;
    Unit u = pickUnit(state, target);
    if (target < 0 && random.oneIn(2) && !neighbours[u].empty())
      target = state.device[neighbours[u][random.below(
          static_cast<int64_t>(neighbours[u].size()))]];
    if (target < 0 || target == state.device[u])
      target = random.below(model.numDevices);
    std::vector<Unit> set = pickSet(state, u, progress);
    // Counted even when nothing moves: the loop must end.
    if (!mayMove(set, target)) {
      ++evaluations;
      continue;
    }
    undo.clear();
    for (Unit unit : set)
      if (state.device[unit] != target) {
        undo.emplace_back(unit, state.device[unit]);
        state.device[unit] = target;
      }
    if (undo.empty()) {
      ++evaluations;
      continue;
    }
    auto limit =
        static_cast<int64_t>(static_cast<double>(state.value) -
                             temperature * std::log(random.real() + 1e-12));
    int64_t value = evaluate(state.device, limit);
    if (value > limit) {
      for (auto [unit, d] : undo)
        state.device[unit] = d;
      continue;
    }
    state.value = value;
    ++accepted;
    if (value < best.value)
      best = state;
  }
  return best;
}

SearchResult Search::run(const std::vector<Assignment> &starts) {
  for (const Assignment &start : starts) {
    State state{std::vector<int32_t>(model.numUnits), never};
    for (int32_t i = 0; i < model.numNodes; ++i)
      state.device[model.unit[i]] = start[i];
    state.value = evaluate(state.device, never);
    addToElite(std::move(state));
  }
  bool few = haveFewAssignments();
  if (few) {
    tryAll();
  } else {
    addClusterings();
    mutateElite(0.45);
  }
  // The best few for a while, then the best of these.
  std::vector<State> finals(
      elite.begin(), elite.begin() + static_cast<ptrdiff_t>(
                                         std::min(finalists, elite.size())));
  for (size_t k = 0; !few && k < finals.size(); ++k)
    finals[k] =
        anneal(finals[k], 0.45 + 0.25 * static_cast<double>(k + 1) /
                                     static_cast<double>(finals.size()));
  auto byValue = [](const State &a, const State &b) {
    return a.value < b.value;
  };
  std::sort(finals.begin(), finals.end(), byValue);
  if (!few && !finals.empty())
    finals.insert(finals.begin(), anneal(finals.front(), 1.0));
  SearchResult result;
  result.evaluations = evaluations;
  for (const State &state : finals) {
    Assignment &device = result.best.emplace_back(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      device[i] = state.device[model.unit[i]];
  }
  return result;
}

} // namespace

SearchResult baechi::placement::search(const Model &model,
                                       const std::vector<Assignment> &starts,
                                       const SearchOptions &options) {
  return Search(model, options).run(starts);
}
