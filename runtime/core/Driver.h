//===- Driver.h - What a kind of device must do -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A driver is one device of a session. drivers/null is the skeleton to clone
/// for a new kind; unittests/Runtime/ConformanceTest.cpp is what it must pass.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_DRIVER_H
#define BAECHI_RUNTIME_CORE_DRIVER_H

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Error.h"
#include "Baechi/Runtime/Program.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace baechi::runtime {

/// A device's lowered step.
using Entry = int32_t (*)(baechi_context *context, char *arena);

class Driver {
public:
  virtual ~Driver() = default;

  /// Gets the device ready: memory, zeroed, and whatever it runs on. Called
  /// once, on the device's own thread, which has been pinned.
  virtual Error start() = 0;

  /// Runs one step on the device's own thread: nonzero when it was aborted or
  /// failed. Must not allocate.
  virtual int32_t run(baechi_context *context) = 0;

  /// Copies into and out of the arena. Called between steps.
  virtual void write(int64_t offset, const void *data, size_t bytes) = 0;
  virtual void read(int64_t offset, void *data, size_t bytes) const = 0;
};

/// A row of the table of drivers.
struct DriverKind {
  std::string_view name;
  /// Calls the device's entry, which must therefore exist.
  bool runsEntry;
  /// The arena is host memory: it counts against the machine's, and messages
  /// between two such devices are copied with memcpy. Otherwise there is no
  /// data to move.
  bool hostMemory;
  std::unique_ptr<Driver> (*make)(const DeviceInfo &device, Entry entry);
};

/// The driver for a device kind; null when this build has none.
const DriverKind *findDriver(std::string_view kind);
/// "host, null", for messages.
std::string driverNames();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_DRIVER_H
