//===- Options.cpp - Command line of baechi-place ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Baechi/Placement/Study/Explain.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace baechi::placement;

/// Shares of the peak of the order in the file.
static const char usualFits[] = "100%,80%,60%,50%,40%,30%,25%,20%";

/// A word of before, still taken: one word is for one thing in all tools.
static CLI::Option *addFormer(CLI::App &app, const std::string &word,
                              const std::string &now, std::string &value) {
  return app
      .add_option_function<std::string>(
          word,
          [word, now, &value](const std::string &given) {
            fmt::print(stderr, "baechi-place: note: {} is now {}\n", word, now);
            value = given;
          })
      ->group("");
}

void defineOptions(CLI::App &app, Settings &s) {
  app.set_version_flag("--version", "Baechi " BAECHI_VERSION,
                       "the version, and nothing else");
  app.add_option("GRAPH", s.graph, "graph file (.json or .json.xz)")
      ->required();
  app.add_option("MACHINE", s.machine,
                 "machine file, or KIND:N[@SIZE] (host:2)")
      ->required();
  app.add_option("--placer", s.placer,
                 fmt::format("{}", fmt::join(placerNames(), ", ")))
      ->capture_default_str();
  app.add_option("--grouping", s.grouping,
                 fmt::format("none, all ({}; metf and msct with --budget=0: "
                             "forward,colocate,multilevel,fuse), or a list of "
                             "{}",
                             fmt::join(PlaceOptions().grouping, ","),
                             fmt::join(groupingNames(), ",")))
      ->capture_default_str();
  app.add_option(
         "--budget", s.budget,
         "improvement over the placer: auto (about a second at most), 0 "
         "(the placer's pure result), seconds (30, 0.5s) or evaluations "
         "(5000e)")
      ->capture_default_str();
  app.add_option("--seed", s.seed, "of the search's random numbers")
      ->check(CLI::Range(uint64_t(0), uint64_t(1) << 62, "number"))
      ->capture_default_str();
  app.add_option("--objective", s.objective,
                 "makespan, max-load or period (of steps "
                 "that overlap)")
      ->capture_default_str();
  app.add_option("--solver", s.solver,
                 "of m-SCT's linear program: native; glpk, where it is built "
                 "in; greedy, a rule instead")
      ->capture_default_str();
  app.add_option("--solver-limit", s.solverLimit, "seconds for --solver=glpk")
      ->capture_default_str();
  app.add_option("--expert", s.expert,
                 "expert file (name patterns -> devices) for --placer=expert");
  app.add_option("--alternatives", s.alternatives,
                 "ways to do operators that the graph states: auto (those that "
                 "save time), none (operators as they are), or the placement "
                 "file whose choices are taken")
      ->capture_default_str();
  // What there is of one placement only.
  std::vector<CLI::Option *> ofOne;
  ofOne.push_back(app.add_option(
      "--placement", s.given,
      "placement file to judge and draw instead of finding one"));
  ofOne.push_back(
      app.add_option("-o,--output", s.output, "placement file to write"));
  app.add_option("--json", s.report, "the report as a JSON file")
      ->group("Results");
  ofOne.push_back(
      app.add_option("--trace", s.timeline,
                     "Chrome trace to write (chrome://tracing, Perfetto)"));
  ofOne.push_back(app.add_option("--dot", s.dot, "Graphviz graph to write"));
  ofOne.push_back(app.add_option("--html", s.html,
                                 "web page to write: timeline, memory, graph "
                                 "and tables in one file"));
  ofOne.push_back(
      app.add_option("--explain", s.explain,
                     "operator (its name, its number, or a pattern such as "
                     "'enc/*'): why it is where it is; may be repeated")
          ->allow_extra_args(false));
  ofOne.push_back(app.add_option(
      "--grid", s.grid,
      "WAY:STAGES:REPLICAS (tensor/8:4:2, whole:8:1) on a machine of nodes: "
      "this plan, and no other"));
  CLI::Option *fit =
      app.add_option("--fit-memory", s.fitMemory,
                     "a graph that does not fit: auto, operators run again and "
                     "tensors wait in the machine's pool until it does; never, "
                     "that is an error")
          ->check(CLI::IsMember({"auto", "never"}))
          ->capture_default_str();
  ofOne.push_back(fit);
  ofOne.push_back(app.add_option("--fitted-graph", s.fittedGraph,
                                 "graph file to write that a placement of "
                                 "--fit-memory=auto is of: what runs again and "
                                 "waits are operators there")
                      ->needs(fit));
  for (CLI::Option *option : ofOne)
    option->group("One placement");
  addFormer(app, "--group", "--grouping", s.grouping);
  addFormer(app, "--report", "--json", s.report);
  ofOne.push_back(addFormer(app, "--timeline", "--trace", s.timeline));

  CLI::Option *compare =
      app.add_flag("--compare", s.compare,
                   "all placers on this graph and machine, in one table")
          ->group("Comparison");
  app.add_option("--placers", s.placers,
                 "those to compare, with commas; default: all")
      ->delimiter(',')
      ->needs(compare)
      ->group("Comparison");

  CLI::Option *sweep =
      app.add_flag("--sweep", s.sweep,
                   "more and fewer devices, other memories and links, and the "
                   "least memory a device must have (scripts/plot-sweep draws "
                   "the report)")
          ->group("Sweep");
  std::vector<CLI::Option *> ofSweep;
  ofSweep.push_back(app.add_option("--sweep-devices", s.sweepDevices,
                                   "numbers of devices; default: 1,2,4,8")
                        ->delimiter(','));
  ofSweep.push_back(
      app.add_option("--sweep-memory", s.sweepMemory,
                     "memories of a device: own (as it is), sizes (8GiB), or "
                     "shares of what one device alone needs (50%); default: "
                     "own,50%,25%")
          ->delimiter(','));
  ofSweep.push_back(app.add_option("--sweep-links", s.sweepLinks,
                                   "factors of the links' bandwidth; default: "
                                   "1,0.25,0.5,2,4")
                        ->delimiter(','));
  ofSweep.push_back(app.add_flag("--no-least-memory", s.noLeastMemory,
                                 "leave out the search for the least memory"));
  for (CLI::Option *option : ofSweep)
    option->needs(sweep)->group("Sweep");

  CLI::Option *sweepFit =
      app.add_flag("--sweep-fit", s.sweepFit,
                   fmt::format("the step of one device over its memory, by "
                               "order, running again and waiting in a pool; "
                               "--sweep-fit=LIST: sizes (8GiB) or shares of "
                               "what the file's order needs (50%); default: {}",
                               usualFits))
          ->group("Sweep");
  app.add_option("--sums", s.sums,
                 "of --sweep-fit and --fit-memory: operators (names, numbers, "
                 "or patterns such "
                 "as '*/AddN') that add up all that they read, which may be "
                 "done one after the other, in the order of the edges")
      ->delimiter(',')
      ->group("Sweep");
  for (CLI::Option *option : ofOne) {
    compare->excludes(option);
    sweep->excludes(option);
    sweepFit->excludes(option);
  }
  sweep->excludes(compare)->excludes(sweepFit);
  sweepFit->excludes(compare);
}

