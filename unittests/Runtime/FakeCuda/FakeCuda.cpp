//===- FakeCuda.cpp - The driver's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "FakeEngine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace fakecuda;

namespace {

// CUDA's own numbers.
constexpr int success = 0, invalidValue = 1, outOfMemory = 2,
              invalidContext = 201, alreadyRegistered = 712,
              invalidHandle = 400, notFound = 500, notReady = 600,
              illegalAddress = 700, invalidImage = 200, noPeerAccess = 217,
              peerAlreadyEnabled = 704;

/// Counts a call; what it must answer before it does anything.
int enter(Engine &engine, FakeContext *context) {
  if (++engine.calls == engine.options.failCall)
    return engine.options.failWith;
  return context ? context->broken : success;
}

int misuse(Engine &engine, const std::string &what, int code) {
  engine.checker.blame(what);
  return code;
}

/// Runs the body of a call with the lock held, in the thread's context.
template <typename Body>
int call(const char *name, bool needsContext, Body body) {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  FakeContext *context = needsContext ? Engine::current : nullptr;
  if (int code = enter(engine, context))
    return code;
  if (needsContext && !context)
    return misuse(engine, std::string(name) + " without a current context",
                  invalidContext);
  return body(engine);
}

bool isAlive(Engine &engine, FakeStream *stream) {
  return engine.streams.count(stream) != 0;
}
bool isAlive(Engine &engine, FakeEvent *event) {
  return engine.events.count(event) != 0;
}

/// Begins a step of a stream: after all that the host has done and seen.
void beginStep(Engine &engine, FakeStream &stream) {
  engine.checker.order(stream.timeline, engine.checker.advance(Checker::host));
  engine.checker.advance(stream.timeline);
}

bool isIdle(Engine &, const FakeStream &stream) { return stream.work.empty(); }

/// The answer to a question that came too early. It is no call to count: how
/// often one asks depends on the machine.
int poll(Engine &engine, const FakeContext *context) {
  --engine.calls;
  return context->broken ? context->broken : notReady;
}

} // namespace

extern "C" {

void fakeCudaReset(const FakeOptions *options) {
  Engine::get().reset(*options);
}

int fakeCudaCalls() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  return engine.calls;
}

void fakeCudaRelease() { Engine::get().release(); }

const char *fakeCudaMisuse() {
  static std::string text;
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  text.clear();
  for (const std::string &line : engine.checker.misuses)
    text += line + "\n";
  auto left = [&](size_t count, const char *what) {
    if (count)
      text += std::to_string(count) + " " + what + " left\n";
  };
  left(engine.allocations.size(), "allocations");
  left(engine.streams.size(), "streams");
  left(engine.events.size(), "events");
  left(engine.modules.size(), "modules");
  left(engine.registered.size(), "pinned ranges");
  for (const auto &context : engine.contexts)
    left(size_t(context->retained), "uses of a context");
  return text.c_str();
}

int cuInit(unsigned) {
  return call("cuInit", false, [](Engine &) { return success; });
}

int cuGetErrorName(int error, const char **text) {
  *text = error == outOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == illegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == invalidHandle  ? "CUDA_ERROR_INVALID_HANDLE"
          : error == notFound       ? "CUDA_ERROR_NOT_FOUND"
          : error == invalidImage   ? "CUDA_ERROR_INVALID_IMAGE"
                                    : "CUDA_ERROR_UNKNOWN";
  return success;
}
int cuGetErrorString(int, const char **text) {
  *text = "a fake error";
  return success;
}

