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
#include <functional>
#include <limits>
#include <queue>

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

/// The operators by their numbers, as far as they need not wait.
static std::vector<int32_t> programOrder(const Model &model) {
  std::vector<int32_t> waits(model.numNodes, 0), order;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (int32_t node = 0; node < model.numNodes; ++node) {
    waits[node] = static_cast<int32_t>(model.operands[node].size() +
                                       model.controlSources[node].size());
    if (waits[node] == 0)
      ready.push(node);
  }
  auto arrive = [&](int32_t node) {
    if (--waits[node] == 0)
      ready.push(node);
  };
  while (!ready.empty()) {
    int32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int32_t tensor = model.firstTensor[node];
         tensor < model.firstTensor[node + 1]; ++tensor)
      for (int32_t user : model.users[tensor])
        arrive(user);
    for (int32_t user : model.controlUsers[node])
      arrive(user);
  }
  return order;
}

std::vector<RepeatedOrder>
baechi::placement::leanOrdersOf(const Graph &graph,
                                const RecomputeOptions &options) {
  RepeatGraph tensors(graph, options);
  Problem alone = aloneOn(graph, options.kind);
  Model model(alone);
  std::vector<std::vector<int32_t>> all = leanOrders(model);
  Assignment device(model.numNodes, 0);
  Steps steps(model, device);
  all.push_back(programOrder(model));
  all.push_back(hoistShrinking(steps, all.back()));
  all.push_back(sinkGrowing(steps, all.back()));
  std::vector<RepeatedOrder> orders;
  for (std::vector<int32_t> &order : all)
    if (auto found = replay(tensors, order, unlimited, {}, /*mostAgainNs=*/0))
      orders.push_back(std::move(*found));
  std::stable_sort(orders.begin(), orders.end(),
                   [](const RepeatedOrder &a, const RepeatedOrder &b) {
                     return a.peakBytes < b.peakBytes;
                   });
  return orders;
}

std::optional<RepeatedOrder> baechi::placement::recomputeWithin(
    const Graph &graph, const RecomputeOptions &options,
    std::span<const RepeatedOrder> bases, int64_t bytes) {
  RepeatGraph tensors(graph, options);
  int64_t work = 0;
  for (int64_t ns : tensors.timeNs)
    work += ns;
  std::optional<RepeatedOrder> best;
  // Never more than the whole step ten times.
  int64_t most = 10 * std::max<int64_t>(work, 1);
  for (const RepeatedOrder &base : bases)
    for (Price price : {Price{true, true}, Price{false, true},
                        Price{true, false}, Price{false, false}}) {
      std::optional<RepeatedOrder> found =
          replay(tensors, base.runs, bytes, price, most);
      if (found && (!best || found->againNs < best->againNs)) {
        most = found->againNs;
        best = std::move(found);
      }
    }
  return best;
}
