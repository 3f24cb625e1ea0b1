//===- Fit.cpp - Assignments that only have to fit --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Orders.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// The device with the most memory of those that a unit may use.
int32_t largestFor(const Model &model, Unit u) {
  int32_t best = -1;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (model.mayUse(u, d) &&
        (best < 0 || model.deviceMemory(d) > model.deviceMemory(best)))
      best = d;
  return best;
}

/// Everything on the largest device.
Assignment together(const Model &model) {
  Assignment device(model.numNodes);
  for (Unit u = 0; u < model.numUnits; ++u)
    for (int32_t i : model.members[u])
      device[i] = largestFor(model, u);
  return device;
}

/// Units by their first operator in topological order, cut into as many pieces
/// as there are devices: what each holds, parameters and all its tensors, in
/// proportion to the memories.
Assignment inPieces(const Model &model) {
  std::vector<double> bytes(model.numUnits, 0);
  std::vector<Unit> order;
  std::vector<uint8_t> seen(model.numUnits, 0);
  for (int32_t i : model.order) {
    Unit u = model.unit[i];
    auto [begin, end] = model.tensorsOf(i);
    bytes[u] += static_cast<double>(model.resident[i]);
    for (int32_t t = begin; t < end; ++t)
      bytes[u] += static_cast<double>(model.memory[t]);
    if (!seen[u]) {
      seen[u] = 1;
      order.push_back(u);
    }
  }
  double left = std::accumulate(bytes.begin(), bytes.end(), 0.0), room = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    room += static_cast<double>(model.deviceMemory(d));
  Assignment device(model.numNodes);
  int32_t d = 0;
  double share = 0;
  auto open = [&] {
    auto memory = static_cast<double>(model.deviceMemory(d));
    share = room > 0 ? left * memory / room : left;
    room -= memory;
  };
  open();
  for (Unit u : order) {
    while (d + 1 < model.numDevices && share < bytes[u] / 2) {
      ++d;
      open();
    }
    share -= bytes[u];
    left -= bytes[u];
    int32_t at = model.mayUse(u, d) ? d : largestFor(model, u);
    for (int32_t i : model.members[u])
      device[i] = at;
  }
  return device;
}

} // namespace

void baechi::placement::memory::packUnits(const Model &model,
                                          Assignment &device) {
  std::vector<std::tuple<int64_t, int64_t, Unit>> keys;
  for (Unit u = 0; u < model.numUnits; ++u) {
    auto row =
        model.allowed.begin() + static_cast<ptrdiff_t>(u) * model.numDevices;
    keys.emplace_back(std::count(row, row + model.numDevices, 1),
                      -model.unitResident[u], u);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int64_t> room;
  for (int32_t d = 0; d < model.numDevices; ++d)
    room.push_back(model.deviceMemory(d));
  device.resize(model.numNodes);
  for (const auto &[count, bytes, u] : keys) {
    int32_t target = -1;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(u, d) && (target < 0 || room[d] > room[target]))
        target = d;
    room[target] += bytes;
    for (int32_t i : model.members[u])
      device[i] = target;
  }
}

bool baechi::placement::memory::findFit(const Model &model, LeanOrders &lean,
                                        Assignment &device) {
  int64_t least = never;
  bool first = true;
  Assignment packed;
  packUnits(model, packed);
  for (const Assignment &start : {inPieces(model), together(model), packed}) {
    Assignment found = start;
    if (repair(model, found, thoroughRepair, lean.get())) {
      device = std::move(found);
      return true;
    }
    int64_t excess = excessOf(model, leastPeaks(model, lean, found));
    if (first || excess < least) {
      least = excess;
      device = std::move(found);
      first = false;
    }
  }
  return false;
}
