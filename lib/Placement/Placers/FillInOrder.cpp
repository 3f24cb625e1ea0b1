//===- FillInOrder.cpp - m-TOPO ---------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Placers.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// What every unit asks of its device, and whether that is memory or work.
struct Needs {
  std::vector<int64_t> of;
  bool areBytes = false;
  int64_t total = 0, largest = 0;

  explicit Needs(const Model &model);
};

Needs::Needs(const Model &model) : of(model.numUnits, 0) {
  std::vector<int64_t> work(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    Unit u = model.unit[i];
    auto [begin, end] = model.tensorsOf(i);
    of[u] += model.resident[i];
    for (int32_t t = begin; t < end; ++t)
      of[u] += model.memory[t];
    work[u] += model.meanTime(i);
  }
  areBytes = std::any_of(of.begin(), of.end(),
                         [](int64_t bytes) { return bytes > 0; });
  if (!areBytes)
    of = std::move(work);
  total = std::accumulate(of.begin(), of.end(), int64_t(0));
  if (!of.empty())
    largest = *std::max_element(of.begin(), of.end());
}

/// The share s for which the devices, each up to min(s, its memory), hold
/// \p total; the largest memory when they cannot.
int64_t evenShare(const Model &model, int64_t total) {
  std::vector<int64_t> memories;
  for (int32_t d = 0; d < model.numDevices; ++d)
    memories.push_back(model.deviceMemory(d));
  std::sort(memories.begin(), memories.end());
  for (size_t k = 0; k < memories.size(); ++k) {
    int64_t share = total / static_cast<int64_t>(memories.size() - k);
    if (share <= memories[k])
      return share;
    total -= memories[k];
  }
  return memories.back();
}

} // namespace

Assignment baechi::placement::placers::fillInOrder(const Model &model,
                                                   Fill fill) {
  Needs needs(model);
  std::vector<int64_t> room(model.numDevices), rest(model.numDevices, 0);
  int64_t share = needs.areBytes ? evenShare(model, needs.total)
                                 : needs.total / model.numDevices;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    int64_t memory = model.deviceMemory(d);
    if (fill == Fill::NonUniform)
      room[d] = memory;
    else if (needs.areBytes)
      room[d] = std::min(share + needs.largest, memory);
    else
      room[d] = share + needs.largest;
    // What it could hold beyond its share.
    rest[d] = needs.areBytes ? memory - room[d] : 0;
  }

  std::vector<int32_t> deviceOf(model.numUnits, -1);
  int32_t current = 0;
  for (int32_t i : model.order) {
    Unit u = model.unit[i];
    if (deviceOf[u] >= 0)
      continue;
    while (current + 1 < model.numDevices && needs.of[u] > room[current] &&
           model.mayUse(u, current))
      ++current;
    int32_t target = current;
    if (!model.mayUse(u, current) || needs.of[u] > room[current]) {
      target = -1;
      for (int32_t d = 0; d < model.numDevices; ++d)
        if (model.mayUse(u, d) &&
            (target < 0 || room[d] + rest[d] > room[target] + rest[target]))
          target = d;
    }
    deviceOf[u] = target;
    room[target] -= needs.of[u];
  }
  Assignment device(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    device[i] = deviceOf[model.unit[i]];
  return device;
}
