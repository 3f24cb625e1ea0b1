//===- DeviceClasses.h - Devices that are alike -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_DEVICECLASSES_H
#define BAECHI_LIB_PLACEMENT_DEVICECLASSES_H

#include "Model/Model.h"

namespace baechi::placement {

/// Devices of one kind and one memory that the same units may use.
struct DeviceClass {
  std::vector<int32_t> devices;
  int64_t memory = 0;
  bool isStage = false; ///< transfers are staged through their memory

  int32_t front() const { return devices.front(); }
  int32_t size() const { return static_cast<int32_t>(devices.size()); }
};

/// In the order of their first devices.
std::vector<DeviceClass> deviceClasses(const Model &model);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_DEVICECLASSES_H
