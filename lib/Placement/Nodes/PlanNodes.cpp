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
#include "Nodes/Proposals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::nodes;

namespace {

/// Operators and edges that are looked at, in all, for up to `usualDevices`:
/// seconds. For more, up to so many times as much.
constexpr int64_t proposalCost = 3'500'000, searchCost = 3'000'000;
constexpr int32_t usualDevices = 64, mostTimes = 4;
/// The search takes no smaller steps than this part of the whole.
constexpr int64_t smallStep = 10'000;
/// Where a machine is so small, all of it is searched as one, too.
constexpr int32_t fewDevices = 4;

class Planner {
public:
  Planner(const Problem &problem, const Alternatives &alternatives,
          const PlaceOptions &options, NodePlan &plan)
      : problem(problem), alternatives(alternatives), options(options),
        nodes(shapeOf(problem.machine)),
        hasBudget(options.budget.kind != Budget::Kind::None), plan(plan) {}

  void run() {
    phase("nodes");
    proposals = Proposer(problem, alternatives, hasBudget).run(settings, notes);
    std::stable_sort(
        proposals.begin(), proposals.end(),
        [](const Proposal &a, const Proposal &b) { return a.bound < b.bound; });
    for (Proposal &each : proposals) {
      if (each.bound >= best.ns)
        break;
      each.isSkipped = spent() > proposalCost * effort() || isCancelled();
      if (!each.isSkipped)
        consider(each);
    }
    if (hasBudget && best.setting)
      improve();
    plan.skipped = static_cast<int32_t>(
        std::count_if(proposals.begin(), proposals.end(), [&](auto &each) {
          return each.isSkipped && each.bound < best.ns;
        }));
    searchFlat();
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
    settings.push_back(std::make_unique<Setting>(problem, alternatives, shape));
    Proposal only;
    only.setting = settings.back().get();
    only.layout = {lanes, {}, only.setting->waysNamed(grid.way)};
    only.layout.cuts = narrowCuts(only.setting->loads(only.layout.ways, lanes),
                                  only.setting->chain.crossing, grid.stages);
    only.name = nameOf(only, grid.way.empty() ? "whole" : grid.way);
    consider(only);
    finish();
  }

private:
  void phase(const char *name) const {
    if (options.progress)
      options.progress(name);
  }
  bool isCancelled() const { return options.cancelled && options.cancelled(); }
  int64_t spent() const {
    int64_t cost = 0;
    for (const auto &setting : settings)
      cost += setting->cost;
    return cost;
  }

  int64_t effort() const {
    auto devices = static_cast<int32_t>(problem.machine.devices.size());
    return std::clamp(devices / usualDevices, 1, mostTimes);
  }

  /// True where it is better than all before.
  bool consider(Proposal &each, int64_t least = 1) {
    ++plan.looked;
    int64_t cutoff = best.ns == never ? never : best.ns - least;
    each.ns = each.setting->evaluate(each.layout, cutoff);
    if (each.ns == never)
      return false;
    plan.result.candidates.push_back({each.name, true, each.ns});
    best = each;
    return true;
  }

  /// Ways of like operators, and borders of stages, one after the other, as
  /// long as anything is better.
  void improve() {
    phase("search");
    const int64_t until = spent() + searchCost * effort();
    Setting &setting = *best.setting;
    // Operators that are alike in all but their place in the model.
    std::map<std::vector<int64_t>, std::vector<int32_t>> alike;
    for (size_t op = 0; op < setting.likes.size(); ++op) {
      if (setting.likes[op] == 0 || setting.replica.alternatives.of[op].empty())
        continue;
      const Operator &of = setting.replica.graph.ops[op];
      std::vector<int64_t> key = {of.backward, of.part.has_value(),
                                  of.exchange};
      for (const auto &[kind, ns] : of.timeNs)
        key.push_back(ns);
      for (const Output &output : of.outputs)
        key.push_back(output.bytes);
      for (const Alternative &way : setting.replica.alternatives.of[op])
        key.push_back(static_cast<int64_t>(way.pieces.size()));
      alike[key].push_back(static_cast<int32_t>(op));
    }
    for (bool better = true; better;) {
      better = false;
      for (const auto &[key, ops] : alike) {
        const auto &ways = setting.replica.alternatives.of[ops.front()];
        for (int32_t way = -1; way < std::ssize(ways); ++way) {
          if (spent() > until || isCancelled())
            return;
          if (way >= 0 && std::ssize(ways[way].pieces) > best.layout.lanes)
            continue;
          Proposal next = best;
          for (size_t op = 0; op < setting.likes.size(); ++op)
            if (std::binary_search(ops.begin(), ops.end(),
                                   setting.replica.first[op]))
              next.layout.ways[op] = way;
          better |= tryNext(next);
        }
      }
      for (size_t border = 1; border < best.layout.cuts.size(); ++border)
        for (int32_t step : {-1, 1}) {
          if (spent() > until || isCancelled())
            return;
          Proposal next = best;
          auto &cuts = next.layout.cuts;
          cuts[border] += step;
          int32_t end = border + 1 < cuts.size() ? cuts[border + 1]
                                                 : setting.chain.numLinks;
          if (cuts[border] <= cuts[border - 1] || cuts[border] >= end)
            continue;
          better |= tryNext(next);
        }
    }
  }

