//===- HostDriver.h - Devices that are threads ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_HOST_HOSTDRIVER_H
#define BAECHI_RUNTIME_DRIVERS_HOST_HOSTDRIVER_H

#include "core/Driver.h"

namespace baechi::runtime {

/// A device that runs its entry on its own thread, with an arena in host
/// memory.
std::unique_ptr<Driver> makeHostDriver(const DeviceInfo &device, Entry entry,
                                       const Share &share);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_DRIVERS_HOST_HOSTDRIVER_H
