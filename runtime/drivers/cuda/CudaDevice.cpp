//===- CudaDevice.cpp - One logical CUDA device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaDevice.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaDriver.h"
#include "drivers/cuda/CudaMover.h"
#include "drivers/cuda/CudaRoutes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

thread_local CudaDevice *baechi::runtime::cuda::currentDevice = nullptr;

static const char *const arenaCannotBeCleared = "the arena cannot be cleared";

/// What an environment variable says; "" where it is not set.
static std::string_view setting(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

/// What an environment variable switches on or off.
static bool isOn(const char *variable, bool otherwise) {
  return setting(variable).empty() ? otherwise : setting(variable) != "0";
}

CudaDevice::CudaDevice(const DeviceInfo &device, Entry entry,
                       const Share &share)
    : arenaBytes(device.arenaBytes), entry(entry), share(share),
      blocking(isOn("BAECHI_CUDA_BLOCKING", false)),
      ranges(isOn("BAECHI_NVTX", false) ? std::make_unique<Ranges>(device)
                                        : nullptr),
      // A profiler finds an operator's kernels where they are launched.
      usesGraphs(!blocking && !ranges && isOn("BAECHI_CUDA_GRAPHS", true)),
      begins(device.operators.size()), ends(device.operators.size()),
      replay(*this, device.name,
             /*branches=*/setting("BAECHI_CUDA_GRAPHS") != "chain") {
  // Large libraries are read from the disk before any watchdog counts; who
  // needs one that is missing will say so.
  if (loadApi())
    static_cast<void>(bool(loadBlasApi()));
}

CudaDevice::~CudaDevice() {
  if (!context.get())
    return;
  Selection selection = hold();
  if (selection.result())
    return;
  // What was begun must not find its memory gone. Nothing is left to be told
  // where that fails.
  context.note(functions->synchronize());
  for (const std::vector<Event> *events : {&begins, &ends})
    for (Event event : *events)
      if (event)
        functions->eventDestroy(event);
  for (Event event : {origin.event, finish, laterEnd})
    if (event)
      functions->eventDestroy(event);
  replay.close();
  if (repeater)
    repeater->close();
  images.unload(*functions);
  products.close();
  convolutions.close();
  if (stream)
    functions->streamDestroy(stream);
  if (arena)
    functions->memFree(arena);
}

Problem CudaDevice::makeCurrent() const {
  return functions->problem(select(), "the device cannot be selected");
}

Expected<bool> CudaDevice::reach(const CudaDevice &peer) {
  if (sharesMemoryWith(peer))
    return true;
  auto error = [&](Result result) {
    return functions->error(result, "access to another GPU cannot be enabled");
  };
  int can = 0;
  if (Error failed = error(functions->canAccessPeer(&can, device, peer.device)))
    return failed;
  if (!can)
    return false;
  if (Problem problem = makeCurrent())
    return Error(std::string(problem.reason) + ": " + problem.detail);
  switch (Result result = functions->enablePeerAccess(peer.context.get(), 0)) {
  case success:
  case peerAlreadyEnabled: // Another queue between the two did.
    return true;
  case peerUnsupported:
  case tooManyPeers:
    return false;
  default:
    return error(result);
  }
}

Error CudaDevice::checkShared(int gpus) const {
  int64_t together = 0;
  int32_t devices = 0;
  for (size_t i = 0; i < share.arenas.size(); ++i)
    if (gpuOf({int32_t(i), share.count, {}}, gpus) == ordinal) {
      together += share.arenas[i];
      ++devices;
    }
  size_t free = 0, total = 0;
  if (devices < 2 || functions->memGetInfo(&free, &total) != success ||
      together <= int64_t(total))
    return Error();
  return Error("the " + std::to_string(devices) +
               " devices of the program on this GPU need arenas of " +
               std::to_string(together) + " bytes together, and it has " +
               std::to_string(total) +
               ": lower their limits (--machine=cuda:N@SIZE), or let fewer "
               "share it");
}

Error CudaDevice::start() {
  Expected<const Api *> loaded = loadApi();
  if (!loaded)
    return loaded.takeError();
  functions = *loaded;
  if (ranges)
    if (Error error = ranges->load())
      return error;
  Expected<int> count = functions->countGpus();
  if (!count)
    return count.takeError();
  if (*count < 1)
    return Error("CUDA finds no GPU on this machine; take host devices");
  ordinal = gpuOf(share, *count);
  if (Error error = functions->error(functions->deviceGet(&device, ordinal),
                                     "the GPU cannot be opened"))
    return error;
  if (Error error = functions->error(context.begin(*functions, device),
                                     "the GPU cannot be opened"))
    return error;
  if (Error error = functions->error(select(), "the GPU cannot be selected"))
    return error;
  if (Error error = checkShared(*count))
    return error;
  if (arenaBytes > 0) {
    Result allocated = functions->memAlloc(&arena, size_t(arenaBytes));
    if (allocated != success) {
      size_t free = 0, total = 0;
      functions->memGetInfo(&free, &total);
      arena = 0;
      return functions->error(allocated,
                              ("cannot allocate an arena of " +
                               std::to_string(arenaBytes) + " bytes; " +
                               std::to_string(free) + " of the GPU's " +
                               std::to_string(total) + " are free")
                                  .c_str());
    }
    context.holdArena(arenaBytes);
  }
  overhead.begin(*functions, context);
  auto create = [&](Event &event, unsigned flags) {
    return functions->error(functions->eventCreate(&event, flags),
                            "an event cannot be created");
  };
  if (Error error =
          functions->error(functions->streamCreate(&stream, streamNonBlocking),
                           "a stream cannot be created"))
    return error;
  for (Event *event : {&origin.event, &finish})
    if (Error error = create(*event, eventDefault))
      return error;
  for (std::vector<Event> *events : {&begins, &ends})
    for (Event &event : *events)
      if (Error error = create(event, eventDefault))
        return error;
  return functions->error(clearArena(), arenaCannotBeCleared);
}

Result CudaDevice::clearArena() const {
  if (arenaBytes > 0)
    if (Result result =
            functions->memsetAsync(arena, 0, size_t(arenaBytes), stream))
      return result;
  return awaitStream();
}

/// The size of the largest message that the device borrows.
static int64_t mostBorrowed(const Exchange &exchange, int32_t device) {
  int64_t most = 0;
  for (const Channel &channel : exchange.channels())
    for (const Slot &slot : channel.slots)
      if (slot.lent && channel.to == device)
        most = std::max(most, slot.bytes);
  return most;
}

/// The first use of a kernel, a product or a constant loads code, asks for an
/// algorithm, allocates: all of which may wait until the GPU is idle. It never
/// is while a kernel of NCCL waits for another process, which may wait for
/// what this device would do next.
void CudaDevice::rehearse(baechi_context &deviceContext) {
  Exchange &exchange = deviceContext.exchange;
  // What others lend is not there yet.
  int64_t lentBytes = mostBorrowed(exchange, deviceContext.device);
  DevicePointer standIn = 0;
  if (lentBytes > 0)
    if (Problem problem =
            check(functions->memAlloc(&standIn, size_t(lentBytes)),
                  "there is no memory for the largest tensor that is borrowed, "
                  "to try the step: lower the device's limit, or compile with "
                  "--transfers=copy")) {
      exchange.fail(deviceContext, {problem.reason, problem.detail});
      return;
    }
  currentDevice = this;
  deviceContext.standIn = reinterpret_cast<const void *>(standIn);
  rehearses = deviceContext.rehearses = true;
  (void)entry(&deviceContext, reinterpret_cast<char *>(arena));
  rehearses = deviceContext.rehearses = false;
  currentDevice = nullptr;
  if (standIn) {
    static_cast<void>(awaitStream()); // clearArena() fails again
    functions->memFree(standIn);
  }
  if (exchange.aborted())
    return;
  // Products were computed, on zeros.
  Problem problem = check(clearArena(), arenaCannotBeCleared);
  auto copied = std::exchange(constants, {});
  for (auto &[place, of] : copied)
    if (!problem)
      problem = constant(reinterpret_cast<void *>(place), of.data, of.bytes);
  if (!problem)
    problem = check(awaitStream(), "a constant cannot be copied");
  overhead.look(*functions, context);
  if (problem)
    exchange.fail(deviceContext, {problem.reason, problem.detail});
}

Result CudaDevice::awaitStream() const {
  Result failed = success;
  for (int64_t looks = 0;; ++looks) {
    Result state = functions->streamQuery(stream);
    // A look that fails leaves a copy on its way that uses the caller's
    // memory: it is awaited all the same. A dead context fails again at once.
    if (state == success || (state != notReady && failed != success))
      return failed == success ? state : failed;
    if (state != notReady)
      failed = state;
    // A small copy takes microseconds.
    if (looks > 200)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Problem CudaDevice::check(Result result, const char *what) {
  // Memory and readiness are matters of the call.
  if (result != success && result != outOfMemory && result != notReady)
    lost.store(true, std::memory_order_release);
  return functions->problem(result, what);
}

int32_t CudaDevice::run(baechi_context *deviceContext) {
  Exchange &exchange = deviceContext->exchange;
  auto fail = [&](const Problem &problem) {
    return exchange.fail(*deviceContext, {problem.reason, problem.detail});
  };
  if (Problem problem = makeCurrent())
    return fail(problem);
  currentDevice = this;
  deviceContext->marks = this;
  origin.hostNs = exchange.elapsedNs();
  if (Problem problem = check(functions->eventRecord(origin.event, stream),
                              "the step cannot be begun"))
    return fail(problem);

  repeats = false;
  Problem lendsIn = moveLent(/*in=*/true);
  int32_t code = lendsIn ? fail(lendsIn) : compute(*deviceContext);

  if (endsLater && code == 0 && !exchange.aborted() &&
      !exchange.keepsTimeline()) {
    code = giveResultsLater(*deviceContext);
    if (code == 0 && replays && replay.takeNews())
      overhead.look(*functions, context);
    return code;
  }

  // Also after a failure: nothing may run on when the step has ended.
  if (Problem problem = drain("the device failed (to learn in which operator, "
                              "set BAECHI_CUDA_BLOCKING=1)"))
    return fail(problem);
  if (code == 0 && !exchange.aborted())
    code = giveResults(*deviceContext);
  if (code == 0 && !exchange.aborted() && exchange.keepsTimeline())
    recordTimes(*deviceContext);
  // Steps without repeats have the memory that is planned for them.
  if (repeats)
    repeater->close();
  if (replays && replay.takeNews())
    overhead.look(*functions, context);
  return code;
}

int32_t CudaDevice::compute(baechi_context &deviceContext) {
  Exchange &exchange = deviceContext.exchange;
  // Marks of times need operators one by one.
  replays = usesGraphs && !exchange.keepsTimeline();
  // Events will do where there is no memory for more.
  repeats = repeater && exchange.keepsTimeline() &&
            !repeater->open(arena, size_t(arenaBytes));
  if (replays)
    replay.begin();
  if (ranges)
    ranges->beginStep();
  int32_t code = entry(&deviceContext, reinterpret_cast<char *>(arena));
  if (ranges)
    ranges->endStep();
  if (Problem problem = exchange.aborted() ? Problem() : flush())
    code = exchange.fail(deviceContext, {problem.reason, problem.detail});
  return code;
}

Problem CudaDevice::drain(const char *what) {
  if (Problem problem = check(functions->eventRecord(finish, stream), what))
    return problem;
  for (int64_t looks = 0;; ++looks) {
    Result state = functions->eventQuery(finish);
    if (state != notReady)
      return check(state, what);
    // Most steps take milliseconds: sleep only when this one takes longer.
    if (looks > 2000)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    else if (looks > 200)
      std::this_thread::yield();
  }
}

void CudaDevice::recordTimes(baechi_context &deviceContext) const {
  for (size_t op = 0; op < deviceContext.operators.size(); ++op)
    deviceContext.operators[op] = between(begins[op], ends[op]);
  // One after the other, as if nothing had been repeated.
  int64_t at = 0;
  for (size_t op = 0; repeats && op < deviceContext.operators.size(); ++op) {
    deviceContext.operators[op] = {at, at + repeater->ns(op)};
    at += repeater->ns(op);
  }
}

Interval CudaDevice::between(Event begin, Event end) const {
  float toBegin = 0, toEnd = 0;
  if (functions->eventElapsed(&toBegin, origin.event, begin) != success ||
      functions->eventElapsed(&toEnd, origin.event, end) != success)
    return Interval();
  auto ns = [&](float milliseconds) {
    return origin.hostNs + std::llround(double(milliseconds) * 1e6);
  };
  return {ns(toBegin), ns(toEnd)};
}

Problem CudaDevice::flush() { return replays ? replay.flush() : Problem(); }

Problem CudaDevice::begin(int32_t op, bool timed) {
  if (ranges)
    ranges->begin(size_t(op));
  if (!timed)
    return {};
  if (repeats)
    repeater->begin();
  return check(functions->eventRecord(begins[size_t(op)], stream),
               "an operator's begin cannot be marked");
}

Problem CudaDevice::end(int32_t op, bool timed) {
  Problem problem = markEnd(op, timed);
  if (ranges)
    ranges->end();
  return problem;
}

Problem CudaDevice::markEnd(int32_t op, bool timed) {
  if (timed && repeats)
    if (Problem problem = repeater->end(size_t(op)))
      return problem;
  if (timed)
    if (Problem problem =
            check(functions->eventRecord(ends[size_t(op)], stream),
                  "an operator's end cannot be marked"))
      return problem;
  return blocking ? drain("the operator failed") : Problem();
}

Expected<std::unique_ptr<Mover>>
CudaDevice::connect(Driver &other, bool otherSends,
                    const std::vector<MessageInfo> &messages) {
  Selection selection = hold();
  return makeCudaMover(*this, dynamic_cast<CudaDevice *>(&other),
                       other.hostArena(), otherSends, messages);
}

std::unique_ptr<Driver>
baechi::runtime::makeCudaDriver(const DeviceInfo &device, Entry entry,
                                const Share &share) {
  return std::make_unique<CudaDevice>(device, entry, share);
}
