//===- Spill.cpp - Tensors that wait in a pool ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Spill.h"
#include "Recompute/SmallFit.h"
#include "Recompute/SpillReplay.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

/// Of larger graphs fewer orders are replayed, by fewer rules.
static constexpr size_t largeGraph = 5000, basesOfFew = 3;
/// Sets of arguments that are tried, each larger than the one before.
static constexpr size_t setsTried = 4;

/// The arguments that may live in the pool, those first that hold most bytes
/// for the bytes that they move.
static std::vector<int32_t> movable(const Graph &graph,
                                    const SpillOptions &options) {
  std::vector<int32_t> uses(graph.ops.size(), 0), arguments;
  for (const Edge &edge : graph.edges)
    if (edge.output >= 0)
      ++uses[edge.from];
  for (int32_t op = 0; op < static_cast<int32_t>(graph.ops.size()); ++op)
    if (options.mayMove[op] && graph.ops[op].resident > 0)
      arguments.push_back(op);
  auto transfers = [&](int32_t op) {
    return uses[op] + (options.nextValue[op].op >= 0 ? 1 : 0);
  };
  std::stable_sort(arguments.begin(), arguments.end(),
                   [&](int32_t a, int32_t b) {
                     if (transfers(a) != transfers(b))
                       return transfers(a) < transfers(b);
                     return graph.ops[a].resident > graph.ops[b].resident;
                   });
  return arguments;
}

std::vector<int64_t>
baechi::placement::spillNeeds(const Graph &graph, const SpillOptions &options) {
  SpillGraph all(graph, options, movable(graph, options));
  std::vector<int64_t> needs;
  for (int32_t op = 0; op < all.tensors.numOps(); ++op)
    needs.push_back(all.needOf(op));
  return needs;
}

MemoryFloor baechi::placement::floorOf(std::span<const int64_t> needs) {
  MemoryFloor floor;
  for (size_t op = 0; op < needs.size(); ++op)
    if (needs[op] > floor.bytes || floor.op < 0)
      floor = {needs[op], static_cast<int32_t>(op)};
  return floor;
}

MemoryFloor baechi::placement::spillFloor(const Graph &graph,
                                          const SpillOptions &options) {
  return floorOf(spillNeeds(graph, options));
}

/// A plan of runs, each operator's only one.
static SpillPlan inOperators(const RunsWithStays &found) {
  SpillPlan plan = found.plan;
  for (size_t run = 0; run < found.runs.size(); ++run)
    plan.startNs[found.runs[run]] = found.plan.startNs[run];
  plan.order = found.runs;
  for (Stay &stay : plan.stays)
    stay.tensor.op = found.runs[stay.tensor.op];
  return plan;
}

std::optional<SpillPlan>
baechi::placement::spillWithin(const Graph &graph, const SpillOptions &options,
                               std::span<const RepeatedOrder> bases,
                               int64_t bytes) {
  bool isLarge = graph.ops.size() > largeGraph;
  bases = bases.first(std::min(bases.size(), isLarge ? 1 : basesOfFew));
  std::vector<int32_t> arguments = movable(graph, options);
  std::optional<SpillPlan> best;
  int64_t mostNs = std::numeric_limits<int64_t>::max() / 4;
  size_t replayed = 0;
  for (size_t k = 0; replayed < setsTried; ++k) {
    // None, and ever more of them, until all are there.
    size_t count = arguments.size() * k / (2 * setsTried);
    if (k > 2 * setsTried)
      break;
    SpillGraph moved(graph, options, std::span(arguments).first(count));
    if (moved.tensors.resident > bytes)
      continue;
    int64_t workNs = std::accumulate(moved.tensors.timeNs.begin(),
                                     moved.tensors.timeNs.end(), int64_t(0));
    bool fits = false;
    for (const RepeatedOrder &base : bases)
      for (SpillRule rule :
           {SpillRule::Farthest, SpillRule::Clean, SpillRule::Largest}) {
        std::vector<int64_t> level;
        auto stays = replayStays(moved, base.runs, bytes, rule, level);
        if (!stays)
          continue;
        fits = true;
        for (int64_t slack : {1, 3}) {
          std::vector<Stay> early = *stays;
          std::vector<int64_t> held = level;
          fetchEarly(moved, base.runs, bytes, slack, early, held);
          std::optional<SpillPlan> plan =
              timesOf(moved, options, base.runs, std::move(early), mostNs);
          if (!plan)
            continue;
          plan->peakBytes =
              std::max(moved.tensors.resident,
                       *std::max_element(held.begin(), held.end()));
          mostNs = plan->makespanNs;
          best = std::move(plan);
          // No step is shorter than its operators one after the other.
          if (mostNs <= workNs)
            return best;
        }
      }
    replayed += fits;
  }
  SpillGraph still(graph, options, {});
  if (auto small =
          shortestOfSmall(still, {}, bytes, mostNs, options.smallStates))
    best = inOperators(*small);
  return best;
}

std::optional<RunsWithStays> baechi::placement::repeatAndSpillWithin(
    const Graph &graph, const RecomputeOptions &repeats,
    const SpillOptions &options, int64_t bytes, int64_t mostNs) {
  return shortestOfSmall(SpillGraph(graph, options, {}), repeats.mayRepeat,
                         bytes, mostNs, options.smallStates);
}
