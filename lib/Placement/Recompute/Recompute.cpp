//===- Recompute.cpp - Less memory for more work --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Recompute.h"
#include "Memory/Orders.h"
#include "Recompute/Replay.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;

static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

/// The graph on one device without a limit.
static Problem aloneOn(const Graph &graph, const std::string &kind) {
  Problem alone{graph, {}};
  alone.machine.devices = {{"", kind, unlimited}};
  alone.machine.links.resize(1);
  for (Operator &op : alone.graph.ops) {
    op.pin.reset();
    op.group.reset();
    // What the kind cannot run is of another device of the machine.
    op.timeNs = {{"", 1}};
  }
  return alone;
}

RepeatedOrder
baechi::placement::leanestOrder(const Graph &graph,
                                const RecomputeOptions &options) {
  RepeatGraph tensors(graph, options);
  Problem alone = aloneOn(graph, options.kind);
  Model model(alone);
  RepeatedOrder best;
  for (std::vector<int32_t> &order : leanOrders(model)) {
    std::optional<RepeatedOrder> found =
        replay(tensors, order, unlimited, {}, /*mostAgainNs=*/0);
    if (found && (best.runs.empty() || found->peakBytes < best.peakBytes))
      best = std::move(*found);
  }
  return best;
}

std::optional<RepeatedOrder>
baechi::placement::recomputeWithin(const Graph &graph,
                                   const RecomputeOptions &options,
                                   std::span<const int32_t> base,
                                   int64_t bytes) {
  RepeatGraph tensors(graph, options);
  int64_t work = 0;
  for (int64_t ns : tensors.timeNs)
    work += ns;
  std::optional<RepeatedOrder> best;
  // Never more than the whole step ten times.
  int64_t most = 10 * std::max<int64_t>(work, 1);
  for (Price price : {Price{true, true}, Price{false, true}, Price{true, false},
                      Price{false, false}}) {
    std::optional<RepeatedOrder> found =
        replay(tensors, base, bytes, price, most);
    if (found && (!best || found->againNs < best->againNs)) {
      most = found->againNs;
      best = std::move(found);
    }
  }
  return best;
}
