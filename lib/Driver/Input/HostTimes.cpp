//===- HostTimes.cpp - What was measured of a host, in a machine ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/HostTimes.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/ADT/STLExtras.h"

using namespace baechi;

bool baechi::isHostMemory(const placement::Device &device) {
  return device.kind == "host" || device.kind == placement::kPool;
}

llvm::SmallVector<int32_t>
baechi::devicesWhere(const placement::Machine &machine,
                     bool (*holds)(const placement::Device &)) {
  llvm::SmallVector<int32_t> found;
  for (auto [number, device] : llvm::enumerate(machine.devices))
    if (holds(device))
      found.push_back(number);
  return found;
}

void baechi::setMeasured(placement::Machine &machine, size_t from, size_t to,
                         const placement::Link &measured) {
  auto &link = machine.links[from * machine.devices.size() + to];
  bool lends = link && link->lends;
  link = measured;
  link->lends = lends;
}

void baechi::setHostLinks(placement::Machine &machine,
                          const placement::Link &link) {
  llvm::SmallVector<int32_t> inMemory = devicesWhere(machine, isHostMemory);
  for (int32_t from : inMemory)
    for (int32_t to : inMemory)
      if (from != to)
        setMeasured(machine, from, to, link);
}

void baechi::setRuntime(placement::Machine &machine,
                        const placement::RuntimeCosts &runtime, int64_t cores) {
  machine.runtime = runtime;
  int64_t hosts =
      llvm::count_if(machine.devices, [](const placement::Device &device) {
        return device.kind == "host";
      });
  machine.runtime->cores = hosts > cores ? cores : 0;
}

std::optional<HostTimes>
baechi::hostTimesOf(const placement::Machine &machine) {
  llvm::SmallVector<int32_t> inMemory = devicesWhere(machine, isHostMemory);
  if (!machine.runtime || inMemory.size() < machine.devices.size())
    return std::nullopt;
  HostTimes times{runtime::queryHost().cores, *machine.runtime};
  if (inMemory.size() > 1)
    times.link = machine.links[size_t(inMemory[0]) * machine.devices.size() +
                               size_t(inMemory[1])];
  return times;
}

bool baechi::setHostTimes(placement::Machine &machine, const HostTimes &times) {
  size_t inMemory = devicesWhere(machine, isHostMemory).size();
  if (inMemory < machine.devices.size() || (inMemory > 1 && !times.link))
    return false;
  if (inMemory > 1)
    setHostLinks(machine, *times.link);
  setRuntime(machine, times.runtime, times.cores);
  return true;
}
