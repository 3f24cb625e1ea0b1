//===- Session.cpp - One problem on its way to a placement ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/Session.h"
#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Grouping/Clusters.h"
#include "Grouping/Grouping.h"
#include "Memory/Memory.h"
#include "Model/Beside.h"
#include "Model/DeviceOrder.h"
#include "Placers/Layers.h"
#include "Placers/Pieces.h"
#include "Placers/Placers.h"
#include "Search/SmallSearch.h"
#include "Session/GroupingSteps.h"

#include <fmt/format.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::session;

void Session::phase(const std::string &name) {
  auto now = std::chrono::steady_clock::now();
  if (currentPhase < result.phases.size())
    result.phases[currentPhase].seconds +=
        std::chrono::duration<double>(now - phaseBegin).count();
  phaseBegin = now;
  currentPhase = result.phases.size();
  if (name.empty())
    return;
  if (options.cancelled && options.cancelled())
    throw Cancelled();
  for (size_t k = 0; k < result.phases.size(); ++k)
    if (result.phases[k].name == name)
      currentPhase = k;
  if (currentPhase < result.phases.size())
    return;
  result.phases.push_back({name, 0});
  if (options.progress)
    options.progress(name);
}

void Session::group() {
  phase("grouping");
  Grouping grouping = applySteps(problem, model, options.grouping);
  coarsening = std::move(grouping.coarsening);
  result.grouping = std::move(grouping.steps);
  result.notes.insert(result.notes.end(), grouping.notes.begin(),
                      grouping.notes.end());
  // Tensors that nobody reads become scratch memory.
  bool isAsItWas = coarsening.numNodes == model.numNodes &&
                   coarsening.numUnits == model.numUnits &&
                   !model.memoryMatters();
  if (!isAsItWas)
    joined = grouping::coarsen(model, coarsening);
  coarse = isAsItWas ? &model : &joined;
  for (grouping::Coarsening &level : grouping.levels) {
    Model grouped = grouping::coarsen(model, level);
    levels.push_back({std::move(level), std::move(grouped)});
  }
  result.operatorsBefore = model.numNodes;
  result.operatorsAfter = coarse->numNodes;
}

void Session::bound() {
  phase("bound");
  bool quick = options.budget.kind == Budget::Kind::None;
  // Steps that overlap share what devices and links can do.
  auto find = [this, quick] {
    return options.objective == Objective::Makespan
               ? bounds::makespanBound(model, quick)
               : bounds::maxLoadBound(model);
  };
  // A search ends where it is reached, a placer alone does not ask for it.
  if (quick && isLarge())
    boundBeside = beside(find);
  else
    keepBound(find());
}

void Session::keepBound(const bounds::Bound &bound) {
  result.lowerBoundNs = bound.value;
  result.lowerBoundName = bound.name;
}

void Session::runPlacer(const placers::Placer &placer, const LpSolver *solver) {
  std::string name(placer.name);
  phase(name);
  std::vector<std::string> ignored;
  auto &notes = name == options.placer ? result.notes : ignored;
  placers::Proposals found = placer.propose(
      {problem, model, coarsening, *coarse, options, solver, notes, levels});
  if (!found.error.empty()) {
    // What was asked for is not silently replaced by something else.
    if (name == options.placer)
      result.error = name + ": " + found.error;
    result.candidates.push_back({.name = name, .problem = found.error});
    return;
  }
  for (placers::Proposal &proposal : found.list) {
    std::string full = name;
    if (!proposal.variant.empty())
      full += ":" + proposal.variant;
    if (placer.ignoresMemory)
      contest.considerAsIs(full, proposal.device, proposal.start);
    else
      contest.consider(full, std::move(proposal.device), {proposal.start},
                       /*mayRepair=*/!placer.alone && proposal.mayRepair);
    const Candidate &last = result.candidates.back();
    anyUnfit |= !placer.alone && proposal.mayRepair && !last.feasible;
    bool isSingle =
        placer.name == "single" || proposal.variant.starts_with("single:");
    if (isSingle && last.feasible &&
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
      text += fmt::format("some operators cannot run on {}, as they are pinned "
                          "elsewhere or have no time for its kind",
                          name);
      continue;
    }
    Assignment alone(model.numNodes, d);
    int64_t needed = memory::leastPeaks(model, alone)[d];
    text += fmt::format("it needs {} of {} on {}",
                        memory::sizeText(needed, " bytes"),
                        memory::sizeText(model.deviceMemory(d)), name);
  }
  return text;
}

