//===- OptimalityGap.cpp - How far from the optimum is place? ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random problems of at most 16 operators on 2 or 3 devices, memories between
/// 95 % and 150 % of the least that is enough: the makespan that `place`
/// reaches, above the optimum that the exact search proves.
///
//===----------------------------------------------------------------------===//

#include "SmallProblems.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

struct Tally {
  std::vector<double> gaps; ///< of makespans that are proven to be optimal
  int proven = 0, infeasible = 0, unproven = 0, skipped = 0;
  int missed = 0;     ///< a valid placement exists, `place` found none
  int impossible = 0; ///< `place` found one where none is said to exist
  int64_t nodes = 0, mostNodes = 0;
};

void judge(uint32_t seed, int64_t nodeLimit, const PlaceOptions &options,
           bool verbose, Tally &tally) {
  Problem problem;
  if (!drawTight(seed, problem)) {
    ++tally.skipped;
    return;
  }
  PlaceResult found = place(problem, options);
  ExactOptions exact;
  exact.objective = options.objective;
  exact.nodeLimit = nodeLimit;
  exact.start = found.placement ? &*found.placement : nullptr;
  ExactResult best = exactPlacement(problem, exact);
  int64_t value = !found.placement ? 0
                  : options.objective == Objective::MaxLoad
                      ? found.maxLoadNs
                      : found.placement->makespanNs;
  tally.nodes += best.nodes;
  tally.mostNodes = std::max(tally.mostNodes, best.nodes);
  double gap = 0;
  switch (best.status) {
  case ExactStatus::Optimal:
    ++tally.proven;
    if (!found.placement)
      ++tally.missed;
    else
      tally.gaps.push_back(
          gap = 100.0 * static_cast<double>(value - best.valueNs) /
                static_cast<double>(std::max<int64_t>(1, best.valueNs)));
    break;
  case ExactStatus::Infeasible:
    ++tally.infeasible;
    tally.impossible += found.placement.has_value();
    break;
  case ExactStatus::Limit:
    ++tally.unproven;
    tally.missed += !found.placement && best.placement;
    break;
  case ExactStatus::Refused:
    fmt::print("seed {}: {}\n", seed, best.error);
    ++tally.skipped;
    break;
  }
  if (verbose)
    fmt::print("seed {}: {} operators, {} devices, status {}, place {} ({}), "
               "best {}, bound {}, gap {:.2f} %, {} nodes\n",
               seed, problem.graph.ops.size(), problem.machine.devices.size(),
               static_cast<int>(best.status), value, found.winner, best.valueNs,
               best.lowerBoundNs, gap, best.nodes);
}

void print(Tally &tally) {
  auto &gaps = tally.gaps;
  std::sort(gaps.begin(), gaps.end());
  auto at = [&](double share) {
    return gaps.empty() ? 0.0
                        : gaps[static_cast<size_t>(
                              share * static_cast<double>(gaps.size() - 1))];
  };
  double sum = 0;
  for (double gap : gaps)
    sum += gap;
  auto optimal = std::count(gaps.begin(), gaps.end(), 0.0);
  fmt::print(
      "{} proven optimal, {} proven infeasible, {} at the node limit, {} not "
      "drawn\n"
      "place: optimal in {} of {}; gap median {:.2f} %, mean {:.3f} %, 90th "
      "percentile {:.2f} %, 99th {:.2f} %, largest {:.2f} %\n"
      "place found nothing where a placement exists: {}; something where none "
      "does: {}\n"
      "nodes of the exact search: {} in all, {} at most\n",
      tally.proven, tally.infeasible, tally.unproven, tally.skipped, optimal,
      gaps.size(), at(0.5),
      gaps.empty() ? 0.0 : sum / static_cast<double>(gaps.size()), at(0.9),
      at(0.99), at(1), tally.missed, tally.impossible, tally.nodes,
      tally.mostNodes);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("The gap between place and the proven optimum on random small "
               "problems");
  uint32_t first = 0, count = 1000;
  int64_t nodeLimit = 2'000'000;
  std::string budget = "auto";
  bool maxLoad = false, verbose = false;
  app.add_option("--first", first, "first seed")->capture_default_str();
  app.add_option("--count", count, "number of seeds")->capture_default_str();
  app.add_option("--limit", nodeLimit, "nodes of the exact search")
      ->capture_default_str();
  app.add_option("--budget", budget, "budget of place")->capture_default_str();
  app.add_flag("--max-load", maxLoad, "the load instead of the makespan");
  app.add_flag("--verbose", verbose, "a line for every problem");
  CLI11_PARSE(app, argc, argv);
  PlaceOptions options;
  if (std::string error = parseBudget(budget, options.budget); !error.empty()) {
    fmt::print(stderr, "optimality-gap: error: --budget: {}\n", error);
    return 1;
  }
  if (maxLoad)
    options.objective = Objective::MaxLoad;
  Tally tally;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    judge(seed, nodeLimit, options, verbose, tally);
    std::fflush(stdout);
  }
  print(tally);
}