  bool tryNext(Proposal &next) {
    if (next.layout.ways == best.layout.ways &&
        next.layout.cuts == best.layout.cuts)
      return false;
    if (next.setting->lowerBound(next.layout) >= best.ns)
      return false;
    next.name = nameOf(next, "searched");
    return consider(next, std::max<int64_t>(1, best.ns / smallStep));
  }

  /// The first node alone, or all of a small machine, by the planner for
  /// devices in no order: for graphs without parts, and where it is quick.
  void searchFlat() {
    bool isSmall = std::ssize(problem.machine.devices) <= fewDevices;
    if (!hasBudget || isCancelled() ||
        (best.setting && numParts(problem.graph) > 0 && !isSmall))
      return;
    phase("devices");
    ReplicaShape shape{1, isSmall ? nodes.nodes * nodes.devicesPerNode
                                  : nodes.devicesPerNode};
    Problem flat{problem.graph, replicaMachine(problem.machine, shape)};
    CutPlan found = planCuts(flat, alternatives, options);
    ++plan.looked;
    if (!found.result.placement) {
      if (!best.setting)
        plan.result.error = found.result.error;
      return;
    }
    int64_t ns = found.result.placement->makespanNs;
    if (ns >= best.ns)
      return;
    found.result.candidates.insert(found.result.candidates.begin(),
                                   plan.result.candidates.begin(),
                                   plan.result.candidates.end());
    plan.shape = shape;
    plan.lanes = shape.devices;
    plan.stages = 1;
    plan.ways = std::move(found.ways);
    plan.problem = std::move(found.problem);
    plan.result = std::move(found.result);
    isFlat = true;
  }

  void finish() {
    for (const std::string &note : notes)
      plan.result.notes.push_back(note);
    if (plan.skipped > 0)
      plan.result.notes.push_back(
          fmt::format("{} more plans were not looked at", plan.skipped));
    if (isFlat)
      return;
    if (isCancelled()) {
      plan.result.error = cancelledError;
      return;
    }
    if (!best.setting) {
      if (plan.result.error.empty())
        plan.result.error = "no plan fits the devices' memories: give them "
                            "more, or state alternatives that hold less";
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

  /// All that must be computed, on all devices.
  void setBound() {
    const std::string &kind = problem.machine.devices.front().kind;
    __int128 sum = 0;
    for (size_t op = 0; op < problem.graph.ops.size(); ++op) {
      int64_t least = timeOn(problem.graph.ops[op], kind).value_or(0);
      for (const Alternative &way : alternatives.of[op]) {
        int64_t work = 0;
        for (const Piece &piece : way.pieces) {
          Operator of;
          of.timeNs = piece.timeNs;
          work += timeOn(of, kind).value_or(0);
        }
        least = std::min(least, work);
      }
      sum += least;
    }
    auto devices = static_cast<int64_t>(problem.machine.devices.size());
    plan.result.lowerBoundNs =
        static_cast<int64_t>((sum + devices - 1) / devices);
    plan.result.lowerBoundName = "work";
  }

  const Problem &problem;
  const Alternatives &alternatives;
  const PlaceOptions &options;
  NodeShape nodes;
  bool hasBudget;
  NodePlan &plan;
  std::vector<std::unique_ptr<Setting>> settings;
  std::vector<Proposal> proposals;
  Proposal best;
  std::set<std::string> notes;
  bool isFlat = false;
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
