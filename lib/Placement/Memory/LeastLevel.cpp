//===- LeastLevel.cpp - What may be done by a moment ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/LeastLevel.h"
#include "Model/MaxFlow.h"

using namespace baechi::placement;
using namespace baechi::placement::memory;

/// More than all bytes together.
static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 8;

LeastLevel::LeastLevel(const Model &model, std::span<const int64_t> bytes)
    : model(model), bytes(bytes), atNode(model.numNodes),
      isListed(model.numTensors, 0) {
  int64_t sum = 0;
  for (int64_t each : bytes)
    sum = std::min(sum, unlimited) + std::min(each, unlimited);
  tooLarge = sum >= unlimited;
}

/// Nodes: what is before, the source; what is after, the sink; each that is
/// open; each tensor whose users are before or open. A set of what is done has
/// all that it waits for: an arc leads from each operator to those, and none of
/// these arcs is cut.
bool LeastLevel::decide(std::span<const int32_t> open, std::vector<When> &when,
                        std::span<const Precedence> further, int64_t &steps,
                        std::span<const When> rather, int64_t price) {
  if (tooLarge)
    return false;
  constexpr int32_t source = 0, sink = 1;
  int32_t count = 2;
  tensors.clear();
  auto list = [&](int32_t t) {
    if (!isListed[t] && bytes[t] > 0)
      tensors.push_back(t);
    isListed[t] = 1;
  };
  for (int32_t node : open) {
    atNode[node] = count++;
    for (int32_t t = model.firstTensor[node]; t < model.firstTensor[node + 1];
         ++t)
      list(t);
    for (int32_t t : model.operands[node])
      list(t);
  }
  for (int32_t node : open) {
    for (int32_t t = model.firstTensor[node]; t < model.firstTensor[node + 1];
         ++t)
      isListed[t] = 0;
    for (int32_t t : model.operands[node])
      isListed[t] = 0;
  }
  auto placeOf = [&](int32_t node) {
    return when[node] == When::Before  ? source
           : when[node] == When::After ? sink
                                       : atNode[node];
  };
  MaxFlow<int64_t> flow(count + static_cast<int32_t>(tensors.size()));
  for (int32_t t : tensors) {
    int32_t own = count++, from = placeOf(model.producer[t]);
    if (from == sink)
      continue;
    bool isNeeded = model.keepsOutputs[model.producer[t]] != 0;
    for (int32_t user : model.users[t])
      isNeeded |= when[user] == When::After;
    steps -= static_cast<int64_t>(model.users[t].size());
    if (isNeeded) {
      if (from != source)
        flow.addArc(from, sink, bytes[t]);
      continue;
    }
    flow.addArc(from, own, bytes[t]);
    for (int32_t user : model.users[t])
      if (when[user] == When::Either)
        flow.addArc(own, atNode[user], unlimited);
  }
  for (int32_t node : open) {
    model.forEachSource(node, [&](int32_t other) {
      if (when[other] == When::Either)
        flow.addArc(atNode[node], atNode[other], unlimited);
    });
    if (rather.empty())
      continue;
    if (rather[node] == When::Before)
      flow.addArc(source, atNode[node], price);
    else
      flow.addArc(atNode[node], sink, price);
  }
  for (auto [first, then] : further)
    if (when[first] == When::Either && when[then] == When::Either)
      flow.addArc(atNode[then], atNode[first], unlimited);
  steps -= static_cast<int64_t>(flow.numArcs());
  flow.run(source, sink, steps);
  if (steps <= 0)
    return false;
  for (int32_t node : open)
    when[node] = flow.isAtSource(atNode[node]) ? When::Before : When::After;
  return true;
}

int64_t LeastLevel::held(std::span<const When> when) const {
  int64_t sum = 0;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t source = model.producer[t];
    if (when[source] != When::Before)
      continue;
    bool isNeeded = model.keepsOutputs[source] != 0;
    for (int32_t user : model.users[t])
      isNeeded |= when[user] != When::Before;
    sum += isNeeded ? bytes[t] : 0;
  }
  return sum;
}
