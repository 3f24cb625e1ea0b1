//===- HostDriver.cpp - Devices that are threads --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/host/HostDriver.h"

#include "Baechi/Runtime/Denormals.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

using namespace baechi::runtime;

namespace {

/// Arenas from this size on are aligned for, and advised to use, huge pages:
/// fewer TLB misses in kernels that stream through them.
constexpr size_t hugePage = size_t(2) << 20;
constexpr size_t cacheLine = 64;

class HostDriver final : public Driver {
public:
  HostDriver(const DeviceInfo &device, Entry entry)
      : bytes(static_cast<size_t>(device.arenaBytes)), entry(entry) {}
  ~HostDriver() override { std::free(arena); }

  Error start() override {
    flushDenormals();
    size_t alignment = bytes >= hugePage ? hugePage : cacheLine;
    void *memory = nullptr;
    if (posix_memalign(&memory, alignment, bytes ? bytes : alignment) != 0)
      return Error("cannot allocate an arena of " + std::to_string(bytes) +
                   " bytes");
    arena = static_cast<char *>(memory);
    if (alignment == hugePage)
      madvise(arena, bytes / hugePage * hugePage, MADV_HUGEPAGE);
    // The first touch puts the pages on this thread's memory node.
    std::memset(arena, 0, bytes);
    return Error();
  }

  int32_t run(baechi_context *context) override {
    return entry(context, arena);
  }
  bool runsAnywhere() const override { return true; }

  Error write(int64_t offset, const void *data, size_t size) override {
    std::memcpy(arena + offset, data, size);
    return Error();
  }
  Error read(int64_t offset, void *data, size_t size) const override {
    std::memcpy(data, arena + offset, size);
    return Error();
  }
  std::span<char> hostArena() override { return {arena, bytes}; }

private:
  size_t bytes;
  Entry entry;
  char *arena = nullptr;
};

} // namespace

std::unique_ptr<Driver>
baechi::runtime::makeHostDriver(const DeviceInfo &device, Entry entry,
                                const Share &) {
  return std::make_unique<HostDriver>(device, entry);
}
