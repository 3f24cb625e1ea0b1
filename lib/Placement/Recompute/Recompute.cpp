//===- Recompute.cpp - Less memory for more work --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Chains.h"
#include "Memory/OrderFloor.h"
#include "Memory/Orders.h"
#include "Recompute/Replay.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <queue>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

/// All repeated runs take at most so often what the step takes.
static constexpr int64_t mostTimes = 3;
/// Of larger graphs fewer orders are replayed.
static constexpr size_t manyOps = 5000, basesOfMany = 2;
static constexpr size_t mostDropped = 1000;
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

std::vector<int32_t> baechi::placement::orderOfFile(const Graph &graph) {
  Problem alone = aloneOn(graph, "");
  return programOrder(Model(alone));
}

std::vector<RepeatedOrder>
baechi::placement::leanOrdersOf(const Graph &graph,
                                const RecomputeOptions &options) {
  RepeatGraph tensors(graph, options);
  Problem alone = aloneOn(graph, options.kind);
  Model model(alone);
  std::vector<std::vector<int32_t>> all = memory::leanOrders(model);
  Assignment device(model.numNodes, 0);
  memory::Steps steps(model, device);
  all.push_back(programOrder(model));
  all.push_back(memory::hoistShrinking(steps, all.back()));
  all.push_back(memory::sinkGrowing(steps, all.back()));
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

LeanestOrder
baechi::placement::leanestOf(const Graph &graph,
                             std::span<const RepeatedOrder> orders) {
  Problem alone = aloneOn(graph, "");
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (const auto &[kind, ns] : graph.ops[i].timeNs) {
      int64_t &own = alone.graph.ops[i].timeNs.front().second;
      own = std::min(own, ns);
    }
  Model model(alone);
  memory::OrderFloor floor =
      memory::orderFloor(model, orders.front().runs, memory::floorEffort);
  LeanestOrder best{orders.front(), floor.bytes, std::move(floor.nodes)};
  Assignment device(model.numNodes, 0);
  memory::Steps steps(model, device);
  for (const RepeatedOrder &order : orders) {
    RepeatedOrder found{memory::mendWindows(steps, order.runs, floor.bytes,
                                            memory::mendingEffort),
                        0, 0};
    found.peakBytes = *peakOfRuns(graph, found.runs);
    if (found.peakBytes < best.order.peakBytes)
      best.order = std::move(found);
  }
  return best;
}

void baechi::placement::recompute::dropNeedless(const RepeatGraph &tensors,
                                                int64_t bytes,
                                                RepeatedOrder &order) {
  std::vector<std::pair<int64_t, size_t>> repeated;
  std::vector<uint8_t> hasRun(tensors.numOps(), 0);
  for (size_t run = 0; run < order.runs.size(); ++run)
    if (std::exchange(hasRun[order.runs[run]], 1))
      repeated.emplace_back(-tensors.timeNs[order.runs[run]], run);
  if (repeated.size() > mostDropped)
    return;
  std::sort(repeated.begin(), repeated.end());
  std::vector<int32_t> all = std::move(order.runs);
  constexpr int32_t left = -1;
  auto withoutLeft = [&] {
    std::vector<int32_t> runs;
    std::copy_if(all.begin(), all.end(), std::back_inserter(runs),
                 [](int32_t op) { return op != left; });
    return runs;
  };
  for (const auto &[ns, run] : repeated) {
    int32_t op = std::exchange(all[run], left);
    std::optional<int64_t> peak = peakOf(tensors, withoutLeft());
    if (!peak || *peak > bytes)
      all[run] = op;
    else
      order.againNs += ns;
  }
  order.runs = withoutLeft();
  order.peakBytes = *peakOf(tensors, order.runs);
}

std::optional<RepeatedOrder>
baechi::placement::recomputeWithin(const Graph &graph,
                                   const RecomputeOptions &options,
                                   std::span<const RepeatedOrder> bases,
                                   int64_t bytes, const ChainRewrites &chains) {
  RepeatGraph tensors(graph, options);
  int64_t work = 0;
  for (int64_t ns : tensors.timeNs)
    work += ns;
  std::optional<RepeatedOrder> best;
  int64_t most = mostTimes * std::max<int64_t>(work, 1);
  if (graph.ops.size() > manyOps && bases.size() > basesOfMany)
    bases = bases.first(basesOfMany);
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
  if (best && graph.ops.size() <= manyOps)
    dropNeedless(tensors, bytes, *best);
  if (best)
    most = best->againNs;
  if (auto found = chains.within(bytes);
      found && (!best || found->againNs < best->againNs)) {
    most = found->againNs;
    best = std::move(found);
  }
  if (auto found = bestOfSmall(tensors, bytes, most)) {
    found->peakBytes = *peakOf(tensors, found->runs);
    best = std::move(found);
  }
  return best;
}
