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
/// file, writes it, and says how good it is. See docs/placement.md.
///
//===----------------------------------------------------------------------===//

#include "Progress.h"
#include "Report.h"

#include "Baechi/Placement/Io.h"
#include "Baechi/Placement/Place.h"
#ifdef BAECHI_HAVE_GLPK
#include "Baechi/Placement/Glpk.h"
#endif

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace baechi::placement;

namespace {

struct Settings {
  std::string graph, machine, placer = "msct", output, grouping = "all", report;
  std::string objective = "makespan", solver = "best";
  std::string budget = "auto";
  double solverLimit = 40;
};

int fail(const std::string &message) {
  fmt::print(stderr, "baechi-place: error: {}\n", message);
  return 1;
}

void define(CLI::App &app, Settings &s) {
  app.add_option("GRAPH", s.graph, "graph file (.json or .json.xz)")
      ->required();
  app.add_option("MACHINE", s.machine, "machine file")->required();
  app.add_option("--placer", s.placer,
                 fmt::format("{}", fmt::join(placerNames(), ", ")))
      ->capture_default_str();
  app.add_option("-o,--output", s.output, "placement file to write");
  app.add_option("--group", s.grouping,
                 fmt::format("none, all ({}), or a list of {}",
                             fmt::join(PlaceOptions().grouping, ","),
                             fmt::join(groupingNames(), ",")))
      ->capture_default_str();
  app.add_option(
         "--budget", s.budget,
         "improvement over the placer: auto (about a second at most), 0 "
         "(the placer's pure result), seconds (30, 0.5s) or evaluations "
         "(5000e)")
      ->capture_default_str();
  app.add_option("--objective", s.objective, "makespan or max-load")
      ->capture_default_str();
  app.add_option("--report", s.report, "report file (JSON) to write");
  app.add_option("--solver-limit", s.solverLimit,
                 "seconds for m-SCT's linear program")
      ->capture_default_str();
  app.add_option("--solver", s.solver,
                 "best: a linear program's where one is built in; greedy")
      ->capture_default_str();
}

/// Turns the settings into options; returns an error, empty if none.
std::string toOptions(const Settings &s, PlaceOptions &options) {
  options.placer = s.placer;
  const auto &groupings = groupingNames();
  if (s.grouping == "none") {
    options.grouping.clear();
  } else if (s.grouping == "all") {
    options.grouping = PlaceOptions().grouping;
  } else {
    options.grouping.clear();
    for (const std::string &step : CLI::detail::split(s.grouping, ',')) {
      if (std::find(groupings.begin(), groupings.end(), step) ==
          groupings.end())
        return fmt::format("--group: unknown step '{}': use none, all, or a "
                           "list of {}",
                           step, fmt::join(groupings, ","));
      options.grouping.push_back(step);
    }
  }
  if (s.objective == "max-load")
    options.objective = Objective::MaxLoad;
  else if (s.objective != "makespan")
    return fmt::format("--objective: unknown objective '{}': use makespan or "
                       "max-load",
                       s.objective);
  if (std::string error = parseBudget(s.budget, options.budget); !error.empty())
    return "--budget: " + error;
  if (!std::isfinite(s.solverLimit) || s.solverLimit <= 0)
    return "--solver-limit: must be more than 0 seconds";
  if (s.solver != "best" && s.solver != "greedy")
    return fmt::format("--solver: unknown solver '{}': use best or greedy",
                       s.solver);
  options.solverSeconds = s.solverLimit;
  return "";
}

int placeFiles(const Settings &settings) {
  PlaceOptions options;
  if (std::string error = toOptions(settings, options); !error.empty())
    return fail(error);
#ifdef BAECHI_HAVE_GLPK
  std::unique_ptr<LpSolver> glpk = createGlpkSolver();
  if (settings.solver == "best")
    options.solver = glpk.get();
#endif
  Problem problem;
  if (std::string error = readGraph(settings.graph, problem.graph);
      !error.empty())
    return fail(error);
  if (std::string error = readMachine(settings.machine, problem.machine);
      !error.empty())
    return fail(error);
  PlaceResult result;
  {
    Progress progress;
    options.progress = [&](const std::string &phase) { progress.show(phase); };
    result = place(problem, options);
  }
  if (!result.placement)
    return fail(result.error);
  if (!settings.output.empty())
    if (std::string error = writePlacement(
            settings.output, problem, *result.placement,
            {result.winner, options.objective == Objective::Makespan
                                ? result.lowerBoundNs
                                : 0});
        !error.empty())
      return fail(error);
  if (!settings.report.empty())
    if (std::string error = writeTextFile(settings.report,
                                          reportJson(problem, options, result));
        !error.empty())
      return fail(error);
  fmt::print("{}", reportText(problem, options, result));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Places a graph of operators on the devices of a machine.",
               "baechi-place");
  Settings settings;
  define(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    return app.exit(e);
  } catch (const CLI::ParseError &e) {
    return fail(fmt::format("{} (see --help)", e.what()));
  }
  try {
    return placeFiles(settings);
  } catch (const std::exception &e) {
    return fail(e.what());
  }
}
