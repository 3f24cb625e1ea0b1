//===- NullDriver.h - Devices that only walk the protocol -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_NULL_NULLDRIVER_H
#define BAECHI_RUNTIME_DRIVERS_NULL_NULLDRIVER_H

#include "core/Driver.h"

namespace baechi::runtime {

/// A device without memory or code: each step it offers all its messages,
/// passes through its operators and waits for its messages. It shows what the
/// protocol alone costs, and stands in for a device that is not here.
std::unique_ptr<Driver> makeNullDriver(const DeviceInfo &device, Entry entry,
                                       const Share &share);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_DRIVERS_NULL_NULLDRIVER_H
