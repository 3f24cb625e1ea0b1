//===- PlacementBenchmark.cpp - How long placing takes ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Google Benchmark of whole placers, everything that `place` does included:
/// check, bound, grouping, placing, scheduling, verification. The CPU time of
/// all threads is the counter `cpu_s`, which counts.
/// `scripts/benchmark-placement` runs it over all sizes and draws a plot.
///
//===----------------------------------------------------------------------===//

#include "Generators.h"
#include "Graphs.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Session/Place.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <sys/resource.h>

using namespace baechi::placement;
using namespace baechi::placement::benchmarks;

namespace {

/// Peak resident memory of the process so far. Of one benchmark only when it
/// runs alone.
double peakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Of all threads of the process so far.
double cpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void runPlacer(benchmark::State &state, const GraphName &graph,
               const PlaceOptions &options) {
  const Problem &problem = problemOf(graph);
  PlaceResult result;
  double before = cpuSeconds();
  for (auto _ : state)
    result = place(problem, options);
  double after = cpuSeconds();
  if (!result.placement) {
    state.SkipWithError(result.error.c_str());
    return;
  }
  state.counters["cpu_s"] =
      (after - before) / static_cast<double>(state.iterations());
  state.counters["operators"] = result.operatorsBefore;
  state.counters["nodes"] = result.operatorsAfter;
  state.counters["step_ms"] =
      static_cast<double>(result.placement->makespanNs) / 1e6;
  state.counters["bound_ms"] = static_cast<double>(result.lowerBoundNs) / 1e6;
  state.counters["peak_MiB"] = peakMebibytes();
  for (const Phase &phase : result.phases)
    state.counters["s_" + phase.name] += phase.seconds;
}

} // namespace

std::string GraphName::text() const {
  return operators ? fmt::format("{}/{}", name, operators) : name;
}

std::vector<GraphName> baechi::placement::benchmarks::benchmarkGraphs() {
  std::vector<GraphName> graphs{{"gnmt40"}, {"gnmt50"}, {"inception_v3"}};
  for (const std::string &family : generatorNames())
    for (int32_t n : {1000, 3162, 10000, 31623, 100000, 316228, 1000000})
      graphs.push_back({family, n});
  return graphs;
}

const Problem &
baechi::placement::benchmarks::problemOf(const GraphName &graph) {
  static GraphName last;
  static Problem problem;
  if (graph == last)
    return problem;
  last = graph;
  if (graph.operators > 0) {
    problem = {generate(graph.name, graph.operators),
               uniformMachine(8, int64_t(1) << 50)};
    return problem;
  }
  const std::string folder = BAECHI_SOURCE_DIR "/data/graphs/";
  std::string error =
      readGraph(folder + graph.name + ".json.xz", problem.graph);
  if (error.empty())
    error = readMachine(folder + "machine_4x8GiB.json", problem.machine);
  if (!error.empty()) {
    fmt::print(stderr, "placement-benchmark: error: {}\n", error);
    std::exit(1);
  }
  return problem;
}

void baechi::placement::benchmarks::registerPlacers() {
  for (const GraphName &graph : benchmarkGraphs()) {
    for (const char *placer : {"mtopo", "metf", "msct"})
      for (bool grouped : {false, true}) {
        PlaceOptions options;
        options.placer = placer;
        options.budget = Budget::none();
        if (!grouped)
          options.grouping.clear();
        benchmark::RegisterBenchmark(
            fmt::format("place/{}{}/{}", placer, grouped ? "-grouped" : "",
                        graph.text())
                .c_str(),
            [=](benchmark::State &state) { runPlacer(state, graph, options); })
            ->Unit(benchmark::kSecond);
      }
    benchmark::RegisterBenchmark(
        fmt::format("place/default/{}", graph.text()).c_str(),
        [=](benchmark::State &state) { runPlacer(state, graph, {}); })
        ->Unit(benchmark::kSecond);
  }
}

int main(int argc, char **argv) {
  registerPlacers();
  registerParts();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