int cuDeviceGetCount(int *count) {
  return call("cuDeviceGetCount", false, [&](Engine &engine) {
    *count = engine.options.devices;
    return success;
  });
}
int cuDeviceGet(int *device, int ordinal) {
  return call("cuDeviceGet", false, [&](Engine &engine) {
    if (ordinal < 0 || ordinal >= engine.options.devices)
      return misuse(engine, "a device that is not there", invalidValue);
    *device = ordinal;
    return success;
  });
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  return call("cuDeviceCanAccessPeer", false, [&](Engine &engine) {
    *can = device != peer && engine.options.peerAccess;
    return success;
  });
}
int cuCtxEnablePeerAccess(FakeContext *peer, unsigned flags) {
  return call("cuCtxEnablePeerAccess", true, [&](Engine &engine) {
    if (flags != 0 || peer == Engine::current)
      return misuse(engine, "cuCtxEnablePeerAccess of no sense", invalidValue);
    if (!engine.options.peerAccess)
      return misuse(engine, "access to a GPU that cannot be reached",
                    noPeerAccess);
    if (engine.options.peerError)
      return engine.options.peerError;
    return Engine::current->peers.insert(peer->device).second
               ? success
               : peerAlreadyEnabled;
  });
}
int cuDevicePrimaryCtxRetain(FakeContext **context, int device) {
  return call("cuDevicePrimaryCtxRetain", false, [&](Engine &engine) {
    *context = engine.contexts[size_t(device)].get();
    ++(*context)->retained;
    return success;
  });
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return call("cuDevicePrimaryCtxRelease", false, [&](Engine &engine) {
    FakeContext &context = *engine.contexts[size_t(device)];
    if (context.retained-- <= 0)
      return misuse(engine, "a context is released too often", invalidContext);
    if (context.retained == 0) { // The next one is a new one.
      context.broken = 0;
      context.peers.clear();
    }
    return success;
  });
}
int cuCtxSetCurrent(FakeContext *context) {
  return call("cuCtxSetCurrent", false, [&](Engine &) {
    Engine::current = context;
    return success;
  });
}
int cuCtxSynchronize() {
  Engine &engine = Engine::get();
  std::unique_lock<std::mutex> lock(engine.mutex);
  FakeContext *context = Engine::current;
  if (int code = enter(engine, context))
    return code;
  auto isBusy = [&] {
    return std::any_of(
        engine.streams.begin(), engine.streams.end(), [&](FakeStream *stream) {
          return stream->context == context && !stream->work.empty();
        });
  };
  while (isBusy()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  for (FakeStream *stream : engine.streams)
    if (stream->context == context)
      engine.checker.order(Checker::host,
                           engine.checker.clocksOf(stream->timeline));
  return context->broken;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
  return call("cuMemGetInfo", true, [&](Engine &engine) {
    *total = engine.options.memoryBytes;
    *free = *total - std::min(*total, engine.usedBytes);
    return success;
  });
}
int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
  return call("cuMemAlloc", true, [&](Engine &engine) {
    if (bytes == 0)
      return misuse(engine, "an allocation of no bytes", invalidValue);
    if (engine.usedBytes + bytes > engine.options.memoryBytes)
      return outOfMemory;
    void *memory = engine.map(bytes);
    // Nobody may count on what is in it.
    std::memset(memory, 0xa5, bytes);
    auto begin = reinterpret_cast<uintptr_t>(memory);
    engine.allocations[begin] = {bytes, Engine::current->device};
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

int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes,
                    FakeStream *stream) {
  return call("cuMemsetD8Async", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuMemsetD8Async on a dead stream", invalidHandle);
    beginStep(engine, *stream);
    engine.checker.use(stream->timeline, to, bytes, true, "a memset");
    engine.enqueue(*stream, {nullptr, 0, [=] {
                               std::memset(reinterpret_cast<void *>(to), value,
                                           bytes);
                             }});
    return success;
  });
}

/// The synchronous copies: on the host's timeline.
static int copyNow(const char *name, void *to, const void *from, size_t bytes) {
  return call(name, true, [&](Engine &engine) {
    engine.checker.advance(Checker::host);
    engine.checker.use(Checker::host, reinterpret_cast<uintptr_t>(from), bytes,
                       false, name);
    engine.checker.use(Checker::host, reinterpret_cast<uintptr_t>(to), bytes,
                       true, name);
    std::memcpy(to, from, bytes);
    return success;
  });
}
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  return copyNow("cuMemcpyHtoD", reinterpret_cast<void *>(to), from, bytes);
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
  return copyNow("cuMemcpyDtoH", to, reinterpret_cast<const void *>(from),
                 bytes);
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes,
                  FakeStream *stream) {
  return call("cuMemcpyAsync", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuMemcpyAsync on a dead stream", invalidHandle);
    for (uintptr_t address : {from, to})
      if (!engine.reaches(*stream->context, address, "a copy"))
        return invalidValue;
    beginStep(engine, *stream);
    engine.checker.use(stream->timeline, from, bytes, false, "a copy");
    engine.checker.use(stream->timeline, to, bytes, true, "a copy");
    engine.enqueue(*stream, {nullptr, 0, [=] {
                               std::memcpy(reinterpret_cast<void *>(to),
                                           reinterpret_cast<const void *>(from),
                                           bytes);
                             }});
    return success;
  });
}
int cuMemHostRegister_v2(void *memory, size_t, unsigned) {
  return call("cuMemHostRegister", true, [&](Engine &engine) {
    return engine.registered.insert(memory).second ? success
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
    engine.allocations[begin] = {bytes, Engine::host};
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

int cuStreamCreate(FakeStream **stream, unsigned) {
  return call("cuStreamCreate", true, [&](Engine &engine) {
    *stream = new FakeStream{Engine::current, engine.checker.addTimeline(), {}};
    engine.streams.insert(*stream);
    return success;
  });
}
int cuStreamDestroy_v2(FakeStream *stream) {
  return call("cuStreamDestroy", false, [&](Engine &engine) {
    if (!engine.streams.erase(stream))
      return misuse(engine, "a stream is destroyed twice", invalidHandle);
    if (!stream->work.empty() && !stream->context->broken)
      engine.checker.blame("a stream is destroyed that has work");
    delete stream;
    return success;
  });
}
int cuStreamQuery(FakeStream *stream) {
  return call("cuStreamQuery", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuStreamQuery of a dead stream", invalidHandle);
    if (!isIdle(engine, *stream))
      return poll(engine, stream->context);
    engine.checker.order(Checker::host,
                         engine.checker.clocksOf(stream->timeline));
    return success;
  });
}
int cuStreamWaitEvent(FakeStream *stream, FakeEvent *event, unsigned) {
  return call("cuStreamWaitEvent", true, [&](Engine &engine) {
    if (!isAlive(engine, stream) || !isAlive(engine, event))
      return misuse(engine, "cuStreamWaitEvent with a dead stream or event",
                    invalidHandle);
    if (event->asked == 0)
      return misuse(engine, "a stream waits for an event that nobody records",
                    success);
    engine.checker.order(stream->timeline, event->clocks);
    beginStep(engine, *stream);
    engine.enqueue(*stream, {event, event->asked, nullptr});
    return success;
  });
}

int cuEventCreate(FakeEvent **event, unsigned flags) {
  return call("cuEventCreate", true, [&](Engine &engine) {
    *event = new FakeEvent{Engine::current, (flags & 2) == 0, 0, 0, {}, {}};
    engine.events.insert(*event);
    return success;
  });
}
int cuEventDestroy_v2(FakeEvent *event) {
  return call("cuEventDestroy", false, [&](Engine &engine) {
    if (!engine.events.erase(event))
      return misuse(engine, "an event is destroyed twice", invalidHandle);
    if (event->reached < event->asked) {
      engine.retired.emplace_back(event);
      return event->context->broken
                 ? success
                 : misuse(engine, "an event is destroyed that is not reached",
                          success);
    }
    delete event;
    return success;
  });
}
int cuEventRecord(FakeEvent *event, FakeStream *stream) {
  return call("cuEventRecord", true, [&](Engine &engine) {
    if (!isAlive(engine, stream) || !isAlive(engine, event))
      return misuse(engine, "cuEventRecord with a dead stream or event",
                    invalidHandle);
    if (event->context != stream->context)
      return misuse(engine, "an event is recorded on another context's stream",
                    invalidHandle);
    beginStep(engine, *stream);
    event->clocks = engine.checker.clocksOf(stream->timeline);
    uint64_t record = ++event->asked;
    engine.enqueue(*stream, {nullptr, 0, [=] {
                               event->reached = record;
                               event->when = fakecuda::Clock::now();
                             }});
    return success;
  });
}
int cuEventQuery(FakeEvent *event) {
  return call("cuEventQuery", true, [&](Engine &engine) {
    if (!isAlive(engine, event))
      return misuse(engine, "cuEventQuery of a dead event", invalidHandle);
    if (event->reached < event->asked)
      return poll(engine, event->context);
    engine.checker.order(Checker::host, event->clocks);
    return success;
  });
}
int cuEventElapsedTime(float *milliseconds, FakeEvent *begin, FakeEvent *end) {
  return call("cuEventElapsedTime", true, [&](Engine &engine) {
    if (!isAlive(engine, begin) || !isAlive(engine, end))
      return misuse(engine, "cuEventElapsedTime of a dead event",
                    invalidHandle);
    if (begin->context != end->context || !begin->timed || !end->timed)
      return misuse(engine, "cuEventElapsedTime of events without common times",
                    invalidHandle);
    if (begin->reached < begin->asked || end->reached < end->asked ||
        !begin->asked || !end->asked)
      return notReady;
    *milliseconds =
        float(std::chrono::duration<double, std::milli>(end->when - begin->when)
                  .count());
    return success;
  });
}

int cuModuleLoadData(FakeModule **module, const void *image) {
  return call("cuModuleLoadData", true, [&](Engine &engine) {
    const auto *fake = static_cast<const FakeImage *>(image);
    if (fake->magic != FakeImage::magicNumber)
      return invalidImage;
    *module = new FakeModule{Engine::current, fake};
    engine.modules.insert(*module);
    return success;
  });
}
int cuModuleUnload(FakeModule *module) {
  return call("cuModuleUnload", true, [&](Engine &engine) {
    if (!engine.modules.erase(module))
      return misuse(engine, "a module is unloaded twice", invalidHandle);
    delete module;
    return success;
  });
}
int cuModuleGetFunction(FakeFunction **function, FakeModule *module,
                        const char *name) {
  return call("cuModuleGetFunction", true, [&](Engine &engine) {
    for (size_t i = 0; i < module->image->kernelCount; ++i)
      if (std::strcmp(module->image->kernels[i].name, name) == 0) {
        engine.functions.push_back(std::make_unique<FakeFunction>(
            FakeFunction{module->context, &module->image->kernels[i]}));
        *function = engine.functions.back().get();
        return success;
      }
    return notFound;
  });
}
int cuLaunchKernel(FakeFunction *function, unsigned, unsigned, unsigned,
                   unsigned, unsigned, unsigned, unsigned, FakeStream *stream,
                   void **parameters, void **) {
  return call("cuLaunchKernel", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuLaunchKernel on a dead stream", invalidHandle);
    if (function->context != stream->context)
      return misuse(engine, "a kernel is launched in another context",
                    invalidHandle);
    const FakeKernel &kernel = *function->kernel;
    // Parameters are copied when the kernel is launched, as CUDA does.
    std::array<uint64_t, mostParameters> values{};
    for (size_t i = 0; i < kernel.parameterCount; ++i)
      std::memcpy(&values[i], parameters[i], parameterBytes);
    beginStep(engine, *stream);
    for (size_t i = 0; i < kernel.accessCount; ++i) {
      const FakeAccess &access = kernel.accesses[i];
      uintptr_t begin = values[size_t(access.parameter)];
      if (engine.deviceOf(begin) == Engine::host)
        engine.checker.blame("kernel " + std::string(kernel.name) +
                             " is given memory that is not the device's");
      engine.reaches(*stream->context, begin,
                     "kernel " + std::string(kernel.name));
      engine.checker.use(stream->timeline, begin, access.bytes, access.writes,
                         "kernel " + std::string(kernel.name));
    }
    int number = ++engine.launches;
    FakeContext *context = stream->context;
    engine.enqueue(*stream, {nullptr, 0, [=, &kernel, &engine]() mutable {
                               if (number == engine.options.hangLaunch) {
                                 engine.hanging = true;
                                 return;
                               }
                               if (number == engine.options.breakLaunch) {
                                 context->broken = illegalAddress;
                                 return;
                               }
                               void *pointers[mostParameters];
                               for (size_t i = 0; i < mostParameters; ++i)
                                 pointers[i] = &values[i];
                               kernel.run(pointers);
                             }});
    return success;
  });
}
}
