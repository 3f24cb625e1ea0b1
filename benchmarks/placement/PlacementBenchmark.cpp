//===- PlacementBenchmark.cpp - How long placing takes ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints the seconds that the placers take on a large graph, with and without
/// grouping, how these grow with the size of the graph, and what the search
/// reaches. `placement-benchmark --solver` adds m-SCT's linear program on all
/// operators, which takes tens of seconds.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io.h"
#include "Baechi/Placement/Place.h"
#ifdef BAECHI_HAVE_GLPK
#include "Baechi/Placement/Glpk.h"
#endif

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <string>

using namespace baechi::placement;

namespace {

double secondsOf(const Problem &problem, const PlaceOptions &options,
                 PlaceResult &result) {
  auto begin = std::chrono::steady_clock::now();
  result = place(problem, options);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

PlaceOptions pure(const std::string &placer, bool grouped) {
  PlaceOptions options;
  options.placer = placer;
  options.budget = Budget::none();
  if (!grouped)
    options.grouping.clear();
  return options;
}

void row(const std::string &what, double seconds, const PlaceResult &result) {
  if (result.placement)
    fmt::print("| {} | {} | {:.3f} | {:.1f} | {:.1f} |\n", what,
               result.operatorsAfter, seconds,
               static_cast<double>(result.placement->makespanNs) / 1e6,
               static_cast<double>(result.lowerBoundNs) / 1e6);
  else
    fmt::print("| {} | | {:.3f} | {} | |\n", what, seconds, result.error);
}

/// A layered graph of \p n operators, each reading two of the last 64.
Problem layered(int32_t n, const Machine &machine) {
  Problem problem;
  problem.machine = machine;
  uint32_t state = 1;
  auto below = [&](uint32_t count) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % count;
  };
  for (int32_t i = 0; i < n; ++i) {
    Operator op;
    op.name = fmt::format("op{}", i);
    op.timeNs = {{"", 1000 + below(200000)}};
    op.outputs.emplace_back(1024 + below(1 << 20));
    problem.graph.ops.push_back(std::move(op));
    for (int k = 0; k < 2 && i > 0; ++k)
      problem.graph.edges.push_back(
          {i - 1 - static_cast<int32_t>(below(std::min(i, 64))), 0, i});
  }
  return problem;
}

void largeGraph(Problem &problem, [[maybe_unused]] bool withSolver) {
  fmt::print("| placer, gnmt50 (22,340 operators), 4 devices | nodes | seconds "
             "| step ms | bound ms |\n|---|---|---|---|---|\n");
  PlaceResult result;
  for (const char *placer : {"mtopo", "metf", "msct"})
    for (bool grouped : {false, true}) {
      double seconds = secondsOf(problem, pure(placer, grouped), result);
      row(fmt::format("{}{}{}", placer,
                      std::strcmp(placer, "msct") ? "" : ", greedy favourites",
                      grouped ? ", grouped" : ""),
          seconds, result);
    }
#ifdef BAECHI_HAVE_GLPK
  auto glpk = createGlpkSolver();
  for (bool grouped : {true, false}) {
    if (!grouped && !withSolver)
      continue;
    PlaceOptions options = pure("msct", grouped);
    options.solver = glpk.get();
    double seconds = secondsOf(problem, options, result);
    row(fmt::format("msct, GLPK{}", grouped ? ", grouped" : ""), seconds,
        result);
    for (const std::string &note : result.notes)
      fmt::print("\n{}\n", note);
  }
#endif
  row("automatic budget", secondsOf(problem, {}, result), result);
  for (double budget : {1.0, 10.0}) {
    PlaceOptions options;
    options.budget = Budget::ofSeconds(budget);
    double seconds = secondsOf(problem, options, result);
    row(fmt::format("search, {:.0f} s", budget), seconds, result);
  }
}

void growth(const Machine &machine) {
  fmt::print(
      "\n| operators (layered graph) | m-ETF s | times the row above | "
      "grouped m-SCT s | times the row above |\n|---|---|---|---|---|\n");
  double lastEtf = 0, lastSct = 0;
  for (int32_t n = 1000; n <= 256000; n *= 4) {
    Problem problem = layered(n, machine);
    for (Device &device : problem.machine.devices)
      device.memory = int64_t(1) << 45;
    PlaceResult result;
    double etf = secondsOf(problem, pure("metf", false), result);
    double sct = secondsOf(problem, pure("msct", true), result);
    auto ratio = [](double now, double before) {
      return before > 0 ? fmt::format("{:.1f}", now / before) : std::string();
    };
    fmt::print("| {} | {:.3f} | {} | {:.3f} | {} |\n", n, etf,
               ratio(etf, lastEtf), sct, ratio(sct, lastSct));
    lastEtf = etf;
    lastSct = sct;
  }
}

} // namespace

int main(int argc, char **argv) {
  bool withSolver = argc > 1 && std::strcmp(argv[1], "--solver") == 0;
  Problem problem;
  std::string folder = BAECHI_SOURCE_DIR "/data/graphs/";
  std::string error = readGraph(folder + "gnmt50.json.xz", problem.graph);
  if (error.empty())
    error = readMachine(folder + "machine_4x8GiB.json", problem.machine);
  if (!error.empty()) {
    fmt::print(stderr, "placement-benchmark: error: {}\n", error);
    return 1;
  }
  largeGraph(problem, withSolver);
  growth(problem.machine);
}
