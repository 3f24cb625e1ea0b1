//===- FakeCuda.cpp - The driver's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "FakeCalls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace fakecuda;

/// The answer to a question that came too early. It is no call to count: how
/// often one asks depends on the machine.
static int poll(Engine &engine, const FakeContext *context) {
  --engine.calls;
  return context->broken ? context->broken : notReady;
}

extern "C" {

void fakeCudaReset(const FakeOptions *options) {
  Engine::get().reset(*options);
}

int fakeCudaCalls() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  return engine.calls;
}

int fakeCudaLoads() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  return engine.loads;
}

void fakeCudaFail(const char *function) {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  static std::string kept;
  kept = function ? function : "";
  engine.options.failFunction = function ? kept.c_str() : nullptr;
}

void fakeCudaRelease() { Engine::get().release(); }

void fakeCudaHold() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  engine.hanging = true;
}

void fakeCudaBreak() {
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  engine.contextOf(0)->broken = illegalAddress;
}

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
  // Those of contexts are the driver's own.
  left(size_t(std::count_if(
           engine.streams.begin(), engine.streams.end(),
           [](FakeStream *stream) { return !stream->isLegacy(); })),
       "streams");
  left(engine.events.size(), "events");
  left(engine.modules.size(), "modules");
  left(engine.graphs.size(), "graphs");
  left(engine.executables.size(), "executable graphs");
  left(engine.registered.size(), "pinned ranges");
  left(engine.communicators.size(), "communicators");
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
          : error == invalidValue   ? "CUDA_ERROR_INVALID_VALUE"
          : error == invalidImage   ? "CUDA_ERROR_INVALID_IMAGE"
          : error == captureInvalidated
              ? "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
              : "CUDA_ERROR_UNKNOWN";
  return success;
}
int cuGetErrorString(int, const char **text) {
  *text = "a fake error";
  return success;
}

int cuDriverGetVersion(int *version) {
  return call("cuDriverGetVersion", false, [&](Engine &) {
    *version = 13000;
    return success;
  });
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
int cuDeviceGetPCIBusId(char *address, int length, int device) {
  return call("cuDeviceGetPCIBusId", false, [&](Engine &) {
    std::snprintf(address, size_t(length), "0000:%02x:00.0", device + 1);
    return success;
  });
}
int cuDeviceGetName(char *name, int bytes, int) {
  return call("cuDeviceGetName", false, [&](Engine &) {
    std::snprintf(name, size_t(bytes), "Fake GPU");
    return success;
  });
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  return call("cuDeviceGetAttribute", false, [&](Engine &) {
    switch (attribute) {
    case 40: // copy engines
      *value = 2;
      return success;
    case 75: // compute capability 9.0
      *value = 9;
      return success;
    case 76:
      *value = 0;
      return success;
    default:
      return invalidValue;
    }
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
int cuStreamCreate(FakeStream **stream, unsigned flags) {
  return call("cuStreamCreate", true, [&](Engine &engine) {
    if (flags != 1)
      return misuse(engine, "a stream that waits for the legacy one",
                    invalidValue);
    *stream = new FakeStream{Engine::current, engine.checker.addTimeline(), {}};
    engine.streams.insert(*stream);
    return success;
  });
}
int cuStreamDestroy_v2(FakeStream *stream) {
  return call("cuStreamDestroy", false, [&](Engine &engine) {
    if (!engine.streams.erase(stream))
      return misuse(engine, "a stream is destroyed twice", invalidHandle);
    if ((!stream->work.empty() || stream->capture) && !stream->context->broken)
      engine.checker.blame("a stream is destroyed that has work");
    delete stream;
    return success;
  });
}
int cuStreamQuery(FakeStream *stream) {
  return call("cuStreamQuery", true, [&](Engine &engine) {
    if (!isAlive(engine, stream))
      return misuse(engine, "cuStreamQuery of a dead stream", invalidHandle);
    if (!stream->work.empty())
      return poll(engine, stream->context);
    engine.checker.order(Checker::host,
                         engine.checker.clocksOf(stream->timeline));
    return success;
  });
}
int cuStreamWaitEvent(FakeStream *stream, FakeEvent *event, unsigned) {
  return call("cuStreamWaitEvent", true, [&](Engine &engine) {
    if (!stream && Engine::current) // CUDA's name for the legacy stream
      stream = &engine.legacyOf(*Engine::current);
    if (!isAlive(engine, stream) || !isAlive(engine, event))
      return misuse(engine, "cuStreamWaitEvent with a dead stream or event",
                    invalidHandle);
    if (event->asked == 0)
      return misuse(engine, "a stream waits for an event that nobody records",
                    success);
    await(engine, *event, *stream);
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
    // Streams may wait for it, which does not end with its name.
    engine.retired.emplace_back(event);
    return event->reached >= event->asked || event->context->broken
               ? success
               : misuse(engine, "an event is destroyed that is not reached",
                        success);
  });
}
int cuEventRecord(FakeEvent *event, FakeStream *stream) {
  return call("cuEventRecord", true, [&](Engine &engine) {
    if (!stream && Engine::current) // CUDA's name for the legacy stream
      stream = &engine.legacyOf(*Engine::current);
    if (!isAlive(engine, stream) || !isAlive(engine, event))
      return misuse(engine, "cuEventRecord with a dead stream or event",
                    invalidHandle);
    if (event->context != stream->context)
      return misuse(engine, "an event is recorded on another context's stream",
                    invalidHandle);
    record(engine, *event, *stream);
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
    load(engine, "code is loaded");
    const auto *fake = static_cast<const FakeImage *>(image);
    if (fake->magic != FakeImage::magicNumber)
      return invalidImage;
    if (engine.takenBytes() + engine.options.codeBytes >
        engine.options.memoryBytes)
      return outOfMemory;
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
    load(engine, "a kernel is loaded");
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
}
