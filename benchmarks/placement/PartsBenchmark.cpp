//===- PartsBenchmark.cpp - What placing's time is spent on -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The parts of reading and placing a graph one by one, below the public
/// interface.
///
//===----------------------------------------------------------------------===//

#include "Graphs.h"

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Schedule/Verify.h"
#include "Bounds/Bounds.h"
#include "Grouping/Clusters.h"
#include "Placers/Placers.h"
#include "Schedule/Schedule.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

using namespace baechi::placement;
using namespace baechi::placement::benchmarks;

namespace {

/// What parts work on, made once per graph.
struct Prepared {
  explicit Prepared(const Problem &problem)
      : problem(problem), model(problem),
        device(placers::earliestStart(model).device) {
    Scheduler scheduler(model);
    scheduler.run(device, {}, &schedule);
    placement = toPlacement(model, device, schedule);
  }
  const Problem &problem;
  Model model;
  Assignment device;
  Schedule schedule;
  Placement placement;
};

const Prepared &preparedOf(const GraphName &graph) {
  static GraphName last;
  static std::unique_ptr<Prepared> prepared;
  if (graph != last)
    prepared.reset();
  last = graph;
  if (!prepared)
    prepared = std::make_unique<Prepared>(problemOf(graph));
  return *prepared;
}

using Part = void (*)(const Prepared &);

void parse(benchmark::State &state, const GraphName &graph) {
  std::string text;
  formatGraph(problemOf(graph).graph, text);
  for (auto _ : state) {
    Graph read;
    std::string error = parseGraph(text, "text", read);
    if (!error.empty())
      state.SkipWithError(error.c_str());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(text.size()));
}

template <typename Body>
void add(const char *part, const GraphName &graph, Body body) {
  benchmark::RegisterBenchmark(
      fmt::format("part/{}/{}", part, graph.text()).c_str(),
      [=](benchmark::State &state) {
        const Prepared &prepared = preparedOf(graph);
        for (auto _ : state)
          body(prepared);
        state.counters["operators"] = prepared.model.numNodes;
      })
      ->Unit(benchmark::kMillisecond);
}

} // namespace

void baechi::placement::benchmarks::registerParts() {
  for (const GraphName &graph : benchmarkGraphs()) {
    benchmark::RegisterBenchmark(
        fmt::format("part/parse/{}", graph.text()).c_str(),
        [=](benchmark::State &state) { parse(state, graph); })
        ->Unit(benchmark::kMillisecond);
    add("check", graph,
        [](const Prepared &p) { benchmark::DoNotOptimize(check(p.problem)); });
    add("model", graph, [](const Prepared &p) {
      benchmark::DoNotOptimize(Model(p.problem).numNodes);
    });
    add("bound", graph, [](const Prepared &p) {
      benchmark::DoNotOptimize(bounds::makespanBound(p.model).value);
    });
    add("coplace", graph, [](const Prepared &p) {
      grouping::Coarsening coarsening = grouping::Coarsening::identity(p.model);
      grouping::coplace(p.model, coarsening);
      benchmark::DoNotOptimize(coarsening.numUnits);
    });
    add("fuse", graph, [](const Prepared &p) {
      grouping::Coarsening coarsening = grouping::Coarsening::identity(p.model);
      grouping::joinFreely(p.model, grouping::freeShare, coarsening);
      grouping::fuse(p.model, coarsening);
      benchmark::DoNotOptimize(coarsening.numNodes);
    });
    add("earliest-start", graph, [](const Prepared &p) {
      benchmark::DoNotOptimize(placers::earliestStart(p.model).start.front());
    });
    add("schedule", graph, [](const Prepared &p) {
      Scheduler scheduler(p.model);
      Schedule schedule;
      benchmark::DoNotOptimize(scheduler.run(p.device, {}, &schedule));
    });
    add("peaks", graph, [](const Prepared &p) {
      benchmark::DoNotOptimize(schedulePeaks(p.model, p.device, p.schedule));
    });
    add("verify", graph, [](const Prepared &p) {
      benchmark::DoNotOptimize(verify(p.problem, p.placement));
    });
    add("format", graph, [](const Prepared &p) {
      std::string text;
      formatPlacement(p.problem, p.placement, {}, text);
      benchmark::DoNotOptimize(text.size());
    });
  }
}
