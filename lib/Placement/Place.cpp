//===- Place.cpp - From a problem to a verified placement -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Place.h"
#include "Baechi/Placement/NativeSolver.h"
#include "Bounds/Bounds.h"
#include "Contest.h"
#include "Grouping/Clusters.h"
#include "Grouping/Grouping.h"
#include "Grouping/Steps.h"
#include "Memory/Memory.h"
#include "Model/DeviceOrder.h"
#include "Placers/Placers.h"
#include "Placers/Registry.h"
#include "Search/Search.h"
#include "Search/SmallSearch.h"
#include "Search/VariedStarts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>

using namespace baechi::placement;

namespace {

/// Thrown within a call that is cancelled.
struct Cancelled {};

/// One call of `place`.
class Session {
public:
  Session(const Problem &problem, const PlaceOptions &options,
          PlaceResult &result)
      : problem(problem), options(options), result(result), model(problem),
        contest(problem, model, options.objective, result.candidates) {}

  void run();

private:
  void begin(const std::string &phase);
  void endPhase();
  void group();
  void bound();
  void runPlacer(const Placer &placer, const LpSolver *solver);
  std::string noSingleDevice() const;
  void lastResort();
  SearchOptions searchOptions() const;
  std::vector<std::vector<Unit>> knownGroupings() const;
  void improve();
  void improveSmall();
  void accept();

