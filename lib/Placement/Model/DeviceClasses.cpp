//===- DeviceClasses.cpp - Devices that are alike ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/DeviceClasses.h"

#include <algorithm>

using namespace baechi::placement;

std::vector<DeviceClass> baechi::placement::deviceClasses(const Model &model) {
  const Machine &machine = *model.machine;
  std::vector<DeviceClass> classes;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    const Device &device = machine.devices[d];
    auto isLike = [&](const DeviceClass &other) {
      int32_t e = other.front();
      if (machine.devices[e].kind != device.kind ||
          other.memory != device.memory)
        return false;
      for (Unit u = 0; u < model.numUnits; ++u)
        if (model.mayUse(u, d) != model.mayUse(u, e))
          return false;
      return true;
    };
    auto it = std::find_if(classes.begin(), classes.end(), isLike);
    if (it == classes.end()) {
      classes.push_back({{}, device.memory, machine.isStage(d)});
      it = std::prev(classes.end());
    }
    it->devices.push_back(d);
  }
  return classes;
}
