//===- baechi-place.cpp - Places a graph file -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// baechi-place GRAPH MACHINE: finds a placement of a graph file on a machine
/// file, writes it, draws it, and says how good it is. See docs/placement.md.
///
//===----------------------------------------------------------------------===//

#include "FitMemory.h"
#include "Main.h"
#include "Options.h"
#include "Progress.h"

#include "Baechi/Placement/Cuts/PlanCuts.h"
#include "Baechi/Placement/Io/AlternativesFile.h"
#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Baechi/Placement/Nodes/PlanNodes.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Baechi/Report/Cuts.h"
#include "Baechi/Report/Draw.h"
#include "Baechi/Report/Nodes.h"
#include "Baechi/Report/Page.h"
#include "Baechi/Report/Report.h"
#ifdef BAECHI_HAVE_GLPK
#include "Baechi/Placement/Lp/Glpk.h"
#endif
#ifdef BAECHI_HAVE_SCOTCH
#include "Baechi/Placement/Placers/Scotch.h"
#endif

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

int fail(const std::string &message) {
  fmt::print(stderr, "baechi-place: error: {}\n", message);
  return 1;
}

PageSummary pageSummary(const Settings &settings, const PlaceOptions &options,
                        const PlaceResult &result) {
  PageSummary summary;
  summary.model = settings.graph;
  summary.machine = settings.machine;
  summary.placer = options.placer;
  summary.winner = result.winner;
  summary.objective = options.objective;
  summary.lowerBoundNs = result.lowerBoundNs;
  summary.lowerBoundName = result.lowerBoundName;
  summary.maxLoadNs = result.maxLoadNs;
  summary.periodNs = result.periodNs;
  summary.singleDeviceNs = result.singleDeviceNs;
  summary.notes = result.notes;
  return summary;
}

/// What the graph file says: a problem, and other ways to do its operators.
struct Input {
  Problem problem;
  Alternatives alternatives;
};

/// What was planned, whichever planner it was.
struct Found {
  CutPlan plan;
  std::optional<NodePlan> nodes; ///< but for what `plan` has
  std::optional<FitPlan> fit;    ///< but for what `plan` has
};

/// Writes the files that were asked for; returns an error, empty if none.
std::string writeFiles(const Settings &settings, const Input &input,
                       const PlaceOptions &options, const Found &found,
                       const Explanations &explanations) {
  const CutPlan &plan = found.plan;
  const Problem &problem = plan.problem;
  const PlaceResult &result = plan.result;
  std::string error;
  const Placement &placement = *result.placement;
  if (!settings.fittedGraph.empty())
    error = writeGraph(settings.fittedGraph, problem.graph);
  if (error.empty() && !settings.output.empty()) {
    bool ofMakespan = options.objective == Objective::Makespan;
    PlacementInfo info{result.winner, ofMakespan ? result.lowerBoundNs : 0,
                       namesOf(input.alternatives, plan.ways)};
    if (found.nodes) {
      info.replicas = found.nodes->shape.replicas;
      info.devices = found.nodes->shape.devices;
    }
    error = writePlacement(settings.output, problem, placement, info);
  }
  if (error.empty() && !settings.report.empty()) {
    std::string report =
        reportJson(problem, options, result, explanations.json);
    if (input.alternatives.any())
      report = cutsJson(report, input.problem.graph, input.alternatives, plan);
    if (found.nodes)
      report = nodesJson(report, *found.nodes);
    if (found.fit)
      report = fitJson(report, *found.fit);
    error = writeTextFile(settings.report, report);
  }
  if (error.empty() && !settings.timeline.empty())
    error =
        writeTextFile(settings.timeline, formatTimeline(problem, placement));
  if (error.empty() && !settings.dot.empty()) {
    std::string note;
    error =
        writeTextFile(settings.dot, formatDot(problem, placement, {}, &note));
    if (error.empty() && !note.empty())
      fmt::print("note: {}: {}\n", settings.dot, note);
  }
  if (error.empty() && !settings.html.empty())
    error = writeTextFile(
        settings.html,
        formatPage(problem, placement, pageSummary(settings, options, result)));
  return error;
}

/// The placement that is given, of the graph in the ways that it names.
std::string readGiven(const Settings &settings, const Input &input,
                      PlaceOptions &options, Found &found) {
  CutPlan &plan = found.plan;
  plan.problem = input.problem;
  if (auto errors = check(input.problem); !errors.empty())
    return fmt::format("{}", fmt::join(errors, "\n"));
  if (std::string error = readWays(settings.given, input.problem.graph,
                                   input.alternatives, plan.ways);
      !error.empty())
    return error;
  PlacementInfo shared;
  if (std::string error = readReplicas(settings.given, shared); !error.empty())
    return error;
  if (shared.devices > 0 && !input.problem.machine.nodes)
    return fmt::format("{} is of a machine of nodes, and {} is none",
                       settings.given, settings.machine);
  if (shared.devices > 0) {
    found.nodes.emplace().shape = {shared.replicas, shared.devices};
    if (std::string error =
            replicaProblem(input.problem, input.alternatives, plan.ways,
                           found.nodes->shape, plan.problem);
        !error.empty())
      return fmt::format("{}: {}", settings.given, error);
  } else if (input.alternatives.any()) {
    Expansion expansion;
    if (std::string error = expand(input.problem.graph, input.alternatives,
                                   plan.ways, expansion);
        !error.empty())
      return error;
    plan.problem.graph = std::move(expansion.graph);
  }
  Placement placement;
  PlacementInfo info;
  if (std::string error =
          readPlacement(settings.given, plan.problem, placement, &info);
      !error.empty())
    return error;
  plan.result = judge(plan.problem, placement, options);
  if (!plan.result.placement)
    return fmt::format("{} is not valid:\n{}", settings.given,
                       plan.result.error);
  options.placer = "given";
  if (!info.algorithm.empty())
    plan.result.winner = info.algorithm;
  return "";
}