  const Problem &problem;
  const PlaceOptions &options;
  PlaceResult &result;
  Model model;
  Coarsening coarsening;
  Model coarse;
  Contest contest;
  bool isImpossible = false; ///< proven: no placement is valid
  std::chrono::steady_clock::time_point phaseBegin;
};

void Session::begin(const std::string &phase) {
  endPhase();
  if (options.cancelled && options.cancelled())
    throw Cancelled();
  result.phases.push_back({phase, 0});
  phaseBegin = std::chrono::steady_clock::now();
  if (options.progress)
    options.progress(phase);
}

void Session::endPhase() {
  if (result.phases.empty())
    return;
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - phaseBegin;
  result.phases.back().seconds = seconds.count();
}

void Session::group() {
  begin("grouping");
  Grouping grouping = applySteps(problem, model, options.grouping);
  coarsening = std::move(grouping.coarsening);
  result.grouping = std::move(grouping.steps);
  result.notes.insert(result.notes.end(), grouping.notes.begin(),
                      grouping.notes.end());
  coarse = coarsen(model, coarsening);
  result.operatorsBefore = model.numNodes;
  result.operatorsAfter = coarse.numNodes;
}

void Session::bound() {
  begin("bound");
  Bound bound = options.objective == Objective::MaxLoad ? maxLoadBound(model)
                                                        : makespanBound(model);
  result.lowerBoundNs = bound.value;
  result.lowerBoundName = bound.name;
}

void Session::runPlacer(const Placer &placer, const LpSolver *solver) {
  std::string name(placer.name);
  begin(name);
  std::vector<std::string> ignored;
  auto &notes = name == options.placer ? result.notes : ignored;
  Proposals found = placer.propose(
      {problem, model, coarsening, coarse, options, solver, notes});
  if (!found.error.empty()) {
    // What was asked for is not silently replaced by something else.
    if (name == options.placer)
      result.error = name + ": " + found.error;
    result.candidates.push_back({.name = name, .problem = found.error});
    return;
  }
  for (Proposal &proposal : found.list) {
    std::string full = name;
    if (!proposal.variant.empty())
      full += ":" + proposal.variant;
    if (placer.ignoresMemory)
      contest.considerAsIs(full, std::move(proposal.device), proposal.start);
    else
      contest.consider(full, std::move(proposal.device), {proposal.start},
                       /*mayRepair=*/!placer.alone);
    const Candidate &last = result.candidates.back();
    if (placer.name == "single" && last.feasible &&
        (!result.singleDeviceNs || last.makespanNs < *result.singleDeviceNs))
      result.singleDeviceNs = last.makespanNs;
  }
}

/// Why no device alone can do it: each, and what it lacks.
std::string Session::noSingleDevice() const {
  std::string text = "no single device can run the whole graph:";
  for (int32_t d = 0; d < model.numDevices; ++d) {
    const std::string &name = problem.machine.devices[d].name;
    bool all = true;
    for (Unit u = 0; u < model.numUnits; ++u)
      all &= model.mayUse(u, d);
    text += d ? ", " : " ";
    if (!all) {
      text += fmt::format("some operators cannot run on {}", name);
      continue;
    }
    Assignment alone(model.numNodes, d);
    int64_t needed = leastPeaks(model, alone)[d];
    text += fmt::format("it needs {} of {} on {}", sizeText(needed, " bytes"),
                        sizeText(model.deviceMemory(d)), name);
  }
  return text;
}

/// Nothing fits so far: pack by memory alone.
void Session::lastResort() {
  begin("packing");
  Assignment packed(model.numNodes);
  findFit(model, packed);
  contest.consider("packing", packed);
  if (contest.hasSolution())
    return;
  if (!contest.canTalk(packed))
    result.error = "no placement was found whose devices can all talk where "
                   "they must: add links or a link_default";
  else
    result.error =
        (isImpossible ? "no placement can fit the memories: the exact search "
                        "has ruled out all of them"
                      : "no placement was found that fits the memories, and "
                        "no proof that there is none") +
        explainMemory(problem, model, packed);
}

SearchOptions Session::searchOptions() const {
  return {.objective = options.objective,
          .budget = options.budget,
          .lowerBound = result.lowerBoundNs,
          .seed = options.seed,
          .cancelled = options.cancelled};
}

/// Groupings whose groups the search may move whole: that which was asked for,
/// and co-placement with and without backward operators that follow.
std::vector<std::vector<Unit>> Session::knownGroupings() const {
  std::vector<std::vector<Unit>> known;
  if (options.objective == Objective::MaxLoad)
    return known; // that search has its own clusters
  auto add = [&](const Coarsening &grouping) {
    if (grouping.numUnits < model.numUnits &&
        std::find(known.begin(), known.end(), grouping.unit) == known.end())
      known.push_back(grouping.unit);
  };
  add(coarsening);
  // Grouping takes its time.
  constexpr int32_t fewNodes = 50'000;
  if (model.numNodes > fewNodes)
    return known;
  add(applySteps(problem, model, {"coplace"}).coarsening);
  // Without forward operators it would be the same once more.
  const auto &ops = problem.graph.ops;
  if (std::any_of(ops.begin(), ops.end(),
                  [](const Operator &op) { return op.forward.has_value(); }))
    add(applySteps(problem, model, {"forward", "coplace"}).coarsening);
  return known;
}

/// Local search from what was found so far.
void Session::improve() {
  if (contest.solution().value <= result.lowerBoundNs) {
    result.notes.push_back("search: not needed, the lower bound is reached");
    return;
  }
  begin("search");
  SearchOptions forSearch = searchOptions();
  forSearch.groupings = knownGroupings();
  if (isSmall(model))
    forSearch.budget = shareOfSearch(options.budget);
  SearchResult found = search(model, contest.feasible(), forSearch);
  result.notes.push_back(
      fmt::format("search: {} evaluations on {} merged operators",
                  found.evaluations, found.mergedNodes));
  for (Found &each : found.best)
    contest.consider("search", std::move(each.device), each.starts);
}

/// What only a small graph leaves time for.
void Session::improveSmall() {
  if (!isSmall(model) || contest.solution().value <= result.lowerBoundNs)
    return;
  begin("orders");
  SmallResult found = searchSmall(
      model, !contest.hasSolution() ? nullptr : &contest.solution().placement,
      searchOptions());
  result.notes.push_back(fmt::format(
      "orders: {} evaluations, exact search: {} nodes{}", found.evaluations,
      found.nodes, found.isComplete ? ", nothing is better" : ""));
  if (found.lowerBound > result.lowerBoundNs) {
    result.lowerBoundNs = found.lowerBound;
    result.lowerBoundName = "exact search";
  }
  if (found.placement) {
    Candidate candidate{found.name};
    contest.keep(candidate, std::move(*found.placement), {});
    result.candidates.push_back(std::move(candidate));
  }
  isImpossible = found.isComplete && !contest.hasSolution();
}

void Session::accept() {
  begin("verify");
  Solution &best = contest.solution();
  auto violations = verify(problem, best.placement, &result.usage);
  if (!violations.empty()) {
    result.error = "internal error: the placement that '" + best.name +
                   "' found is not valid: " + violations.front();
    return;
  }
  result.winner = best.name;
  result.notes.insert(result.notes.end(), best.notes.begin(), best.notes.end());
  result.maxLoadNs = maxLoad(model, best.placement.device);
  result.placement = std::move(best.placement);
}

void Session::run() {
  if (model.numNodes == 0) {
    result.placement = Placement{};
    result.usage = usage(problem, *result.placement);
    result.winner = options.placer;
    result.lowerBoundName = "no operators";
    return;
  }
  if (std::string proof = proveInfeasible(problem, model); !proof.empty()) {
    Assignment closest;
    packUnits(model, closest);
    repair(model, closest);
    result.error = "no placement can fit the memories: " + proof +
                   explainMemory(problem, model, closest);
    return;
  }
  bound();
  group();
  const Placer &asked = *placerNamed(options.placer);
  runPlacer(asked, options.solver);
  if (!result.error.empty()) {
    endPhase();
    return;
  }
  if (asked.alone) {
    // What was asked for and nothing else.
    if (contest.hasSolution())
      accept();
    else if (asked.ignoresMemory)
      result.error = fmt::format("the placement of '{}' is not valid: {}",
                                 asked.name, result.candidates.back().problem);
    else
      result.error = noSingleDevice();
    endPhase();
    return;
  }
  // The others must not cost more than what was asked for.
  std::unique_ptr<LpSolver> brief = createNativeSolver({.work = 1e8});
  bool pure = options.budget.kind == Budget::Kind::None;
  if (!pure)
    for (const Placer &other : allPlacers())
      if (model.numUnits <= other.candidateUpTo && other.name != options.placer)
        runPlacer(other, brief.get());
  if (!pure && coarse.numNodes < model.numNodes) {
    // Groups can hide a good split of a small graph.
    begin("metf:operators");
    EarliestStart found = earliestStart(model);
    contest.consider("metf:operators", std::move(found.device), {found.start});
  }
  if (!pure && options.objective == Objective::Makespan) {
    constexpr size_t few = 3;
    begin("metf:varied");
    for (EarliestStart &found :
         variedStarts(model, few, options.seed, options.budget))
      contest.consider("metf:varied", std::move(found.device), {found.start},
                       /*mayRepair=*/false);
  }
  if (!pure) {
    improve();
    improveSmall();
  }
  if (!contest.hasSolution() && result.error.empty())
    lastResort();
  if (contest.hasSolution())
    accept();
  endPhase();
}

} // namespace