/// By memory alone.
const Assignment &Session::pack() {
  if (packing)
    return *packing;
  phase("packing");
  KnownOfMemory &known = contest.ofMemory();
  packing = known.unfitPacking;
  if (!packing) {
    packing.emplace(model.numNodes);
    if (!memory::findFit(model, *known.lean, *packing))
      known.unfitPacking = packing;
  }
  contest.consider("packing", *packing);
  return *packing;
}

/// Nothing fits so far.
void Session::lastResort() {
  if (contest.hasWinner() || !result.error.empty())
    return;
  const Assignment &packed = pack();
  if (contest.hasWinner())
    return;
  if (!contest.canTalk(packed))
    result.error =
        "no placement was found whose devices can all talk where they must" +
        (options.budget.kind == Budget::Kind::Automatic
             ? std::string(": ")
             : fmt::format(" with the budget {}: a larger one (auto) may find "
                           "it; else ",
                           formatBudget(options.budget))) +
        "add links or a link_default";
  else
    result.error =
        (isImpossible ? "no placement can fit the memories: the exact search "
                        "has ruled out all of them"
                      : "no placement was found that fits the memories, and "
                        "no proof that there is none") +
        (explains ? memory::explainMemory(problem, model, packed) : "");
}

/// Pieces of operators that were cut.
void Session::considerPieces() {
  std::vector<placers::Proposal> found = placers::proposePieces(problem, model);
  if (!found.empty())
    phase("pieces");
  for (placers::Proposal &proposal : found)
    contest.consider("pieces:" + proposal.variant, std::move(proposal.device),
                     {proposal.start}, proposal.mayRepair);
}

/// What people write by hand for a list of layers. Those that are no better
/// than the best so far are not where a search begins.
void Session::considerLayers() {
  if (options.objective != Objective::Makespan || !hasFewNodes())
    return;
  groupings = knownGroupings();
  if (groupings.empty())
    return;
  phase("layers");
  Scheduler scheduler(model);
  for (placers::Proposal &proposal :
       placers::proposeLayers(problem, model, groupings.back())) {
    Scheduler::Options scheduling;
    if (contest.hasWinner())
      scheduling.cutoff = contest.leading().value - 1;
    if (scheduler.run(proposal.device, scheduling) == never)
      continue;
    contest.considerIfBest("layers:" + proposal.variant,
                           std::move(proposal.device), {},
                           /*mayRepair=*/false);
  }
}

/// All other placers: what was asked for is never worse than one of them.
void Session::runOthers() {
  // They must not cost much more than what was asked for.
  std::unique_ptr<LpSolver> brief = createNativeSolver({.work = 1e8});
  // On a large graph nobody is asked once the bound is reached, but what one
  // device alone takes is part of every answer.
  auto isOver = [&] { return hasManyUnits() && isDone(); };
  for (const placers::Placer &other : placers::allPlacers())
    if (model.numUnits <= other.candidateUpTo && other.name != options.placer &&
        (!isOver() || other.name == "single"))
      runPlacer(other, hasManyUnits() ? brief.get() : options.solver);
  if (isOver())
    return;
  considerPieces();
  considerLayers();
  if (coarse->numNodes < model.numNodes) {
    // Groups can hide a good split of a small graph.
    phase("metf:operators");
    placers::EarliestStart found = operatorsBeside.valid()
                                       ? operatorsBeside.get()
                                       : placers::earliestStart(model);
    contest.consider("metf:operators", std::move(found.device), {found.start});
  }
  // What a placer that does not fit would be answered with, asked for without
  // a search.
  if (anyUnfit)
    pack();
}

bool Session::open() {
  if (model.numNodes == 0) {
    result.placement = Placement{};
    result.usage = usage(problem, *result.placement);
    result.winner = options.placer;
    result.lowerBoundName = "no operators";
    return false;
  }
  if (memory::Infeasible proof = memory::proveInfeasible(problem, model);
      !proof.why.empty()) {
    result.error = "no placement can fit the memories: " + proof.why;
    result.errorOp = proof.op;
    if (explains) {
      Assignment closest;
      memory::packUnits(model, closest);
      memory::repair(model, closest);
      result.error += memory::explainMemory(problem, model, closest);
    }
    return false;
  }
  bound();
  return true;
}