/// On a machine of nodes.
std::string findNodes(const Settings &settings, const Input &input,
                      PlaceOptions &options, Found &found) {
  Grid grid;
  if (!settings.grid.empty())
    if (std::string error = parseGrid(settings.grid, grid); !error.empty())
      return "--grid: " + error;
  NodePlan &nodes = found.nodes.emplace(
      settings.grid.empty()
          ? planNodes(input.problem, input.alternatives, options)
          : placeGrid(input.problem, input.alternatives, grid));
  found.plan.ways = nodes.ways;
  found.plan.problem = nodes.problem;
  found.plan.result = nodes.result;
  found.plan.proposed = nodes.looked;
  return nodes.result.error;
}

/// Of a graph that does not fit as it is.
std::string fitMemory(const Settings &settings, const Input &input,
                      const PlaceOptions &options, Found &found) {
  CutPlan &plan = found.plan;
  std::vector<int32_t> sums;
  if (std::string error = findSums(settings, input.problem.graph, sums);
      !error.empty())
    return error;
  FitPlan fit = fitPlacement(input.problem, options, sums);
  if (fit.result.error == cancelledError)
    return cancelledError;
  if (!fit.result.placement)
    return plan.result.error + "\n--fit-memory=auto: " + fit.result.error;
  plan.problem = fit.problem;
  plan.result = fit.result;
  found.fit = std::move(fit);
  return "";
}

/// Finds a placement, or reads the one that is given.
std::string findPlacement(const Settings &settings, const Input &input,
                          PlaceOptions &options, Found &found) {
  CutPlan &plan = found.plan;
  Progress progress;
  options.progress = [&](const std::string &phase) { progress.show(phase); };
  if (!settings.given.empty())
    return readGiven(settings, input, options, found);
  bool isPlanned =
      settings.alternatives == "auto" || settings.alternatives == "none";
  if (!settings.grid.empty() && !input.problem.machine.nodes)
    return "--grid is of machines of nodes: state \"nodes\" in the machine "
           "file";
  // Other placers know devices alone.
  if (input.problem.machine.nodes && isPlanned &&
      settings.placer == PlaceOptions().placer)
    return findNodes(settings, input, options, found);
  if (settings.alternatives == "auto" || settings.alternatives == "none") {
    plan = planCuts(input.problem, input.alternatives, options);
    if (plan.result.placement || plan.result.error == cancelledError)
      return plan.result.error;
    std::string advice =
        input.alternatives.any() ? "" : adviseFit(input.problem, options);
    if (settings.fitMemory == "auto" && !advice.empty())
      return fitMemory(settings, input, options, found);
    return plan.result.error + advice;
  }
  Ways ways;
  if (std::string error = readWays(settings.alternatives, input.problem.graph,
                                   input.alternatives, ways);
      !error.empty())
    return "--alternatives: " + error;
  plan = placeWays(input.problem, input.alternatives, ways, options);
  return plan.result.error;
}

/// One placement, and what was asked for about it.
std::string placeOne(const Settings &settings, const Input &input,
                     PlaceOptions &options) {
  std::vector<int32_t> ops;
  Found found;
  CutPlan &plan = found.plan;
  // Names of the graph as it is are looked up before a long search.
  if (!input.alternatives.any())
    for (const std::string &pattern : settings.explain)
      if (std::string error = findOperators(input.problem.graph, pattern, ops);
          !error.empty())
        return "--explain: " + error;
  if (std::string error = findPlacement(settings, input, options, found);
      !error.empty())
    return error;
  for (const std::string &pattern : settings.explain)
    if (std::string error = findOperators(plan.problem.graph, pattern, ops);
        !error.empty())
      return "--explain: " + error;
  Explanations explanations;
  if (!settings.explain.empty())
    explanations = explainAll(plan.problem, *plan.result.placement,
                              options.objective, settings.explain);
  if (std::string error =
          writeFiles(settings, input, options, found, explanations);
      !error.empty())
    return error;
  fmt::print("{}", reportText(plan.problem, options, plan.result));
  if (found.nodes && settings.given.empty())
    fmt::print("\n{}",
               nodesText(input.problem, input.alternatives, *found.nodes));
  else if (input.alternatives.any())
    fmt::print("\n{}", cutsText(input.problem.graph, input.alternatives, plan,
                                options.objective));
  if (found.fit)
    fmt::print("\n{}", fitText(*found.fit));
  if (!explanations.text.empty())
    fmt::print("\n{}", explanations.text);
  return "";
}

