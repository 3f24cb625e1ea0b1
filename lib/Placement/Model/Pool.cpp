//===- Pool.cpp - Devices that only hold and copy -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Pool.h"

#include <algorithm>

using namespace baechi::placement;

std::vector<int32_t> baechi::placement::poolsOf(const Machine &machine) {
  std::vector<int32_t> pools;
  for (size_t d = 0; d < machine.devices.size(); ++d)
    if (isPool(machine.devices[d]))
      pools.push_back(static_cast<int32_t>(d));
  return pools;
}

int32_t baechi::placement::numComputing(const Machine &machine) {
  auto pools =
      std::count_if(machine.devices.begin(), machine.devices.end(), isPool);
  return static_cast<int32_t>(machine.devices.size()) -
         static_cast<int32_t>(pools);
}

int64_t baechi::placement::computingBytes(const Machine &machine) {
  int64_t bytes = 0;
  for (const Device &device : machine.devices)
    bytes += isPool(device) ? 0 : device.memory;
  return bytes;
}

Machine baechi::placement::withoutPools(const Machine &machine) {
  Machine rest = machine;
  rest.devices.clear();
  rest.links.clear();
  auto count = static_cast<int32_t>(machine.devices.size());
  for (int32_t from = 0; from < count; ++from) {
    if (isPool(machine.devices[from]))
      continue;
    rest.devices.push_back(machine.devices[from]);
    for (int32_t to = 0; to < count; ++to)
      if (!isPool(machine.devices[to]))
        rest.links.push_back(machine.link(from, to));
  }
  return rest;
}