/// The parts of a list with commas.
static std::vector<std::string> split(const std::string &list) {
  return CLI::detail::split(list, ',');
}

std::string toPlaceOptions(const Settings &s, PlaceOptions &options) {
  options.placer = s.placer;
  const auto &groupings = groupingNames();
  if (s.grouping == "none") {
    options.grouping.clear();
  } else if (s.grouping != "all") {
    options.grouping = split(s.grouping);
    for (const std::string &step : options.grouping)
      if (std::find(groupings.begin(), groupings.end(), step) ==
          groupings.end())
        return fmt::format("--grouping: unknown step '{}': use none, all, or a "
                           "list of {}",
                           step, fmt::join(groupings, ","));
  }
  if (std::string error = parseObjective(s.objective, options.objective);
      !error.empty())
    return "--objective: " + error;
  bool isSwept = s.sweep || !s.sweepFit.empty();
  if (options.objective == Objective::Period && (!s.explain.empty() || isSwept))
    return fmt::format("--{} knows makespan and max-load: leave "
                       "--objective=period off",
                       isSwept ? "sweep" : "explain");
  if (std::string error = parseBudget(s.budget, options.budget); !error.empty())
    return "--budget: " + error;
  if (!std::isfinite(s.solverLimit) || s.solverLimit <= 0)
    return "--solver-limit: must be more than 0 seconds";
  if (s.solver != "native" && s.solver != "glpk" && s.solver != "greedy")
    return fmt::format("--solver: unknown solver '{}': use native, glpk or "
                       "greedy",
                       s.solver);
  bool isFitted = s.fitMemory == "auto";
  if (isFitted && !s.output.empty() && s.fittedGraph.empty())
    return "-o: what --fit-memory=auto places may be another graph: give "
           "--fitted-graph=FILE, where that is written, too";
  if (isFitted && !s.given.empty())
    return "--fit-memory finds a placement, and --placement gives one: leave "
           "one of them off";
  if (!s.sums.empty() && s.sweepFit.empty() && !isFitted)
    return "--sums is of --sweep-fit and --fit-memory=auto: give one of them, "
           "too";
  options.solverSeconds = s.solverLimit;
  options.seed = s.seed;
  return "";
}

std::string toSweepOptions(const Settings &s, const PlaceOptions &place,
                           SweepOptions &options) {
  if (!s.sweepDevices.empty())
    options.devices = s.sweepDevices;
  if (!s.sweepLinks.empty())
    options.links = s.sweepLinks;
  if (!s.sweepMemory.empty())
    options.memory.clear();
  for (const std::string &text : s.sweepMemory)
    if (std::string error =
            parseSweepMemory(text, options.memory.emplace_back());
        !error.empty())
      return "--sweep-memory: " + error;
  options.leastMemory = !s.noLeastMemory;
  options.place = place;
  return "";
}

std::string findSums(const Settings &s, const Graph &graph,
                     std::vector<int32_t> &sums) {
  for (const std::string &pattern : s.sums) {
    std::vector<int32_t> found;
    if (std::string error = findOperators(graph, pattern, found);
        !error.empty())
      return "--sums: " + error;
    sums.insert(sums.end(), found.begin(), found.end());
  }
  // Patterns may name the same.
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return "";
}

std::string toFitSweepOptions(const Settings &s, const Graph &graph,
                              const PlaceOptions &place,
                              FitSweepOptions &options) {
  // A flag without a list.
  std::string list = s.sweepFit == "true" ? usualFits : s.sweepFit;
  for (const std::string &text : split(list))
    if (std::string error =
            parseSweepMemory(text, options.memory.emplace_back());
        !error.empty())
      return "--sweep-fit: " + error;
  if (std::string error = findSums(s, graph, options.sums); !error.empty())
    return error;
  options.place = place;
  return "";
}

std::string checkOutputs(const Settings &s) {
  for (const std::string &path :
       {s.output, s.fittedGraph, s.report, s.timeline, s.dot, s.html}) {
    if (path.empty())
      continue;
    std::error_code error;
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, error))
      return fmt::format("{}: cannot write: there is no folder '{}'", path,
                         folder.string());
    if (std::filesystem::is_directory(path, error))
      return fmt::format("{}: cannot write: it is a folder", path);
  }
  return "";
}
