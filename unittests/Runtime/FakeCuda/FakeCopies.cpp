//===- FakeCopies.cpp - Copies that land when they like -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A synchronous copy of pageable memory to a device is the legacy stream's,
/// for which streams that do not block do not wait; it returns when the data
/// are staged, before they have landed. An asynchronous copy reads the host's
/// memory when its stream comes to it: who lets go of it before is found.
///
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <cstring>
#include <memory>

using namespace fakecuda;

static void *pointer(uintptr_t address) {
  return reinterpret_cast<void *>(address);
}

/// A copy that `on` comes to.
static void enqueueCopy(Engine &engine, FakeStream &on, uintptr_t to,
                        uintptr_t from, size_t bytes, const char *who) {
  beginStep(engine, on);
  engine.checker.use(on.timeline, from, bytes, false, who);
  engine.checker.use(on.timeline, to, bytes, true, who);
  engine.enqueue(on, {nullptr, 0,
                      [=] { std::memcpy(pointer(to), pointer(from), bytes); }});
}

static int copyAsync(const char *name, uintptr_t to, uintptr_t from,
                     size_t bytes, FakeStream *stream) {
  return call(name, true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, std::string(name) + " on a dead stream",
                    invalidHandle);
    for (uintptr_t address : {from, to})
      if (!engine.reaches(*stream->context, address, "a copy"))
        return invalidValue;
    return engine.issue(*stream, [=, &engine](FakeStream &on) {
      enqueueCopy(engine, on, to, from, bytes, "a copy");
    });
  });
}

extern "C" {

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  return call("cuMemcpyHtoD", true, [&](Engine &engine) {
    FakeStream &legacy = engine.legacyOf(*Engine::current);
    beginStep(engine, legacy);
    engine.checker.use(legacy.timeline, to, bytes, true, "cuMemcpyHtoD");
    const char *begin = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    engine.enqueue(legacy, {nullptr, 0, [=] {
                              std::memcpy(pointer(to), staged->data(), bytes);
                            }});
    return success;
  });
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes,
                         FakeStream *stream) {
  return copyAsync("cuMemcpyHtoDAsync", to, reinterpret_cast<uintptr_t>(from),
                   bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes,
                         FakeStream *stream) {
  return copyAsync("cuMemcpyDtoHAsync", reinterpret_cast<uintptr_t>(to), from,
                   bytes, stream);
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes,
                  FakeStream *stream) {
  return copyAsync("cuMemcpyAsync", to, from, bytes, stream);
}

int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes,
                    FakeStream *stream) {
  return call("cuMemsetD8Async", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuMemsetD8Async on a dead stream", invalidHandle);
    beginStep(engine, *stream);
    engine.checker.use(stream->timeline, to, bytes, true, "a memset");
    engine.enqueue(
        *stream, {nullptr, 0, [=] { std::memset(pointer(to), value, bytes); }});
    return success;
  });
}
}
