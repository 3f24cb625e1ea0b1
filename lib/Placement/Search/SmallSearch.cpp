//===- SmallSearch.cpp - More effort where a graph is small -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/SmallSearch.h"
#include "Exact/Exact.h"
#include "Search/Meter.h"
#include "Search/OrderAnnealing.h"

#include <algorithm>

using namespace baechi::placement;

static Budget part(Budget budget, double share) {
  budget.seconds *= share;
  budget.evaluations = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(budget.evaluations) * share));
  return budget;
}

static constexpr double searchShare = 0.5;

bool baechi::placement::isSmall(const Model &model) {
  return exact::whyTooLarge(model).empty();
}

Budget baechi::placement::shareOfSearch(const Budget &budget) {
  return part(budget, searchShare);
}

static int64_t valueOf(const Model &model, const Placement &placement,
                       Objective objective) {
  return objective == Objective::MaxLoad ? maxLoad(model, placement.device)
                                         : placement.makespanNs;
}

/// The budget of orders and nodes together.
static Budget budgetOfBoth(const Budget &budget, bool hasPlacement) {
  // About 0.2 s; it is worth more to find anything that fits.
  constexpr int64_t enough = 200'000, more = 400'000;
  return budget.kind == Budget::Kind::Automatic
             ? Budget::ofEvaluations(hasPlacement ? enough : more)
             : part(budget, 1 - searchShare);
}

SmallResult baechi::placement::searchSmall(const Model &model,
                                           const Placement *best,
                                           const SearchOptions &options) {
  SearchOptions both = options;
  both.budget = budgetOfBoth(options.budget, best);
  Meter meter(model, both);
  SmallResult result;
  int64_t value = best ? valueOf(model, *best, options.objective) : never;
  auto take = [&](Placement placement, int64_t ns, const char *name) {
    if (ns >= value)
      return;
    value = ns;
    result.placement = std::move(placement);
    result.name = name;
  };
  // Rounds cost twice as much as the one before: what is easy ends early, and
  // the exact search profits from good orders.
  int64_t effort = 1000;
  if (both.budget.kind == Budget::Kind::Evaluations)
    effort =
        std::min(effort, std::max<int64_t>(both.budget.evaluations / 4, 1));
  SearchOptions ordering = options;
  for (; meter.spent() < 0.5 && value > options.lowerBound; effort *= 2) {
    ordering.budget = Budget::ofEvaluations(effort);
    ++ordering.seed;
    std::vector<Assignment> starts;
    if (const Placement *from = result.placement ? &*result.placement : best)
      starts.push_back(from->device);
    OrderResult orders = annealOrders(model, starts, ordering);
    result.evaluations += orders.evaluations;
    if (orders.best) {
      int64_t ns = valueOf(model, *orders.best, options.objective);
      take(std::move(*orders.best), ns, "orders");
    }
    exact::Found found = exact::search(model, options.objective, value, effort,
                                       options.lowerBound);
    result.nodes += found.nodes;
    if (found.value < value)
      take(exact::toPlacement(found), found.value, "exact");
    if (found.bound != never)
      result.lowerBound = std::max(result.lowerBound, found.bound);
    if ((result.isComplete = found.complete))
      break;
    meter.charge(static_cast<double>(orders.evaluations + found.nodes));
  }
  return result;
}
