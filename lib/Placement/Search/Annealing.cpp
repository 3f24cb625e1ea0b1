//===- Annealing.cpp - Moves around the critical path -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Annealing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::search;

Annealing::Annealing(MeteredEvaluator &evaluator, const UnitTable &units,
                     const std::vector<Hierarchy> &hierarchies, Random &random)
    : evaluator(evaluator), units(units), model(units.model()),
      hierarchies(hierarchies), random(random), devicesAreEqual(true) {
  const Machine &machine = *model.machine;
  for (int32_t d = 0; d < model.numDevices; ++d)
    devicesAreEqual &= machine.devices[d].kind == machine.devices[0].kind &&
                       machine.devices[d].memory == machine.devices[0].memory;
  // One class for all pairs, none without a link.
  for (int32_t a = 0; a < model.numDevices; ++a)
    for (int32_t b = 0; b < model.numDevices; ++b)
      devicesAreEqual &=
          a == b || model.linkClass[a * model.numDevices + b] == 0;
  devicesAreEqual &= model.numClasses <= 1;
}

void Annealing::setGuides(const std::vector<Solution> &solutions) {
  constexpr size_t few = 4;
  guides.assign(solutions.begin(),
                solutions.begin() +
                    static_cast<ptrdiff_t>(std::min(few, solutions.size())));
}

/// The current solution's name for every device of a guide: where devices are
/// equal, the one that shares most of its work, the largest shares first.
std::vector<int32_t> Annealing::relabel(const Solution &guide) const {
  int32_t devices = model.numDevices;
  std::vector<int32_t> name(devices);
  std::iota(name.begin(), name.end(), 0);
  if (!devicesAreEqual)
    return name;
  std::vector<double> shared(static_cast<size_t>(devices) * devices, 0);
  for (Unit u = 0; u < model.numUnits; ++u)
    shared[static_cast<size_t>(guide.device[u]) * devices +
           current.device[u]] += units.work(u);
  std::vector<int32_t> pairs(shared.size());
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](int32_t a, int32_t b) { return shared[a] > shared[b]; });
  std::vector<uint8_t> named(devices, 0), taken(devices, 0);
  for (int32_t pair : pairs) {
    int32_t from = pair / devices, to = pair % devices;
    if (named[from] || taken[to])
      continue;
    named[from] = taken[to] = 1;
    name[from] = to;
  }
  return name;
}

/// The set around \p u goes where a guide has it.
bool Annealing::followGuide(Unit u) {
  const Solution &guide =
      guides[random.below(static_cast<int64_t>(guides.size()))];
  std::vector<int32_t> name = relabel(guide);
  for (Unit unit : level->members[level->clusterOf[u]]) {
    int32_t target = name[guide.device[unit]];
    if (current.device[unit] == target || !model.mayUse(unit, target))
      continue;
    moved.emplace_back(unit, current.device[unit]);
    current.device[unit] = target;
  }
  return !moved.empty();
}

void Annealing::findCritical() {
  critical = {};
  Schedule schedule;
  if (!evaluator.record(current, schedule))
    return;
  const Model &evaluated = evaluator.model();
  Assignment device(evaluated.numNodes);
  for (int32_t i = 0; i < evaluated.numNodes; ++i)
    device[i] = current.device[evaluated.unit[i]];
  critical = criticalPath(evaluated, device, schedule);
}

/// A unit to move, and where to when that is clear (else -1).
Unit Annealing::pickUnit(int32_t &target) {
  target = -1;
  double kind = random.real();
  const Model &evaluated = evaluator.model();
  auto any = [&](const auto &items) {
    return items[random.below(static_cast<int64_t>(items.size()))];
  };
  if (kind < 0.25 && !critical.transfers.empty()) {
    ScheduledTransfer transfer = any(critical.transfers);
    Unit source = evaluated.unit[evaluated.producer[transfer.tensor]];
    if (random.oneIn(2)) {
      target = transfer.to;
      return source;
    }
    std::vector<Unit> there;
    for (int32_t user : evaluated.users[transfer.tensor])
      if (current.device[evaluated.unit[user]] == transfer.to)
        there.push_back(evaluated.unit[user]);
    if (!there.empty()) {
      target = current.device[source];
      return any(there);
    }
  }
  Unit u;
  if (kind < 0.5 && !critical.nodes.empty())
    u = evaluated.unit[any(critical.nodes)];
  else if (kind < 0.85)
    u = units.pickByWork(random);
  else
    u = random.below(model.numUnits);
  if (random.oneIn(2) && !units.neighbours(u).empty())
    target = current.device[any(units.neighbours(u))];
  if (target < 0 || target == current.device[u])
    target = random.below(model.numDevices);
  return u;
}

