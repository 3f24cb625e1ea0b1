//===- PlanNodes.cpp - Plans for machines of nodes --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Two levels, as Alpa has them (Zheng et al., OSDI 2022): ways of operators
/// inside a stage by a pairwise program, contiguous stages across. Unlike there
/// all grids are among the proposals, the evaluator decides, and a local search
/// goes on from the best: ways of like operators, and borders of stages.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Nodes/PlanNodes.h"
#include "Baechi/Placement/Cuts/PlanCuts.h"
#include "Baechi/Placement/Model/Nodes.h"
#include "Baechi/Support/Numbers.h"
#include "Nodes/Reach.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

using namespace baechi;
using namespace baechi::placement;
using namespace baechi::placement::nodes;

namespace {

/// So few devices are searched as one, too, if they take longer by no more than
/// this part.
constexpr int32_t fewDevices = 4, nearly = 8;

class Planner {
public:
  Planner(const Problem &problem, const Alternatives &alternatives,
          const PlaceOptions &options, NodePlan &plan)
      : problem(problem), alternatives(alternatives), options(options),
        nodes(shapeOf(problem.machine)),
        hasBudget(options.budget.kind != Budget::Kind::None), plan(plan),
        proposer(problem, alternatives, hasBudget) {}

  void run() {
    phase("nodes");
    const auto all = static_cast<int32_t>(problem.machine.devices.size());
    // Fewer devices together may cost as much again as all.
    int64_t left = costOfProposals(all) + costOfSearch(all);
    for (int32_t devices : reachesOf(nodes)) {
      // On fewer it takes longer still.
      if (workOn(devices) >= bestNs() || isCancelled())
        break;
      Reach &reach = *reaches.emplace_back(
          std::make_unique<Reach>(proposer, devices, options));
      const int64_t before = proposer.spent();
      reach.propose(devices == all ? never : left, notes);
      if (devices != all)
        left = std::max<int64_t>(left - (proposer.spent() - before), 0);
      keep(reach);
    }
    if (hasBudget) {
      search(left + costOfSearch(all));
      searchFlat();
    }
    plan.skipped = proposer.numSkipped(bestNs());
    finish();
  }

  void runGrid(const Grid &grid) {
    int32_t lanes = 0;
    for (const auto &of : alternatives.of)
      for (const Alternative &way : of)
        if (way.name == grid.way)
          lanes = std::max(lanes, static_cast<int32_t>(way.pieces.size()));
    if (grid.way.empty())
      lanes = 1;
    if (lanes == 0) {
      plan.result.error =
          fmt::format("no operator has an alternative '{}'", grid.way);
      return;
    }
    ReplicaShape shape{grid.replicas, lanes * grid.stages};
    plan.result.error = whyNoReplicas(problem, alternatives, shape);
    if (plan.result.error.empty() && nodes.devicesPerNode % lanes != 0)
      plan.result.error =
          fmt::format("stages of {} devices do not share nodes of {} evenly",
                      lanes, nodes.devicesPerNode);
    if (!plan.result.error.empty())
      return;
    Setting setting(problem, alternatives, shape);
    Proposal only;
    only.setting = &setting;
    only.layout = {lanes, {}, only.setting->waysNamed(grid.way)};
    only.layout.cuts = narrowCuts(only.setting->loads(only.layout.ways, lanes),
                                  only.setting->chain.crossing, grid.stages);
    only.name = nameOf(only, grid.way.empty() ? "whole" : grid.way);
    Reach &reach = *reaches.emplace_back(
        std::make_unique<Reach>(proposer, shape.devices, options));
    reach.consider(only);
    keep(reach);
    finish();
  }

private:
  void phase(const char *name) const {
    if (options.progress)
      options.progress(name);
  }
  bool isCancelled() const { return options.cancelled && options.cancelled(); }
  int64_t bestNs() const {
    return flat ? flat->result.placement->makespanNs : best.ns;
  }

  /// Those that begin best first.
  void search(int64_t left) {
    std::vector<Reach *> order;
    for (const auto &reach : reaches)
      if (reach->start)
        order.push_back(reach.get());
    std::stable_sort(
        order.begin(), order.end(),
        [](const Reach *a, const Reach *b) { return a->best.ns < b->best.ns; });
    std::set<const Proposal *> starts;
    for (Reach *reach : order) {
      if (isCancelled() || workOn(reach->devices) >= bestNs() ||
          !starts.insert(reach->start).second)
        continue;
      const int64_t before = proposer.spent();
      reach->search(left);
      left = std::max<int64_t>(left - (proposer.spent() - before), 0);
      keep(*reach);
    }
  }

