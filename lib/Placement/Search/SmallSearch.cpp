//===- SmallSearch.cpp - More effort where a graph is small -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/SmallSearch.h"
#include "Exact/BranchAndBound.h"
#include "Schedule/Period.h"
#include "Search/OrderAnnealing.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

bool baechi::placement::search::isSmall(const Model &model) {
  return exact::whyTooLarge(model).empty();
}

int64_t baechi::placement::search::shareOfSearch(const Model &model,
                                                 int64_t evaluations) {
  // More on a unit finds nothing new.
  constexpr int64_t each = 200;
  return std::min(evaluations / 2, each * model.numUnits);
}

static int64_t valueOf(const Model &model, const Placement &placement,
                       Objective objective) {
  switch (objective) {
  case Objective::Makespan:
    return placement.makespanNs;
  case Objective::MaxLoad:
    return maxLoad(model, placement);
  case Objective::Period:
    return PeriodReplay(model).run(placement).ns();
  }
  return never;
}

SmallResult baechi::placement::search::searchSmall(
    const Model &model, const Placement *best, const SearchOptions &options) {
  SmallResult result;
  int64_t value = best ? valueOf(model, *best, options.objective) : never;
  auto take = [&](Placement placement, int64_t ns, const char *name) {
    if (ns >= value)
      return;
    value = ns;
    result.placement = std::move(placement);
    result.name = name;
  };
  SearchOptions ordering = options;
  int64_t effort = std::max<int64_t>(options.budget.evaluations / 4, 1);
  ordering.budget = Budget::ofEvaluations(effort);
  std::vector<Assignment> starts;
  if (best)
    starts.push_back(best->device);
  OrderResult orders = annealOrders(model, starts, ordering);
  result.evaluations = orders.evaluations;
  if (orders.best) {
    int64_t ns = valueOf(model, *orders.best, options.objective);
    take(std::move(*orders.best), ns, "orders");
  }
  // The exact search knows nothing of steps that overlap.
  if (options.objective == Objective::Period)
    return result;
  // Good orders spare the exact search what is worse.
  exact::Found found = exact::search(model, options.objective, value, effort,
                                     options.lowerBound, options.cancelled);
  result.nodes = found.nodes;
  if (found.value < value)
    take(exact::toPlacement(found), found.value, "exact");
  if (found.bound != never)
    result.lowerBound = found.bound;
  result.isComplete = found.complete;
  return result;
}
