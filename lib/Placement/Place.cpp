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
#include <map>

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
        scheduler(model) {}

  void run();

private:
  struct Solution {
    std::string name;
    Placement placement;
    int64_t value = never;
    std::vector<std::string> notes; ///< shown when it wins
  };

  void begin(const std::string &phase);
  void endPhase();
  void group();
  void bound();
  void consider(const std::string &name, Assignment device,
                const std::vector<std::vector<int64_t>> &starts = {},
                bool mayRepair = true);
  void keep(Candidate &candidate, Placement placement,
            std::vector<std::string> notes);
  void considerAsIs(const std::string &name, Assignment device,
                    const std::vector<int64_t> &start);
  void runPlacer(const Placer &placer, const LpSolver *solver);
  std::string overflow(const std::vector<int64_t> &peaks) const;
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
  Scheduler scheduler;
  Coarsening coarsening;
  Model coarse;
  Solution best;
  std::vector<Assignment> tried; ///< what was feasible so far
  /// What did not fit, and what repair made of it; empty: nothing that fits.
  std::map<Assignment, Assignment> repaired;
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

/// Larger is earlier.
std::vector<int64_t> toPriority(const std::vector<int64_t> &start) {
  int64_t latest = *std::max_element(start.begin(), start.end());
  std::vector<int64_t> priority;
  for (int64_t ns : start)
    priority.push_back(latest - ns);
  return priority;
}

/// Schedules an assignment within the memories, repairs it where that is
/// needed, and keeps the best.
void Session::consider(const std::string &name, Assignment device,
                       const std::vector<std::vector<int64_t>> &starts,
                       bool mayRepair) {
  Candidate candidate{name};
  std::vector<std::string> notes;
  Schedule schedule;
  std::vector<std::vector<int64_t>> priorities;
  for (const auto &start : starts)
    if (!start.empty())
      priorities.push_back(toPriority(start));
  bool found = scheduleWithin(scheduler, model, device, schedule, priorities);
  if (!found && mayRepair) {
    Assignment before = device;
    // Placers often agree.
    auto [it, isNew] = repaired.try_emplace(device);
    if (isNew && repair(model, device))
      it->second = device;
    device = it->second;
    found = !device.empty() &&
            scheduleWithin(scheduler, model, device, schedule, priorities);
    if (found) {
      int32_t moved = 0;
      for (int32_t i = 0; i < model.numNodes; ++i)
        moved += device[i] != before[i];
      notes.push_back(
          fmt::format("{}: {} operators were moved to keep the memory limits",
                      name, moved));
    }
  }
  if (found)
    keep(candidate, toPlacement(model, device, schedule), std::move(notes));
  else
    candidate.problem = "it does not fit the memories";
  result.candidates.push_back(std::move(candidate));
}

/// A candidate that is valid: notes its values, and it when it is the best.
void Session::keep(Candidate &candidate, Placement placement,
                   std::vector<std::string> notes) {
  tried.push_back(placement.device);
  candidate.feasible = true;
  candidate.makespanNs = placement.makespanNs;
  candidate.maxLoadNs = maxLoad(model, placement.device);
  int64_t value = options.objective == Objective::MaxLoad
                      ? candidate.maxLoadNs
                      : candidate.makespanNs;
  if (value < best.value)
    best = {candidate.name, std::move(placement), value, std::move(notes)};
}

/// The same without a look at the memories while scheduling, for what is
/// compared as it is: where it does not fit the candidate says so.
void Session::considerAsIs(const std::string &name, Assignment device,
                           const std::vector<int64_t> &start) {
  Candidate candidate{name};
  Schedule schedule;
  std::vector<int64_t> priority;
  if (!start.empty())
    priority = toPriority(start);
  scheduler.run(device, {}, &schedule);
  if (schedule.makespan == never) {
    candidate.problem = "two devices that must talk have no link";
    result.candidates.push_back(std::move(candidate));
    return;
  }
  if (!priority.empty()) {
    Schedule other;
    Scheduler::Options scheduling;
    scheduling.priority = priority;
    if (scheduler.run(device, scheduling, &other) < schedule.makespan)
      schedule = std::move(other);
  }
  candidate.problem = overflow(schedulePeaks(model, device, schedule));
  if (candidate.problem.empty()) {
    keep(candidate, toPlacement(model, device, schedule), {});
  } else {
    candidate.makespanNs = schedule.makespan;
    candidate.maxLoadNs = maxLoad(model, device);
  }
  result.candidates.push_back(std::move(candidate));
}

/// What is above the memories, device by device; empty when nothing is.
std::string Session::overflow(const std::vector<int64_t> &peaks) const {
  std::string text;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (peaks[d] > model.deviceMemory(d))
      text += fmt::format("{} {} of {} on {}", text.empty() ? "it needs" : ",",
                          sizeText(peaks[d], " bytes"),
                          sizeText(model.deviceMemory(d)),
                          problem.machine.devices[d].name);
  return text;
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
      considerAsIs(full, std::move(proposal.device), proposal.start);
    else
      consider(full, std::move(proposal.device), {proposal.start},
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
  consider("packing", packed);
  if (best.value != never)
    return;
  if (scheduler.run(packed) == never)
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
  if (best.value <= result.lowerBoundNs) {
    result.notes.push_back("search: not needed, the lower bound is reached");
    return;
  }
  begin("search");
  SearchOptions forSearch = searchOptions();
  forSearch.groupings = knownGroupings();
  if (isSmall(model))
    forSearch.budget = shareOfSearch(options.budget);
  SearchResult found = search(model, tried, forSearch);
  result.notes.push_back(
      fmt::format("search: {} evaluations on {} merged operators",
                  found.evaluations, found.mergedNodes));
  for (Found &each : found.best)
    consider("search", std::move(each.device), each.starts);
}

/// What only a small graph leaves time for.
void Session::improveSmall() {
  if (!isSmall(model) || best.value <= result.lowerBoundNs)
    return;
  begin("orders");
  SmallResult found = searchSmall(
      model, best.value == never ? nullptr : &best.placement, searchOptions());
  result.notes.push_back(fmt::format(
      "orders: {} evaluations, exact search: {} nodes{}", found.evaluations,
      found.nodes, found.isComplete ? ", nothing is better" : ""));
  if (found.lowerBound > result.lowerBoundNs) {
    result.lowerBoundNs = found.lowerBound;
    result.lowerBoundName = "exact search";
  }
  if (found.placement) {
    Candidate candidate{found.name};
    keep(candidate, std::move(*found.placement), {});
    result.candidates.push_back(std::move(candidate));
  }
  isImpossible = found.isComplete && best.value == never;
}

void Session::accept() {
  begin("verify");
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
    if (best.value != never)
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
    consider("metf:operators", std::move(found.device), {found.start});
  }
  if (!pure && options.objective == Objective::Makespan) {
    constexpr size_t few = 3;
    begin("metf:varied");
    for (EarliestStart &found :
         variedStarts(model, few, options.seed, options.budget))
      consider("metf:varied", std::move(found.device), {found.start},
               /*mayRepair=*/false);
  }
  if (!pure) {
    improve();
    improveSmall();
  }
  if (best.value == never && result.error.empty())
    lastResort();
  if (best.value != never)
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