  /// The best of a reach, where it is better than all before.
  void keep(const Reach &reach) {
    if (reach.best.ns >= bestNs())
      return;
    for (const Candidate &each : reach.candidates)
      if (each.makespanNs < bestNs())
        plan.result.candidates.push_back(each);
    best = reach.best;
    flat.reset();
  }

  /// The planner for devices in no order: for graphs without parts on the first
  /// node, and where so few devices are nearly as good as more.
  void searchFlat() {
    bool isNode = !best.setting || numParts(problem.graph) == 0;
    for (const auto &reach : reaches) {
      bool isFew = reach->devices <= fewDevices &&
                   reach->best.ns - bestNs() <= bestNs() / nearly;
      if (isFew || (isNode && reach->devices == nodes.devicesPerNode))
        searchFlat(reach->devices);
    }
  }

  void searchFlat(int32_t devices) {
    if (isCancelled() || devices < devicesOfPins(problem) ||
        workOn(devices) >= bestNs())
      return;
    phase("devices");
    ReplicaShape shape{1, devices};
    Problem part{problem.graph, replicaMachine(problem.machine, shape)};
    CutPlan found = planCuts(part, alternatives, options);
    ++plan.looked;
    if (!found.result.placement) {
      // What it says of fewer devices is not true of the machine.
      if (!best.setting && devices == std::ssize(problem.machine.devices))
        plan.result.error = found.result.error;
      return;
    }
    if (found.result.placement->makespanNs >= bestNs())
      return;
    plan.shape = shape;
    flat = std::move(found);
  }

  void finish() {
    bool isCutShort = false;
    for (const auto &reach : reaches) {
      plan.looked += reach->looked;
      isCutShort |= reach->isCutShort;
    }
    for (const std::string &note : notes)
      plan.result.notes.push_back(note);
    if (isCutShort)
      plan.result.notes.push_back(
          "fewer devices were searched less than on a machine of so many");
    if (plan.skipped > 0)
      plan.result.notes.push_back(
          fmt::format("{} more plans were not looked at", plan.skipped));
    if (isCancelled()) {
      plan.result.error = cancelledError;
      return;
    }
    if (flat) {
      finishFlat();
      return;
    }
    if (!best.setting) {
      if (plan.result.error.empty())
        plan.result.error = whyNothingFits();
      return;
    }
    Outcome outcome;
    best.setting->evaluate(best.layout, never, &outcome);
    plan.shape = best.setting->shape;
    plan.lanes = best.layout.lanes;
    plan.stages = static_cast<int32_t>(best.layout.cuts.size());
    plan.ways.assign(problem.graph.ops.size(), -1);
    for (size_t op = 0; op < best.layout.ways.size(); ++op)
      plan.ways[best.setting->replica.original[op]] = best.layout.ways[op];
    Model model(outcome.problem);
    plan.result.maxLoadNs = maxLoad(model, outcome.device);
    plan.result.placement =
        toPlacement(model, outcome.device, outcome.schedule);
    plan.problem = std::move(outcome.problem);
    plan.result.winner = best.name;
    plan.result.operatorsBefore =
        static_cast<int32_t>(problem.graph.ops.size());
    plan.result.operatorsAfter =
        static_cast<int32_t>(plan.problem.graph.ops.size());
    setBound();
    if (auto errors =
            verify(plan.problem, *plan.result.placement, &plan.result.usage);
        !errors.empty()) {
      plan.result.placement.reset();
      plan.result.error =
          fmt::format("internal error: the plan is not valid: {}", errors[0]);
    }
  }

