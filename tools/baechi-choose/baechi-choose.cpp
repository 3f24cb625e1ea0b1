//===- baechi-choose.cpp - Solves pairwise choice programs ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// baechi-choose INSTANCE: chooses a strategy of each node so that the costs of
/// nodes and pairs add up to the least within a limit of bytes at every time.
/// See docs/choice.md.
///
//===----------------------------------------------------------------------===//

#include "InstanceFile.h"
#include "Main.h"

#include "Baechi/Placement/Io/Files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace baechi::placement;

namespace {

struct Settings {
  std::string instance;
  std::string choice;
  std::string output;
  ChoiceOptions options;
  bool progress = false;
};

int fail(const std::string &message) {
  fmt::print(stderr, "baechi-choose: error: {}\n", message);
  return 1;
}

void defineOptions(CLI::App &app, Settings &settings) {
  app.set_version_flag("--version", "Baechi " BAECHI_VERSION,
                       "the version, and nothing else");
  app.add_option("INSTANCE", settings.instance,
                 "instance of the contest (.json or .json.gz)")
      ->required();
  CLI::Option *seconds =
      app.add_option("--seconds", settings.options.seconds,
                     "how long to look, reading the instance included")
          ->check(CLI::Range(0.001, 1e6, "seconds"));
  CLI::Option *work =
      app.add_option("--work", settings.options.work,
                     "how many entries of tables to look at (10^9 take about a "
                     "second): the same answer every time; default: by the "
                     "size of the instance")
          ->check(CLI::Range(uint64_t(1), uint64_t(1) << 62, "number"));
  CLI::Option *seed =
      app.add_option("--seed", settings.options.seed, "of random numbers")
          ->check(CLI::Range(uint64_t(0), uint64_t(1) << 62, "number"))
          ->capture_default_str();
  CLI::Option *output = app.add_option("-o,--output", settings.output,
                                       "file to write the choice to, a list of "
                                       "the strategies' numbers");
  CLI::Option *progress = app.add_flag("--progress", settings.progress,
                                       "a line for each better choice");
  CLI::Option *choice =
      app.add_option("--choice", settings.choice,
                     "file with a choice to add up instead of finding one");
  // Its word of before: one word is for one thing in all tools.
  CLI::Option *former =
      app.add_option_function<std::string>(
             "--check",
             [&settings](const std::string &given) {
               fmt::print(stderr,
                          "baechi-choose: note: --check is now --choice\n");
               settings.choice = given;
             })
          ->group("");
  for (CLI::Option *option : {seconds, work, seed, output, progress}) {
    choice->excludes(option);
    former->excludes(option);
  }
}

const char *nameOf(ChoiceStatus status) {
  switch (status) {
  case ChoiceStatus::Optimal:
    return "optimal";
  case ChoiceStatus::Feasible:
    return "feasible";
  case ChoiceStatus::NotFound:
    return "not found";
  case ChoiceStatus::Infeasible:
    return "infeasible";
  }
  return "";
}

/// What a choice amounts to; true if it is feasible.
bool printValue(const ChoiceProgram &program, const ChoiceValue &value) {
  fmt::print("cost: {}\n", formatWideSum(value.cost));
  if (program.usageLimit)
    fmt::print("peak: {} of {} at time {}\n", formatWideSum(value.peak),
               *program.usageLimit, value.peakTime);
  return value.isFeasible();
}

int check(const Settings &settings, const ChoiceProgram &program) {
  Choice choice;
  if (std::string error = readChoice(settings.choice, choice); !error.empty())
    return fail(error);
  if (std::string error = checkChoice(program, choice); !error.empty())
    return fail(fmt::format("{}: {}", settings.choice, error));
  ChoiceValue value = evaluateChoice(program, choice);
  if (printValue(program, value))
    return 0;
  return fail(fmt::format("{}: {}", settings.choice,
                          value.isForbidden
                              ? "it takes what an infinite cost forbids"
                              : "it exceeds the usage limit"));
}

int solve(Settings &settings, const ChoiceProgram &program) {
  ChoiceOptions &options = settings.options;
  if (settings.progress)
    options.improved = [](WideSum cost, double seconds) {
      fmt::print(stderr, "{:.2f} s: {}\n", seconds, formatWideSum(cost));
    };
  ChoiceResult result = solveChoice(program, options);
  fmt::print("status: {}\n", nameOf(result.status));
  bool isFound = !result.choice.empty() || program.nodes.empty();
  if (result.status == ChoiceStatus::Infeasible || !isFound)
    return fail(fmt::format("{}: {}", settings.instance, result.reason));
  printValue(program, result.value);
  auto cost = static_cast<double>(result.value.cost);
  double gap = 100 * static_cast<double>(result.value.cost - result.bound);
  fmt::print("bound: {}\ngap: {:.2f} %\n", formatWideSum(result.bound),
             cost > 0 ? gap / cost : 0);
  fmt::print("work: {}\n", result.work);
  if (settings.output.empty())
    return 0;
  std::string error =
      writeTextFile(settings.output, formatChoice(result.choice));
  return error.empty() ? 0 : fail(error);
}

int run(Settings &settings) {
  auto begin = std::chrono::steady_clock::now();
  ChoiceProgram program;
  if (std::string error = readInstance(settings.instance, program);
      !error.empty())
    return fail(error);
  if (!settings.choice.empty())
    return check(settings, program);
  std::chrono::duration<double> reading =
      std::chrono::steady_clock::now() - begin;
  double &seconds = settings.options.seconds;
  if (seconds > 0)
    seconds = std::max(1e-3, seconds - reading.count());
  return solve(settings, program);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Chooses a strategy of each node for the least cost within a "
               "limit of bytes at every time.",
               "baechi-choose");
  Settings settings;
  defineOptions(app, settings);
  return baechi::runTool(app, argc, argv, [&] { return run(settings); }, fail);
}
