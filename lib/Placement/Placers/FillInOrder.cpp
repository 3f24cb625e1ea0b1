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

Assignment baechi::placement::fillInOrder(const Model &model) {
  std::vector<int64_t> need(model.numUnits, 0), work(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    Unit u = model.unit[i];
    auto [begin, end] = model.tensorsOf(i);
    need[u] += model.resident[i];
    for (int32_t t = begin; t < end; ++t)
      need[u] += model.memory[t];
    work[u] += model.meanTime(i);
  }
  bool byMemory = std::any_of(need.begin(), need.end(),
                              [](int64_t bytes) { return bytes > 0; });
  if (!byMemory)
    need = work;
  int64_t total = std::accumulate(need.begin(), need.end(), int64_t(0));
  int64_t largest =
      need.empty() ? 0 : *std::max_element(need.begin(), need.end());
  std::vector<int64_t> room(model.numDevices,
                            total / model.numDevices + largest);
  // What a device could hold beyond its share.
  std::vector<int64_t> rest(model.numDevices, 0);
  if (byMemory)
    for (int32_t d = 0; d < model.numDevices; ++d) {
      rest[d] = std::max<int64_t>(0, model.deviceMemory(d) - room[d]);
      room[d] = std::min(room[d], model.deviceMemory(d));
    }

  std::vector<int32_t> deviceOf(model.numUnits, -1);
  int32_t current = 0;
  for (int32_t i : model.order) {
    Unit u = model.unit[i];
    if (deviceOf[u] >= 0)
      continue;
    while (current + 1 < model.numDevices && need[u] > room[current] &&
           model.mayUse(u, current))
      ++current;
    // Where the current device cannot or has no room: the roomiest that can,
    // beyond its share.
    int32_t target = current;
    if (!model.mayUse(u, current) || need[u] > room[current]) {
      target = -1;
      for (int32_t d = 0; d < model.numDevices; ++d)
        if (model.mayUse(u, d) &&
            (target < 0 || room[d] + rest[d] > room[target] + rest[target]))
          target = d;
    }
    deviceOf[u] = target;
    room[target] -= need[u];
  }
  Assignment device(model.numNodes);
  for (int32_t i = 0; i < model.numNodes; ++i)
    device[i] = deviceOf[model.unit[i]];
  return device;
}