PlaceResult baechi::placement::place(const Problem &problem,
                                     const PlaceOptions &options) {
  PlaceResult result;
  try {
    const auto &names = placerNames();
    if (std::find(names.begin(), names.end(), options.placer) == names.end()) {
      result.error = fmt::format("unknown placer '{}': the placers are {}",
                                 options.placer, fmt::join(names, ", "));
      return result;
    }
    const auto &steps = groupingNames();
    for (const std::string &step : options.grouping)
      if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
        result.error = fmt::format("unknown grouping step '{}': the steps are "
                                   "{}",
                                   step, fmt::join(steps, ", "));
        return result;
      }
    if (auto errors = check(problem); !errors.empty()) {
      result.error = fmt::format("{}", fmt::join(errors, "\n"));
      return result;
    }
    std::vector<int32_t> order = deviceOrder(problem);
    if (std::is_sorted(order.begin(), order.end())) {
      Session(problem, options, result).run();
    } else {
      Problem reordered{problem.graph, reorder(problem.machine, order)};
      Session(reordered, options, result).run();
      restoreDevices(order, result);
    }
  } catch (const Cancelled &) {
    result.placement.reset();
    result.error = cancelledError;
  } catch (const std::exception &e) {
    result.placement.reset();
    result.error = fmt::format("placement failed: {}", e.what());
  }
  return result;
}
