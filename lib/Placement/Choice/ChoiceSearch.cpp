//===- ChoiceSearch.cpp - Good choices of a core ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/ChoiceSearch.h"
#include "Choice/Descent.h"
#include "Choice/Elimination.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

/// Passes before the first prices, at most; and the share of the budget.
constexpr int32_t warmUpPasses = 100;
constexpr double warmUpShare = 0.1;
/// Entries of the tables of a sweep.
constexpr double sweepEntries = 1e4;
/// A step takes as long as so many entries, whatever is left to look at.
constexpr uint64_t stepEntries = 1000;
/// Sums of doubles are off by less than this share of them.
constexpr double roundingError = 1e-10;

/// The sum of the dearest costs that are not forbidden.
double dearestChoice(const Core &core) {
  double sum = 0;
  auto add = [&](const double *begin, const double *end) {
    double most = 0;
    for (; begin != end; ++begin)
      if (!isForbidden(*begin))
        most = std::max(most, *begin);
    sum += most;
  };
  for (size_t i = 0; i < core.size(); ++i) {
    const std::vector<double> &own = core.costs[i];
    add(own.data(), own.data() + own.size());
    for (const Neighbour &beside : core.neighbours[i])
      if (beside.node > static_cast<int32_t>(i))
        add(beside.table,
            beside.table + own.size() * core.costs[beside.node].size());
  }
  return sum;
}

} // namespace

ChoiceSearch::ChoiceSearch(const Core &core, uint64_t seed, WorkMeter &meter,
                           std::function<void(const Strategies &)> improved)
    : core(core), meter(meter), random(seed), dual(core),
      improved(std::move(improved)),
      bestCost(std::numeric_limits<double>::infinity()),
      dearest(dearestChoice(core)) {}

double ChoiceSearch::bound() const {
  double size = hasChoice() ? bestCost : dearest;
  double bound = dual.bound() + core.constant;
  bound = std::ceil(bound - roundingError * (std::abs(bound) + size));
  return std::clamp(bound, 0.0, hasChoice() ? bestCost + core.constant : bound);
}

bool ChoiceSearch::isInfeasible() const {
  return !hasChoice() && dual.bound() > dearest + roundingError * dearest + 0.5;
}

bool ChoiceSearch::isDone() const {
  return meter.isSpent() || isInfeasible() ||
         (hasChoice() && bound() >= bestCost + core.constant);
}

void ChoiceSearch::run() {
  warmUp();
  attempt();
  uint64_t forDual = 0, forChoices = 0;
  while (!isDone()) {
    double guess = std::max(1.0, 2 * std::abs(dual.bound()));
    uint64_t before = meter.work();
    dual.step(hasChoice() ? bestCost : guess);
    meter.charge(stepEntries + dual.work());
    forDual += meter.work() - before;
    if (forChoices > forDual)
      continue;
    before = meter.work();
    attempt();
    forChoices += meter.work() - before;
  }
}

/// Passes without prices, as long as they raise the bound.
void ChoiceSearch::warmUp() {
  double before = -std::numeric_limits<double>::infinity();
  for (int32_t k = 1; k <= warmUpPasses && meter.spent() < warmUpShare; ++k) {
    double bound = dual.pass();
    meter.charge(dual.work());
    if (k % 5 != 0)
      continue;
    if (bound <= before + 1e-3 * std::abs(before))
      break;
    before = bound;
  }
}

/// Makes a choice of the dual's labels: a sweep at its prices, then what it
/// takes to keep the limit, then what is cheaper within it.
void ChoiceSearch::attempt() {
  Strategies choice = dual.labels();
  Elimination sweep(core, random, sweepEntries);
  meter.charge(sweep.run(dual.priced(), choice) + 100 * core.size());
  Descent descent(core, choice, meter);
  if (!descent.repair(dual.priced()))
    return;
  descent.descend(random);
  double cost = core.cost(descent.choice(), core.costs);
  if (isForbidden(cost) || cost >= bestCost)
    return;
  bestCost = cost;
  bestChoice = descent.choice();
  improved(bestChoice);
}
