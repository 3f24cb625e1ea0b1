//===- DiskDriver.h - A device whose memory is a file -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_DISK_DISKDRIVER_H
#define BAECHI_RUNTIME_DRIVERS_DISK_DISKDRIVER_H

#include "core/Driver.h"

namespace baechi::runtime {

/// Its arena is a file without a name in the folder BAECHI_DISK, or in that for
/// temporary files: it goes with the process, however that ends. It talks to
/// devices whose arenas are host memory.
std::unique_ptr<Driver> makeDiskDriver(const DeviceInfo &device, Entry entry,
                                       const Share &share);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_DRIVERS_DISK_DISKDRIVER_H
