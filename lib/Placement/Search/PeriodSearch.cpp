//===- PeriodSearch.cpp - Search for steps that follow soonest --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/PeriodSearch.h"
#include "Model/Random.h"
#include "Schedule/Evaluator.h"
#include "Schedule/Period.h"
#include "Search/Meter.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::search;

namespace {

class PeriodSearch {
public:
  PeriodSearch(const Model &model, const SearchOptions &options);
  PeriodResult run(const std::vector<Assignment> &starts);

private:
  /// What the annealing changes, per unit.
  struct Plan {
    std::vector<int32_t> device;
    std::vector<int64_t> offset; ///< of the urgency, ns
  };

  int64_t evaluate(const Plan &plan);
  void anneal(Plan plan, int64_t evaluations);
  bool change(Plan &plan);
  bool moveUnit(Plan &plan);
  bool moveSide(Plan &plan);
  Plan planOf(const Assignment &assignment) const;

  const Model &model;
  Meter meter;
  Evaluator evaluator;
  PeriodReplay periods;
  Random random;
  std::vector<Unit> movable;
  std::vector<int32_t> crossing; ///< tensors that more than one unit has
  Plan bestPlan;
  int64_t bestValue = never;
  std::optional<Placement> best;
};

PeriodSearch::PeriodSearch(const Model &model, const SearchOptions &options)
    : model(model), meter(model, options), evaluator(model), periods(model),
      random(options.seed) {
  for (Unit u = 0; u < model.numUnits; ++u)
    if (!model.pinned(u))
      movable.push_back(u);
  for (int32_t t = 0; t < model.numTensors; ++t)
    for (int32_t user : model.users[t])
      if (model.unit[user] != model.unit[model.producer[t]]) {
        crossing.push_back(t);
        break;
      }
}

PeriodSearch::Plan PeriodSearch::planOf(const Assignment &assignment) const {
  Plan plan{std::vector<int32_t>(model.numUnits),
            std::vector<int64_t>(model.numUnits, 0)};
  for (int32_t i = 0; i < model.numNodes; ++i)
    plan.device[model.unit[i]] = assignment[i];
  return plan;
}

/// The period; `never` where it does not fit the memories.
int64_t PeriodSearch::evaluate(const Plan &plan) {
  meter.charge(1);
  Schedule schedule;
  if (evaluator.run(plan.device, plan.offset, never, &schedule) == never)
    return never;
  Assignment device(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    device[i] = plan.device[model.unit[i]];
  Period period = periods.run(device, schedule);
  meter.charge(static_cast<double>(period.replayed));
  int64_t value = period.ns();
  std::vector<int64_t> peaks = schedulePeaks(model, device, schedule);
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (peaks[d] > model.deviceMemory(d))
      return never;
  if (value < bestValue) {
    bestValue = value;
    bestPlan = plan;
    best = toPlacement(model, device, schedule);
    meter.found(value);
  }
  return value;
}

bool PeriodSearch::moveUnit(Plan &plan) {
  if (movable.empty())
    return false;
  Unit u = movable[random.below(static_cast<int64_t>(movable.size()))];
  int32_t to = random.below(model.numDevices), from = plan.device[u];
  if (to == from || !model.mayUse(u, to))
    return false;
  plan.device[u] = to;
  // Sometimes another one takes its place.
  if (random.oneIn(3)) {
    Unit v = movable[random.below(static_cast<int64_t>(movable.size()))];
    if (plan.device[v] == to && v != u && model.mayUse(v, from))
      plan.device[v] = from;
  }
  return true;
}

/// What makes a tensor goes where a reader is, or all readers where it is made.
bool PeriodSearch::moveSide(Plan &plan) {
  if (crossing.empty())
    return false;
  int32_t t = crossing[random.below(static_cast<int64_t>(crossing.size()))];
  Unit maker = model.unit[model.producer[t]];
  auto users = model.users[t];
  bool changed = false;
  auto move = [&](Unit u, int32_t to) {
    if (plan.device[u] == to || !model.mayUse(u, to))
      return;
    plan.device[u] = to;
    changed = true;
  };
  if (random.oneIn(2)) {
    int32_t user = users[random.below(static_cast<int64_t>(users.size()))];
    move(maker, plan.device[model.unit[user]]);
  } else {
    for (int32_t user : users)
      move(model.unit[user], plan.device[maker]);
  }
  return changed;
}

bool PeriodSearch::change(Plan &plan) {
  constexpr double unitShare = 0.4, sideShare = 0.3;
  double kind = random.real();
  if (kind < unitShare)
    return moveUnit(plan);
  if (kind < unitShare + sideShare)
    return moveSide(plan);
  // As urgent as one that has up to the best period more or less before it.
  Unit u = random.below(model.numUnits);
  auto most = static_cast<double>(bestValue == never ? 1000 : bestValue);
  plan.offset[u] = random.oneIn(4)
                       ? 0
                       : static_cast<int64_t>((2 * random.real() - 1) * most);
  return true;
}

/// A run that cools down.
void PeriodSearch::anneal(Plan plan, int64_t evaluations) {
  constexpr double hot = 0.05;
  int64_t value = evaluate(plan);
  double begin = meter.evaluations(), end = begin + double(evaluations);
  while (meter.spent() < 1 && meter.evaluations() < end) {
    double left = (end - meter.evaluations()) / (end - begin);
    double temperature = hot * left * left;
    Plan trial = plan;
    if (!change(trial)) {
      meter.charge(1); // the run must end
      continue;
    }
    int64_t now = evaluate(trial);
    double allowed = static_cast<double>(value) *
                     (1 - temperature * std::log(random.real() + 1e-12));
    if (now == never || (value != never && static_cast<double>(now) > allowed))
      continue;
    value = now;
    plan = std::move(trial);
  }
}

PeriodResult PeriodSearch::run(const std::vector<Assignment> &starts) {
  for (const Assignment &start : starts)
    if (meter.spent() < 1)
      evaluate(planOf(start));
  // Each start once, and the best in between.
  constexpr int64_t shortest = 400;
  for (size_t k = 0; meter.spent() < 1; ++k) {
    bool fromBest = best && (k % 2 == 0 || starts.empty());
    if (!fromBest && starts.empty())
      break;
    anneal(fromBest ? bestPlan : planOf(starts[(k / 2) % starts.size()]),
           std::max(shortest, static_cast<int64_t>(meter.evaluations() / 4)));
  }
  return {std::move(best), static_cast<int64_t>(meter.evaluations())};
}

} // namespace

PeriodResult
baechi::placement::search::searchPeriod(const Model &model,
                                        const std::vector<Assignment> &starts,
                                        const SearchOptions &options) {
  return PeriodSearch(model, options).run(starts);
}
