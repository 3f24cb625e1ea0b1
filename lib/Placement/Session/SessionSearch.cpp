//===- SessionSearch.cpp - Rounds of search ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a session does with a round: varied starts, local search by its
/// objective from the best so far, and what only a small graph leaves time for.
///
//===----------------------------------------------------------------------===//

#include "Search/MaxLoadSearch.h"
#include "Search/Meter.h"
#include "Search/PeriodSearch.h"
#include "Search/VariedStarts.h"
#include "Session/GroupingSteps.h"
#include "Session/Session.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::session;

/// Groupings whose groups the search may move whole: that which was asked for,
/// and co-placement with and without backward operators that follow.
std::vector<std::vector<Unit>> Session::knownGroupings() const {
  std::vector<std::vector<Unit>> known;
  if (options.objective == Objective::MaxLoad)
    return known; // that search has its own clusters
  auto add = [&](const grouping::Coarsening &grouping) {
    if (grouping.numUnits < model.numUnits &&
        std::find(known.begin(), known.end(), grouping.unit) == known.end())
      known.push_back(grouping.unit);
  };
  add(coarsening);
  if (!hasFewNodes())
    return known;
  add(applySteps(problem, model, {"coplace"}).coarsening);
  // Without forward operators it would be the same once more.
  const auto &ops = problem.graph.ops;
  if (std::any_of(ops.begin(), ops.end(),
                  [](const Operator &op) { return op.forward.has_value(); }))
    add(applySteps(problem, model, {"forward", "coplace"}).coarsening);
  return known;
}

void Session::makeSearchModels() {
  if (searched)
    return;
  if (searchedBeside.valid())
    searched = searchedBeside.get();
  else
    searched = std::make_unique<search::SearchModels>(
        model, alike ? alike->searched.get() : nullptr);
}

int64_t Session::automaticEvaluations() {
  if (search::isSmall(model))
    return search::smallEvaluations;
  if (options.objective == Objective::MaxLoad)
    return search::automaticLoadEvaluations(model);
  makeSearchModels();
  return search::automaticEvaluations(searched->merged.model);
}

search::SearchOptions Session::searchOptions(const search::Round &round) const {
  return {.objective = options.objective,
          .budget = Budget::ofEvaluations(round.evaluations),
          .lowerBound = result.lowerBoundNs,
          .seed = round.seed,
          .groupings = {},
          .isFirst = round.index == 0,
          .cancelled = round.expired};
}

/// m-ETF under varied urgencies, once there are evaluations enough.
void Session::varyStarts(const search::Round &round) {
  if (haveVaried || options.objective != Objective::Makespan ||
      round.total < search::variedEvaluations(model))
    return;
  haveVaried = true;
  constexpr size_t few = 3;
  for (placers::EarliestStart &found :
       search::variedStarts(model, few, options.seed))
    contest.consider("metf:varied", std::move(found.device), {found.start},
                     /*mayRepair=*/false);
}

/// Local search from the best so far.
void Session::improve(const search::Round &round) {
  if (allTried)
    return;
  if (options.objective != Objective::MaxLoad)
    makeSearchModels();
  if (round.index == 0 && groupings.empty())
    groupings = knownGroupings();
  search::SearchOptions forSearch = searchOptions(round);
  forSearch.groupings = groupings;
  if (search::isSmall(model))
    forSearch.budget =
        Budget::ofEvaluations(search::shareOfSearch(model, round.evaluations));
  constexpr int64_t each = 4, fewest = 4, most = 12;
  auto count =
      static_cast<size_t>(std::clamp(round.evaluations / each, fewest, most));
  std::vector<Assignment> starts = contest.best(count);
  if (options.objective == Objective::Period) {
    improvePeriod(starts, forSearch);
    return;
  }
  search::SearchResult found =
      options.objective == Objective::MaxLoad
          ? search::searchMaxLoad(model, starts, forSearch)
          : search::search(model, *searched, starts, forSearch);
  evaluations += found.evaluations;
  allTried = found.allTried;
  for (search::Found &each : found.best)
    if (each.value)
      contest.remember(*each.value, each.device);
    else
      contest.considerIfBest("search", std::move(each.device), each.starts);
}

/// Steps that are short, and devices that have as much to do, are where short
/// periods are looked for.
void Session::improvePeriod(std::vector<Assignment> starts,
                            const search::SearchOptions &given) {
  search::SearchOptions part = given;
  constexpr int64_t parts = 4;
  part.budget = Budget::ofEvaluations(
      std::max<int64_t>(given.budget.evaluations / parts, 1));
  for (Objective other : {Objective::MaxLoad, Objective::Makespan}) {
    part.objective = other;
    search::SearchResult found =
        other == Objective::MaxLoad
            ? search::searchMaxLoad(model, starts, part)
            : search::search(model, *searched, starts, part);
    evaluations += found.evaluations;
    for (search::Found &each : found.best) {
      starts.push_back(each.device);
      if (each.value)
        continue;
      contest.considerIfBest("search", std::move(each.device), each.starts);
    }
  }
  part.objective = Objective::Period;
  part.budget = Budget::ofEvaluations(
      std::max<int64_t>(given.budget.evaluations * 2 / parts, 1));
  if (contest.hasWinner())
    starts.push_back(contest.leading().placement.device);
  search::PeriodResult found = search::searchPeriod(model, starts, part);
  evaluations += found.evaluations;
  if (found.best) {
    Candidate candidate{"search"};
    int64_t before = contest.leading().value;
    contest.keep(candidate, std::move(*found.best), {});
    if (contest.leading().value < before)
      result.candidates.push_back(std::move(candidate));
  }
}

/// What only a small graph leaves time for.
void Session::improveSmall(const search::Round &round) {
  if (!search::isSmall(model) || isDone())
    return;
  search::SmallResult found = search::searchSmall(
      model, !contest.hasWinner() ? nullptr : &contest.leading().placement,
      searchOptions(round));
  orders += found.evaluations;
  nodes += found.nodes;
  if (found.lowerBound > result.lowerBoundNs) {
    result.lowerBoundNs = found.lowerBound;
    result.lowerBoundName = "exact search";
  }
  if (found.placement) {
    Candidate candidate{found.name};
    // A pipeline's load counts tensors on the ways of the scheduler.
    if (options.objective == Objective::MaxLoad)
      contest.considerIfBest(found.name, found.placement->device, {},
                             /*mayRepair=*/false);
    contest.keep(candidate, std::move(*found.placement), {});
    result.candidates.push_back(std::move(candidate));
  }
  isComplete = found.isComplete;
  isImpossible = isComplete && !contest.hasWinner();
}

/// Whether the search of a large graph is worth no more: an eighth of it has
/// not bettered what is at most a quarter above the bound.
bool Session::hasFoundNothing(const search::Round &round) const {
  constexpr int64_t part = 8, near = 4;
  return hasManyUnits() && hasWinner() && haveVaried && !isBettered &&
         round.limit > 0 && round.total >= round.limit / part &&
         value() - lowerBound() <= lowerBound() / near;
}

void Session::search(const search::Round &round) {
  phase("search");
  int64_t before = value();
  varyStarts(round);
  if (!isDone())
    improve(round);
  if (options.cancelled && options.cancelled())
    throw Cancelled();
  improveSmall(round);
  isBettered |= value() < before;
  isIdle = hasFoundNothing(round);
}