/// All placers, or those that were asked for.
std::string comparePlacers(const Settings &settings, const Problem &problem,
                           PlaceOptions &options) {
  Comparison comparison;
  {
    Progress progress;
    options.progress = [&](const std::string &phase) { progress.show(phase); };
    comparison = compare(problem, options, settings.placers);
  }
  if (!comparison.error.empty())
    return comparison.error;
  if (!settings.report.empty())
    if (std::string error =
            writeTextFile(settings.report, comparisonJson(problem, comparison));
        !error.empty())
      return error;
  fmt::print("{}", comparisonText(problem, comparison));
  return comparison.best < 0 ? "none of them found a valid placement" : "";
}

/// The graph on other machines.
std::string sweepMachines(const Settings &settings, const Problem &problem,
                          PlaceOptions &options) {
  SweepOptions sweepOptions;
  Sweep found;
  {
    Progress progress;
    options.progress = [&](const std::string &phase) { progress.show(phase); };
    if (std::string error = toSweepOptions(settings, options, sweepOptions);
        !error.empty())
      return error;
    found = sweep(problem, sweepOptions);
  }
  if (!found.error.empty())
    return found.error;
  if (!settings.report.empty())
    if (std::string error = writeTextFile(settings.report, sweepJson(found));
        !error.empty())
      return error;
  fmt::print("{}", sweepText(found));
  return "";
}

/// The step of one device over its memory.
std::string sweepFits(const Settings &settings, const Problem &problem,
                      PlaceOptions &options) {
  FitSweepOptions fitOptions;
  FitSweep found;
  {
    Progress progress;
    options.progress = [&](const std::string &phase) { progress.show(phase); };
    if (std::string error =
            toFitSweepOptions(settings, problem.graph, options, fitOptions);
        !error.empty())
      return error;
    found = fitSweep(problem, fitOptions);
  }
  if (!found.error.empty())
    return found.error;
  if (!settings.report.empty())
    if (std::string error = writeTextFile(settings.report, fitSweepJson(found));
        !error.empty())
      return error;
  fmt::print("{}", fitSweepText(found));
  return "";
}

int run(const Settings &settings) {
  PlaceOptions options;
  if (std::string error = toPlaceOptions(settings, options); !error.empty())
    return fail(error);
  if (std::string error = checkOutputs(settings); !error.empty())
    return fail(error);
  std::unique_ptr<LpSolver> solver;
  if (settings.solver == "greedy")
    solver = createGreedySolver();
#ifdef BAECHI_HAVE_GLPK
  if (settings.solver == "glpk")
    solver = createGlpkSolver();
#else
  if (settings.solver == "glpk")
    return fail("--solver=glpk: GLPK is not built in; use native, or configure "
                "with BAECHI_ENABLE_GLPK");
#endif
  options.solver = solver.get();
#ifdef BAECHI_HAVE_SCOTCH
  std::unique_ptr<Partitioner> scotch = createScotchPartitioner();
  options.partitioner = scotch.get();
#endif
  Input input;
  Problem &problem = input.problem;
  if (std::string error =
          readAlternatives(settings.graph, problem.graph, input.alternatives);
      !error.empty())
    return fail(error);
  if (std::string error = readMachineSpec(settings.machine, problem.machine);
      !error.empty())
    return fail(error);
  if (settings.grouping == "all")
    options.grouping = usualGrouping(problem.graph, options);
  if (!settings.expert.empty())
    if (std::string error =
            readExpert(settings.expert, problem.machine, options.expert);
        !error.empty())
      return fail(error);
  if (input.alternatives.any()) {
    if (auto errors = checkAlternatives(problem.graph, input.alternatives);
        !errors.empty())
      return fail(
          fmt::format("{}: {}", settings.graph, fmt::join(errors, "\n")));
    if (settings.alternatives == "none")
      for (auto &of : input.alternatives.of)
        of.clear();
    else if (settings.compare || settings.sweep || !settings.sweepFit.empty() ||
             settings.fitMemory == "auto")
      return fail("--compare, --sweep, --sweep-fit and --fit-memory place "
                  "operators as they are, and the graph states alternatives: "
                  "give --alternatives=none, too");
  }
  std::string error =
      settings.compare             ? comparePlacers(settings, problem, options)
      : settings.sweep             ? sweepMachines(settings, problem, options)
      : !settings.sweepFit.empty() ? sweepFits(settings, problem, options)
                                   : placeOne(settings, input, options);
  return error.empty() ? 0 : fail(error);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Places a graph of operators on the devices of a machine.",
               "baechi-place");
  Settings settings;
  defineOptions(app, settings);
  return baechi::runTool(app, argc, argv, [&] { return run(settings); }, fail);
}
