//===- FakeMemory.cpp - Memory of devices and the host -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <algorithm>
#include <cstring>

using namespace fakecuda;

extern "C" {

int cuMemGetInfo_v2(size_t *free, size_t *total) {
  return call("cuMemGetInfo", true, [&](Engine &engine) {
    *total = engine.options.memoryBytes;
    *free = *total - std::min(*total, engine.takenBytes());
    return success;
  });
}
/// As of memory that is not CUDA's: an invalid value. Of memory that has been
/// given back nothing is known either.
int cuPointerGetAttribute(void *value, int attribute,
                          unsigned long long pointer) {
  return call("cuPointerGetAttribute", true, [&](Engine &engine) {
    auto next = engine.allocations.upper_bound(pointer);
    if (next == engine.allocations.begin())
      return invalidValue;
    const auto &[begin, allocation] = *std::prev(next);
    if (pointer - begin >= allocation.bytes)
      return invalidValue;
    bool isHost = allocation.device == Engine::host;
    if (attribute == 2) // the type of memory: the host's, or a device's
      *static_cast<unsigned *>(value) = isHost ? 1 : 2;
    else if (attribute == 9 && !isHost) // the device's ordinal
      *static_cast<int *>(value) = allocation.device;
    else
      return invalidValue;
    return success;
  });
}
int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
  return call("cuMemAlloc", true, [&](Engine &engine) {
    load(engine, "memory is allocated");
    if (bytes == 0)
      return misuse(engine, "an allocation of no bytes", invalidValue);
    if (engine.takenBytes() + bytes > engine.options.memoryBytes)
      return outOfMemory;
    void *memory = engine.map(bytes);
    // Nobody may count on what is in it.
    std::memset(memory, 0xa5, bytes);
    auto begin = reinterpret_cast<uintptr_t>(memory);
    engine.allocations[begin] = {bytes, Engine::current->device,
                                 Engine::current};
    engine.usedBytes += bytes;
    engine.checker.allocate(begin, bytes);
    *pointer = begin;
    return success;
  });
}
int cuMemFree_v2(unsigned long long pointer) {
  return call("cuMemFree", true, [&](Engine &engine) {
    auto it = engine.allocations.find(pointer);
    engine.checker.free(pointer);
    if (it == engine.allocations.end() || it->second.device == Engine::host)
      return invalidValue;
    engine.usedBytes -= it->second.bytes;
    engine.unmap(it->first, it->second.bytes);
    engine.allocations.erase(it);
    return success;
  });
}

int cuMemHostRegister_v2(void *memory, size_t, unsigned) {
  return call("cuMemHostRegister", true, [&](Engine &engine) {
    return engine.registered.emplace(memory, Engine::current).second
               ? success
               : alreadyRegistered;
  });
}
int cuMemHostUnregister(void *memory) {
  return call("cuMemHostUnregister", true, [&](Engine &engine) {
    return engine.registered.erase(memory)
               ? success
               : misuse(engine, "memory is unpinned that is not pinned",
                        invalidValue);
  });
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  return call("cuMemHostAlloc", true, [&](Engine &engine) {
    if (bytes == 0)
      return misuse(engine, "an allocation of no bytes", invalidValue);
    *memory = engine.map(bytes);
    std::memset(*memory, 0xa5, bytes);
    auto begin = reinterpret_cast<uintptr_t>(*memory);
    engine.allocations[begin] = {bytes, Engine::host, Engine::current};
    engine.checker.allocate(begin, bytes);
    return success;
  });
}
int cuMemFreeHost(void *memory) {
  return call("cuMemFreeHost", true, [&](Engine &engine) {
    auto it = engine.allocations.find(reinterpret_cast<uintptr_t>(memory));
    engine.checker.free(reinterpret_cast<uintptr_t>(memory));
    if (it == engine.allocations.end() || it->second.device != Engine::host)
      return invalidValue;
    engine.unmap(it->first, it->second.bytes);
    engine.allocations.erase(it);
    return success;
  });
}
}
