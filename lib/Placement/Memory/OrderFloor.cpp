//===- OrderFloor.cpp - What no order goes under --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/OrderFloor.h"
#include "Memory/Steps.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// So many operators of a part of the order are looked at, of so many parts.
constexpr size_t mostOfPart = 3;
constexpr int32_t parts = 64;
/// In all, alone and together with others.
constexpr size_t mostAlone = 24, mostTogether = 6;
/// So often the order of two operators is a case of its own.
constexpr int32_t deepest = 3;

class FloorFinder {
public:
  FloorFinder(const Model &model, std::span<const int32_t> order, int64_t steps,
              std::span<const int64_t> bytes)
      : model(model), order(order), left(steps), level(model, bytes),
        when(model.numNodes), stack(model.numNodes), device(model.numNodes, 0),
        holdings(model, device) {
    for (int64_t bytes : model.resident)
      resident += bytes;
  }
  OrderFloor run();

private:
  std::vector<int64_t> needsOf(std::span<const int32_t> order) const;
  std::vector<int32_t> candidates() const;
  void reach(int32_t node, When side);
  int64_t around(int32_t node);
  int32_t bottleneck(int32_t node);
  int64_t together(int32_t node, int64_t known, int32_t depth);
  int64_t ownNeed(int32_t node) const;

  const Model &model;
  std::span<const int32_t> order;
  int64_t left; ///< of the effort
  LeastLevel level;
  int64_t resident = 0;
  std::vector<Precedence> further;
  std::vector<When> when;     ///< by the last look around an operator
  std::vector<int32_t> stack; ///< of reach()
  std::vector<int32_t> open;
  Assignment device;
  Steps holdings;
  std::vector<int64_t> needs; ///< per node: bytes while it runs in `order`
  int64_t peak = 0;
  std::vector<int32_t> involved;
};

std::vector<int64_t>
FloorFinder::needsOf(std::span<const int32_t> order) const {
  std::vector<int64_t> found(model.numNodes);
  Levels levels(holdings);
  for (int32_t node : order) {
    found[node] = levels.level[0] + levels.need(node);
    levels.begin(node);
    levels.end(node);
  }
  return found;
}

/// What it makes and works in; what it reads is held already.
int64_t FloorFinder::ownNeed(int32_t node) const {
  int64_t bytes = model.scratch[node];
  for (int32_t t = model.firstTensor[node]; t < model.firstTensor[node + 1];
       ++t)
    bytes += model.memory[t];
  return bytes;
}

/// Those that need most in the order, few of each part of it. What takes no
/// time holds nothing for its own sake.
std::vector<int32_t> FloorFinder::candidates() const {
  std::vector<int32_t> place(model.numNodes), sorted, found;
  for (int32_t k = 0; k < model.numNodes; ++k)
    place[order[k]] = k;
  for (int32_t node : order)
    if (!holdings.isInstant(node))
      sorted.push_back(node);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int32_t a, int32_t b) { return needs[a] > needs[b]; });
  std::vector<size_t> taken(parts, 0);
  for (int32_t node : sorted) {
    size_t &ofPart =
        taken[static_cast<int64_t>(place[node]) * parts / model.numNodes];
    if (found.size() < mostAlone && ofPart < mostOfPart) {
      ++ofPart;
      found.push_back(node);
    }
  }
  return found;
}

/// All that must be on a side of a node, the node itself not among it.
void FloorFinder::reach(int32_t node, When side) {
  auto top = stack.begin();
  *top++ = node;
  while (top != stack.begin()) {
    int32_t at = *--top;
    auto visit = [&](int32_t other) {
      --left;
      if (when[other] == When::Either && other != node) {
        when[other] = side;
        *top++ = other;
      }
    };
    if (side == When::Before)
      model.forEachSource(at, visit);
    else
      model.forEachUser(at, visit);
    for (auto [before, after] : further)
      if (at == (side == When::Before ? after : before))
        visit(side == When::Before ? before : after);
  }
}

/// Bytes while a node runs, at the least; -1: not found.
int64_t FloorFinder::around(int32_t node) {
  std::fill(when.begin(), when.end(), When::Either);
  reach(node, When::Before);
  when[node] = When::After;
  reach(node, When::After);
  open.clear();
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (when[i] == When::Either)
      open.push_back(i);
  left -= model.numNodes;
  if (!level.decide(open, when, further, left))
    return -1;
  return resident + level.held(when) + ownNeed(node);
}

/// What needs most when all runs first that \p node was looked at after.
int32_t FloorFinder::bottleneck(int32_t node) {
  std::vector<int32_t> split;
  for (int32_t i : order)
    if (when[i] == When::Before)
      split.push_back(i);
  split.push_back(node);
  for (int32_t i : order)
    if (when[i] == When::After && i != node)
      split.push_back(i);
  std::vector<int64_t> found = needsOf(split);
  left -= model.numNodes;
  return static_cast<int32_t>(std::max_element(found.begin(), found.end()) -
                              found.begin());
}

/// A bound given what is known to come first; \p known: what \p node has, with
/// `when` of that.
int64_t FloorFinder::together(int32_t node, int64_t known, int32_t depth) {
  int32_t other = bottleneck(node);
  if (depth == 0 || other == node || holdings.isInstant(other))
    return known;
  // Is one of the two first in any order? Then no case is gained.
  std::fill(when.begin(), when.end(), When::Either);
  reach(node, When::Before);
  reach(node, When::After);
  if (when[other] != When::Either)
    return known;
  int64_t least = never;
  for (Precedence each : {Precedence{other, node}, Precedence{node, other}}) {
    further.push_back(each);
    int64_t bytes = std::max({known, around(other), around(node)});
    if (bytes < peak && left > 0)
      bytes = together(node, bytes, depth - 1);
    least = std::min(least, bytes);
    further.pop_back();
    if (least <= known)
      break;
  }
  if (least > known)
    involved.push_back(other);
  return least;
}

OrderFloor FloorFinder::run() {
  OrderFloor best{resident, {}};
  if (model.numNodes == 0)
    return best;
  needs = needsOf(order);
  peak = *std::max_element(needs.begin(), needs.end());
  std::vector<int32_t> all = candidates();
  for (int32_t node : all)
    if (needs[node] > best.bytes && left > 0)
      if (int64_t bytes = around(node); bytes > best.bytes)
        best = {bytes, {node}};
  if (all.size() > mostTogether)
    all.resize(mostTogether);
  for (int32_t node : all) {
    if (best.bytes >= peak || left <= 0)
      break;
    int64_t bytes = around(node);
    if (needs[node] <= best.bytes || bytes < 0)
      continue;
    involved.assign(1, node);
    bytes = together(node, bytes, deepest);
    if (bytes > best.bytes)
      best = {bytes, involved};
  }
  return best;
}

} // namespace

OrderFloor baechi::placement::memory::orderFloor(const Model &model,
                                                 std::span<const int32_t> order,
                                                 int64_t steps) {
  return FloorFinder(model, order, steps, model.memory).run();
}

OrderFloor baechi::placement::memory::orderFloorOfAll(
    const Model &model, std::span<const int32_t> order, int64_t steps) {
  // What waits elsewhere does so as a copy.
  std::vector<int64_t> bytes;
  for (int32_t t = 0; t < model.numTensors; ++t)
    bytes.push_back(std::min(model.memory[t], model.copy[t]));
  return FloorFinder(model, order, steps, bytes).run();
}
