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
#include "core/Asynchronous.h"
#include "core/Port.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::runtime {

/// A device's lowered step.
using Entry = int32_t (*)(baechi_context *context, char *arena);

/// Memory of who calls a step, for a part of a device's arena.
struct CallerMemory {
  int64_t offset;
  void *memory;
  size_t bytes;
  /// It is copied into the arena; else out of it.
  bool in;
};

class Driver {
public:
  virtual ~Driver() = default;

  /// Gets the device ready: memory, zeroed, and whatever it runs on. Called
  /// once, on the device's own thread, which has been pinned.
  virtual Error start() = 0;

  /// Runs through the step without doing it, once, on the device's own thread
  /// after start(): what its work has to load, look for or allocate is there
  /// before any other device may wait for this one. What fails in that aborts
  /// the step; that the step function itself gives up does not.
  virtual void rehearse(baechi_context & /*context*/) {}

  /// Runs one step on the device's own thread: nonzero when it was aborted or
  /// failed. Must not allocate.
  virtual int32_t run(baechi_context *context) = 0;

  /// From the next step on, each operator's time in the timeline is that of
  /// many repeats, where the host would take as long to begin it once. Asked of
  /// the only device of a program, between steps.
  virtual void repeatOperators() {}

  /// Whether any thread may do so in place of the device's own.
  virtual bool runsAnywhere() const { return false; }

  /// Copies into and out of the arena. Called between steps.
  virtual Error write(int64_t offset, const void *data, size_t bytes) = 0;
  virtual Error read(int64_t offset, void *data, size_t bytes) const = 0;

  /// Memory of the caller's that the next step copies to the arena before all
  /// else (`in`), or from there when it has done all else: nobody waits for it
  /// but the step's end. False: the device does not do that, write() and read()
  /// do. Called between steps.
  virtual Expected<bool> lend(const CallerMemory & /*memory*/) { return false; }
  /// The caller's memory is used no more, whether a step ran or not.
  virtual void forgetLent() {}

  /// Asks that the next step end, for the host, when the device has been told
  /// all of it, the copies of what is lent included; false: it will end as
  /// others do. Called between steps.
  virtual bool endLater() { return false; }
  /// After such a step: an event of the device's, which is the caller's, that
  /// is reached when it has done all of it; null where it has ended already.
  virtual void *takeEnd() { return nullptr; }

  /// The arena, where it is host memory.
  virtual std::span<char> hostArena() { return {}; }

  /// What moves messages between this device, whose memory is its own, and
  /// `other`, which sends if `otherSends`. Called after both have started.
  virtual Expected<std::unique_ptr<Mover>>
  connect(Driver & /*other*/, bool /*otherSends*/,
          const std::vector<MessageInfo> & /*messages*/) {
    return Error("messages of this device cannot be moved");
  }

  /// Bytes that the device's memory holds beside the arenas, by its driver:
  /// code, graphs, libraries. Devices that share it tell the sum. 0 where
  /// nothing tells.
  virtual int64_t besideArena() const { return 0; }

  /// False when it failed for good: no further step can run.
  virtual bool usable() const { return true; }
};

/// Devices of these kinds hold and copy, and compute nothing.
inline bool isPoolKind(std::string_view kind) {
  return kind == "pool" || kind == "disk";
}

/// Where a device's data lie.
enum class Memory : uint8_t {
  None, ///< there are none
  Host, ///< counted against the machine's; copied with memcpy
  Own,  ///< Driver::connect says how messages move
};

/// Which device it is of those of its kind that share what there is: the GPUs
/// that a process sees, say.
struct Share {
  int32_t ordinal = 0;
  int32_t count = 1;
  /// The bytes of the arenas of all of them, by their ordinals, of whatever
  /// process they are.
  std::vector<int64_t> arenas;
};

class Ranks;

/// The devices of a program over several ranks, as each of them knows them.
struct RankDevices {
  Ranks &ranks;
  const Program &program;
  /// Of each device.
  const std::vector<int32_t> &owners;
  const std::vector<Share> &shares;
  const std::vector<std::unique_ptr<Driver>> &drivers;
  /// Of each rank: what DriverKind::inventory told there.
  const std::vector<std::string> &inventories;
};

/// A row of the table of drivers.
struct DriverKind {
  std::string_view name;
  /// Calls the device's entry, which must therefore exist.
  bool runsEntry;
  Memory memory;
  std::unique_ptr<Driver> (*make)(const DeviceInfo &device, Entry entry,
                                  const Share &share);
  /// Over several ranks: what the devices of this process can lie on, for the
  /// others. Processes that tell the same share it. Null: it is their own.
  std::string (*inventory)() = nullptr;
  /// By all ranks, when all devices have started: ports for the queues between
  /// ranks. An error is the same on all of them. Null: the transport reaches
  /// the devices' memory.
  Expected<RankConnections> (*connectRanks)(const RankDevices &devices) =
      nullptr;
};

/// The driver for a device kind; null when this build has none. The table is
/// session/Drivers.cpp.
const DriverKind *findDriver(std::string_view kind);
/// "host, null", for messages.
std::string driverNames();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_DRIVER_H