  /// What is held at the least, and what needs most.
  std::string whyNothingFits() const {
    int64_t held = 0, most = 0;
    size_t neediest = 0;
    for (size_t op = 0; op < problem.graph.ops.size(); ++op) {
      const Operator &of = problem.graph.ops[op];
      int64_t resident = of.resident, needs = of.resident + of.scratch;
      for (const Alternative &way : alternatives.of[op]) {
        int64_t pieces = 0, piece = 0;
        for (const Piece &each : way.pieces) {
          pieces += each.resident;
          piece = std::max(piece, each.resident + each.scratch);
        }
        resident = std::min(resident, pieces);
        needs = std::min(needs, piece);
      }
      held += resident;
      if (needs > most) {
        most = needs;
        neediest = op;
      }
    }
    std::string text = fmt::format(
        "no plan was found that fits {} devices of {} each: operators hold {} "
        "throughout a step in all, in the ways that hold the least",
        problem.machine.devices.size(),
        support::bytesText(
            static_cast<double>(problem.machine.devices.front().memory), 2),
        support::bytesTextUp(static_cast<double>(held), 2));
    if (most > 0)
      text += fmt::format(
          ", and operator {} '{}' needs {} on one device, in its way that "
          "needs the least",
          neediest, problem.graph.ops[neediest].name,
          support::bytesTextUp(static_cast<double>(most), 2));
    return text + ", beside what they pass on; give devices more memory, or "
                  "state alternatives that hold less";
  }

  void finishFlat() {
    flat->result.candidates.insert(flat->result.candidates.begin(),
                                   plan.result.candidates.begin(),
                                   plan.result.candidates.end());
    flat->result.notes.insert(flat->result.notes.end(),
                              plan.result.notes.begin(),
                              plan.result.notes.end());
    plan.lanes = plan.shape.devices;
    plan.stages = 1;
    plan.ways = std::move(flat->ways);
    plan.problem = std::move(flat->problem);
    plan.result = std::move(flat->result);
    // Its own bound is of no more devices than it uses.
    if (plan.shape.devices < std::ssize(problem.machine.devices))
      setBound();
  }

  void setBound() {
    auto devices = static_cast<int32_t>(problem.machine.devices.size());
    plan.result.lowerBoundNs = workOn(devices);
    plan.result.lowerBoundName = "work";
  }

  /// No plan on so many devices is shorter: all that must be computed.
  int64_t workOn(int32_t devices) {
    if (work < 0)
      work = sumOfWork();
    return static_cast<int64_t>((work + devices - 1) / devices);
  }

  __int128 sumOfWork() const {
    const std::string &kind = problem.machine.devices.front().kind;
    __int128 sum = 0;
    for (size_t op = 0; op < problem.graph.ops.size(); ++op) {
      int64_t least = timeOn(problem.graph.ops[op], kind).value_or(0);
      for (const Alternative &way : alternatives.of[op]) {
        int64_t pieces = 0;
        for (const Piece &piece : way.pieces) {
          Operator of;
          of.timeNs = piece.timeNs;
          pieces += timeOn(of, kind).value_or(0);
        }
        least = std::min(least, pieces);
      }
      sum += least;
    }
    return sum;
  }

  const Problem &problem;
  const Alternatives &alternatives;
  const PlaceOptions &options;
  NodeShape nodes;
  bool hasBudget;
  NodePlan &plan;
  Proposer proposer;
  Proposal best;
  std::optional<CutPlan> flat; ///< where it is better than `best`
  std::set<std::string> notes;
  std::vector<std::unique_ptr<Reach>> reaches;
  __int128 work = -1;
};

/// What is wrong with the input, in one text.
std::string wrong(const Problem &problem, const Alternatives &alternatives) {
  auto errors = check(problem);
  if (errors.empty())
    errors = checkAlternatives(problem.graph, alternatives);
  return fmt::format("{}", fmt::join(errors, "\n"));
}

} // namespace

NodePlan baechi::placement::planNodes(const Problem &problem,
                                      const Alternatives &alternatives,
                                      const PlaceOptions &options) {
  NodePlan plan;
  plan.result.error = wrong(problem, alternatives);
  if (plan.result.error.empty() && options.objective != Objective::Makespan)
    plan.result.error = place(problem, options).error;
  if (plan.result.error.empty())
    Planner(problem, alternatives, options, plan).run();
  return plan;
}

NodePlan baechi::placement::placeGrid(const Problem &problem,
                                      const Alternatives &alternatives,
                                      const Grid &grid) {
  NodePlan plan;
  PlaceOptions options;
  plan.result.error = wrong(problem, alternatives);
  if (plan.result.error.empty())
    Planner(problem, alternatives, options, plan).runGrid(grid);
  return plan;
}