/// Two things that a search of a large graph asks for take as long as all
/// placers together. Their results are the same wherever they are found.
void Session::beginBeside() {
  if (!isLarge() || options.budget.kind == Budget::Kind::None)
    return;
  if (!options.grouping.empty())
    operatorsBeside = beside([this] { return placers::earliestStart(model); });
  if (options.objective != Objective::MaxLoad)
    searchedBeside = beside(
        [this] { return std::make_unique<search::SearchModels>(model); });
}

bool Session::begin() {
  const placers::Placer &asked = *placers::placerNamed(options.placer);
  if (!asked.alone)
    beginBeside();
  group();
  runPlacer(asked, options.solver);
  if (boundBeside.valid())
    keepBound(boundBeside.get());
  if (!result.error.empty()) {
    phase("");
    return false;
  }
  if (asked.alone) {
    // What was asked for and nothing else.
    if (contest.hasWinner())
      accept();
    else if (asked.ignoresMemory)
      result.error = fmt::format("the placement of '{}' is not valid: {}",
                                 asked.name, result.candidates.back().problem);
    else
      result.error = noSingleDevice();
    phase("");
    return false;
  }
  if (options.budget.kind == Budget::Kind::None) {
    lastResort();
    finish();
    return false;
  }
  runOthers();
  return true;
}

bool Session::isDone() const {
  return isComplete || isImpossible || (allTried && !search::isSmall(model)) ||
         (contest.hasWinner() &&
          contest.leading().value <= result.lowerBoundNs);
}

/// So near the bound the search of a large graph takes seconds for nothing.
bool Session::isNearlyDone() const {
  constexpr int64_t part = 10'000;
  return hasManyUnits() && options.budget.kind == Budget::Kind::Automatic &&
         options.objective == Objective::Makespan && contest.hasWinner() &&
         contest.leading().value - result.lowerBoundNs <=
             result.lowerBoundNs / part;
}

void Session::takeOver(const std::string &name, const Session &weaker,
                       const std::vector<int32_t> &numberOf) {
  if (!weaker.contest.hasWinner())
    return;
  const Winner &theirs = weaker.contest.leading();
  if (theirs.value >= takenOver)
    return;
  takenOver = theirs.value;
  Placement placement = theirs.placement;
  renumber(placement, numberOf);
  contest.considerIfBest(name, placement.device, {placement.startNs},
                         /*mayRepair=*/false);
  Candidate candidate{name};
  contest.keep(candidate, std::move(placement), theirs.notes);
  result.candidates.push_back(std::move(candidate));
}

void Session::finish() {
  if (evaluations > 0 && searched)
    result.notes.push_back(
        fmt::format("search: {} evaluations on {} merged operators",
                    evaluations, searched->merged.model.numNodes));
  else if (evaluations > 0)
    result.notes.push_back(fmt::format("search: {} evaluations", evaluations));
  else if (options.budget.kind != Budget::Kind::None && isDone())
    result.notes.push_back("search: not needed, the lower bound is reached");
  if (orders + nodes > 0)
    result.notes.push_back(
        fmt::format("orders: {} evaluations, exact search: {} nodes{}", orders,
                    nodes, isComplete ? ", nothing is better" : ""));
  if (contest.hasWinner())
    accept();
  phase("");
}

void Session::accept() {
  phase("verify");
  Winner &best = contest.leading();
  if (options.inTurn)
    best.placement = memory::inTurn(model, best.placement);
  auto violations = verify(problem, best.placement, &result.usage);
  if (!violations.empty()) {
    result.error = "internal error: the placement that '" + best.name +
                   "' found is not valid: " + violations.front();
    return;
  }
  result.winner = best.name;
  result.notes.insert(result.notes.end(), best.notes.begin(), best.notes.end());
  result.maxLoadNs = maxLoad(model, best.placement);
  if (options.objective == Objective::Period) {
    Period period = PeriodReplay(model).run(best.placement);
    result.periodNs = period.ns();
    result.cycleNs = period.cycleNs;
    result.cycleSteps = period.cycle;
  }
  result.placement = std::move(best.placement);
}