/// What moves together with a unit: the part on the same device of the cluster
/// around it at a random level, all of it, or a window of time of it.
void Annealing::pickSet(Unit u, double exponent) {
  const Hierarchy &levels =
      hierarchies[random.below(static_cast<int64_t>(hierarchies.size()))];
  auto count = static_cast<double>(levels.size());
  auto index = static_cast<size_t>(
      std::min(count - 1, std::pow(random.real(), exponent) * count));
  level = &levels[index];
  auto members = level->members[level->clusterOf[u]];
  auto size = static_cast<int32_t>(members.size());
  int32_t from = current.device[u], low = 0, high = size - 1;
  double kind = random.real();
  bool all = size > 1 && kind > 0.4 && kind < 0.5;
  if (size > 1 && kind > 0.5) {
    auto at = static_cast<int32_t>(
        std::find(members.begin(), members.end(), u) - members.begin());
    double x = random.real(), before = random.real();
    double length = size * x * x;
    // Up to, from, or around the unit.
    if (kind > 0.6)
      low = std::max(0, at - static_cast<int32_t>(length * before));
    if (kind < 0.6 || kind > 0.7)
      high =
          std::min(size - 1, at + static_cast<int32_t>(length * (1 - before)));
  }
  set.clear();
  for (int32_t k = low; k <= high; ++k)
    if (all || current.device[members[k]] == from)
      set.push_back(members[k]);
}

/// Moves what may move of the set; false when nothing changes.
bool Annealing::moveSet(Unit u, int32_t target) {
  moved.clear();
  int32_t from = current.device[u];
  bool exchange = random.oneIn(10) && target != from;
  for (Unit unit : set)
    if (current.device[unit] != target && model.mayUse(unit, target)) {
      moved.emplace_back(unit, current.device[unit]);
      current.device[unit] = target;
    }
  if (moved.empty())
    return false;
  if (exchange)
    addSwap(u, from);
  return true;
}

/// Something of the device that the set went to comes back instead.
void Annealing::addSwap(Unit u, int32_t from) {
  constexpr int trials = 20;
  int32_t there = current.device[u];
  for (int k = 0; k < trials; ++k) {
    Unit other = units.pickByWork(random);
    if (current.device[other] != there ||
        level->clusterOf[other] == level->clusterOf[u])
      continue;
    for (Unit unit : level->members[level->clusterOf[other]]) {
      bool isMoved =
          std::any_of(moved.begin(), moved.end(),
                      [&](const auto &entry) { return entry.first == unit; });
      if (isMoved || current.device[unit] != there || !model.mayUse(unit, from))
        continue;
      moved.emplace_back(unit, there);
      current.device[unit] = from;
    }
    return;
  }
}

/// The set becomes more or less urgent, or what it was at first.
void Annealing::shiftSet() {
  if (current.offset.empty())
    current.offset.assign(model.numUnits, 0);
  double x = random.real();
  auto by = static_cast<int64_t>(static_cast<double>(current.value) * 0.1 * x *
                                 x * x);
  if (random.oneIn(2))
    by = -by;
  bool reset = random.oneIn(6);
  shifted.clear();
  for (Unit u : set) {
    shifted.emplace_back(u, current.offset[u]);
    current.offset[u] = reset ? 0 : current.offset[u] + by;
  }
}

void Annealing::undoAll() {
  // Backwards: a unit may be in the list twice.
  for (auto it = moved.rbegin(); it != moved.rend(); ++it)
    current.device[it->first] = it->second;
  for (auto it = shifted.rbegin(); it != shifted.rend(); ++it)
    current.offset[it->first] = it->second;
}

Solution Annealing::run(Solution solution, const Options &options) {
  constexpr int refresh = 20;
  current = std::move(solution);
  Solution best = current;
  double from = evaluator.spent();
  int accepted = refresh;
  for (double now = from; now < options.until; now = evaluator.spent()) {
    if (accepted >= refresh) {
      findCritical();
      accepted = 0;
    }
    double progress = (now - from) / (options.until - from);
    double temperature = static_cast<double>(current.value) * options.hot *
                         (1 - progress) * (1 - progress);
    int32_t target;
    Unit u = pickUnit(target);
    pickSet(u, options.coarse + (options.fine - options.coarse) * progress);
    moved.clear();
    shifted.clear();
    double kind = random.real();
    bool isChanged = true;
    if (kind < options.urgencies)
      shiftSet();
    else if (kind < options.urgencies + options.guided && guides.size() > 1)
      isChanged = followGuide(u);
    else
      isChanged = moveSet(u, target);
    if (!isChanged) {
      evaluator.charge(1); // the loop must end
      continue;
    }
    auto limit =
        static_cast<int64_t>(static_cast<double>(current.value) -
                             temperature * std::log(random.real() + 1e-12));
    int64_t value = evaluator.valueNearby(current, limit);
    if (value > limit) {
      undoAll();
      continue;
    }
    current.value = value;
    ++accepted;
    if (value < best.value)
      best = current;
  }
  return best;
}
