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

#include "Options.h"
#include "Progress.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Placement/Study/Judge.h"
#include "Baechi/Report/Draw.h"
#include "Baechi/Report/Page.h"
#include "Baechi/Report/Report.h"
#ifdef BAECHI_HAVE_GLPK
#include "Baechi/Placement/Lp/Glpk.h"
#endif
#ifdef BAECHI_HAVE_SCOTCH
#include "Baechi/Placement/Placers/Scotch.h"
#endif

#include <CLI/CLI.hpp>
#include <fmt/format.h>

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
  summary.singleDeviceNs = result.singleDeviceNs;
  summary.notes = result.notes;
  return summary;
}

/// Writes the files that were asked for; returns an error, empty if none.
std::string writeFiles(const Settings &settings, const Problem &problem,
                       const PlaceOptions &options, const PlaceResult &result,
                       const Explanations &explanations) {
  std::string error;
  const Placement &placement = *result.placement;
  if (!settings.output.empty()) {
    bool ofMakespan = options.objective == Objective::Makespan;
    error =
        writePlacement(settings.output, problem, placement,
                       {result.winner, ofMakespan ? result.lowerBoundNs : 0});
  }
  if (error.empty() && !settings.report.empty())
    error = writeTextFile(settings.report, reportJson(problem, options, result,
                                                      explanations.json));
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

/// Finds a placement, or reads the one that is given.
std::string findPlacement(const Settings &settings, const Problem &problem,
                          PlaceOptions &options, PlaceResult &result) {
  Progress progress;
  options.progress = [&](const std::string &phase) { progress.show(phase); };
  if (settings.given.empty()) {
    result = place(problem, options);
    return result.error;
  }
  Placement placement;
  PlacementInfo info;
  if (std::string error =
          readPlacement(settings.given, problem, placement, &info);
      !error.empty())
    return error;
  result = judge(problem, placement, options);
  if (!result.placement)
    return fmt::format("{} is not valid:\n{}", settings.given, result.error);
  options.placer = "given";
  if (!info.algorithm.empty())
    result.winner = info.algorithm;
  return "";
}

/// One placement, and what was asked for about it.
std::string placeOne(const Settings &settings, const Problem &problem,
                     PlaceOptions &options) {
  std::vector<int32_t> ops;
  for (const std::string &pattern : settings.explain)
    if (std::string error = findOperators(problem.graph, pattern, ops);
        !error.empty())
      return "--explain: " + error;
  PlaceResult result;
  if (std::string error = findPlacement(settings, problem, options, result);
      !error.empty())
    return error;
  Explanations explanations;
  if (!settings.explain.empty())
    explanations = explainAll(problem, *result.placement, options.objective,
                              settings.explain);
  if (std::string error =
          writeFiles(settings, problem, options, result, explanations);
      !error.empty())
    return error;
  fmt::print("{}", reportText(problem, options, result));
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
  Problem problem;
  if (std::string error = readGraph(settings.graph, problem.graph);
      !error.empty())
    return fail(error);
  if (std::string error = readMachineSpec(settings.machine, problem.machine);
      !error.empty())
    return fail(error);
  if (!settings.expert.empty())
    if (std::string error =
            readExpert(settings.expert, problem.machine, options.expert);
        !error.empty())
      return fail(error);
  std::string error =
      settings.compare ? comparePlacers(settings, problem, options)
      : settings.sweep ? sweepMachines(settings, problem, options)
                       : placeOne(settings, problem, options);
  return error.empty() ? 0 : fail(error);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Places a graph of operators on the devices of a machine.",
               "baechi-place");
  Settings settings;
  defineOptions(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    return app.exit(e);
  } catch (const CLI::ParseError &e) {
    return fail(fmt::format("{} (see --help)", e.what()));
  }
  try {
    return run(settings);
  } catch (const std::exception &e) {
    return fail(e.what());
  }
}
