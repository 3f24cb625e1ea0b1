//===- ChainRewrites.cpp - Rewrites of orders as chains -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Chains.h"
#include "Recompute/Chain.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

/// Of ever larger graphs ever fewer stages, orders and turns are looked at.
static constexpr int32_t mostStages = 128, fewestStages = 12;
static constexpr double mostWork = 2e7;
static constexpr size_t mostTables = 4, manyOps = 1000;
/// The bytes of a table's orders are bounds: so many that are above a limit are
/// replayed, as they may be within it.
static constexpr int32_t pointsAbove = 3;
/// A step of so many runs, and for each operator, is compiled.
static constexpr size_t mostRuns = 5'000, mostRunsEach = 8;
/// Of larger graphs needless runs stay.
static constexpr int32_t mostOpsToDrop = 5000;

struct ChainRewrites::Tables {
  Tables(const Graph &graph, const RecomputeOptions &options)
      : graph(graph, options) {}

  RepeatGraph graph;
  std::vector<ChainTable> all;
};

ChainRewrites::ChainRewrites(const Graph &graph,
                             const RecomputeOptions &options,
                             std::span<const RepeatedOrder> bases) {
  auto made = std::make_shared<Tables>(graph, options);
  tables = made;
  auto count = static_cast<double>(std::max<size_t>(graph.ops.size(), 1));
  auto stages = static_cast<int32_t>(std::clamp(
      std::sqrt(mostWork / count), double(fewestStages), double(mostStages)));
  size_t most = graph.ops.size() > manyOps ? 1 : mostTables;
  std::vector<const RepeatedOrder *> seen;
  for (const RepeatedOrder &base : bases) {
    if (std::any_of(seen.begin(), seen.end(), [&](const RepeatedOrder *other) {
          return other->runs == base.runs;
        }))
      continue;
    seen.push_back(&base);
    for (int32_t turn : turnsOf(made->graph, base.runs)) {
      if (made->all.size() == most)
        return;
      Chain chain(made->graph, base.runs, turn, stages);
      if (chain.numStages() > 1)
        made->all.emplace_back(std::move(chain), base.peakBytes);
    }
  }
}

/// What the order must be beside its bytes: what waits for an operator runs
/// after all runs of that, and what has effects runs once.
static bool isSound(const RepeatGraph &graph, std::span<const int32_t> runs) {
  std::vector<uint8_t> hasRun(graph.numOps(), 0);
  for (int32_t op : runs) {
    if (hasRun[op] && !graph.canRepeat(op))
      return false;
    for (int32_t waiting : graph.controlUsers[op])
      if (hasRun[waiting])
        return false;
    hasRun[op] = 1;
  }
  return std::count(hasRun.begin(), hasRun.end(), 0) == 0;
}

std::optional<RepeatedOrder> ChainRewrites::within(int64_t bytes) const {
  const RepeatGraph &graph = tables->graph;
  size_t most = mostRuns + mostRunsEach * static_cast<size_t>(graph.numOps());
  std::optional<RepeatedOrder> best;
  for (const ChainTable &table : tables->all) {
    int32_t point = 0;
    while (point < table.numPoints() && table.bytesOf(point) <= bytes)
      ++point;
    // Those after the last within the limit take less time.
    int32_t from = std::min(point + pointsAbove, table.numPoints());
    for (int32_t p = from; p-- > std::max(point - 1, 0);) {
      RepeatedOrder found{table.runsOf(p), 0, table.againNsOf(p)};
      std::optional<int64_t> peak = peakOf(graph, found.runs);
      if (found.runs.size() > most || !peak || *peak > bytes ||
          !isSound(graph, found.runs))
        continue;
      found.peakBytes = *peak;
      if (graph.numOps() <= mostOpsToDrop)
        dropNeedless(graph, bytes, found);
      if (!best || found.againNs < best->againNs)
        best = std::move(found);
      break;
    }
  }
  return best;
}
