//===- CudaDeviceMemory.cpp - What goes into a device's memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Constants, and what the caller gives and takes: the host's memory, or a
/// GPU's that is lent.
///
//===----------------------------------------------------------------------===//

#include "core/Exchange.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>
#include <string>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

Problem CudaDevice::constant(void *place, const void *data, size_t bytes) {
  auto [entry, isNew] = constants.try_emplace(
      reinterpret_cast<DevicePointer>(place), Constant{data, bytes});
  if (!isNew)
    return {};
  Problem problem =
      check(copyIn(entry->first, data, bytes), "a constant cannot be copied");
  if (problem)
    constants.erase(entry);
  return problem;
}

Error CudaDevice::write(int64_t offset, const void *data, size_t bytes) {
  // It is not written to.
  return exchange(offset, const_cast<void *>(data), bytes, /*in=*/true);
}

Error CudaDevice::read(int64_t offset, void *data, size_t bytes) const {
  return exchange(offset, data, bytes, /*in=*/false);
}

static const char *const cannotBeSelected = "the device cannot be selected";

Expected<bool> CudaDevice::isHere(DevicePointer memory) const {
  unsigned type = 0;
  int gpu = ordinal;
  Result result = functions->pointerAttribute(&type, pointerMemoryType, memory);
  if (result == invalidValue) // It is the host's, which CUDA does not know.
    return false;
  if (result == success && type != memoryOfDevice)
    return false;
  if (result == success)
    result = functions->pointerAttribute(&gpu, pointerOrdinal, memory);
  if (Error error = functions->error(
          result, "where the memory given lies cannot be found out"))
    return error;
  if (gpu != ordinal)
    return Error("the memory given is of GPU " + std::to_string(gpu) +
                 ", and the device is on GPU " + std::to_string(ordinal) +
                 ": copy it there, or to the host");
  return true;
}

Expected<bool> CudaDevice::lend(const CallerMemory &memory) {
  Selection selection = hold();
  if (Error error = functions->error(selection.result(), cannotBeSelected))
    return error;
  Expected<bool> here = isHere(reinterpret_cast<DevicePointer>(memory.memory));
  if (here && *here && memory.bytes > 0)
    lent.push_back(memory);
  return here;
}

/// The legacy stream: who gives memory by DLPack has it wait for its own work.
static constexpr Stream legacyStream = nullptr;

Problem CudaDevice::moveLent(bool in) {
  if (lent.empty())
    return {};
  // A copy that cannot be begun is a matter of the call, as of exchange(): of a
  // device that is lost the end of the step will tell.
  auto problem = [&](Result result) {
    return functions->problem(result,
                              in ? "the device's memory cannot be written"
                                 : "the device's memory cannot be read");
  };
  if (in) {
    if (Problem failed = problem(functions->eventRecord(finish, legacyStream)))
      return failed;
    if (Problem failed = problem(functions->streamWait(stream, finish, 0)))
      return failed;
  }
  for (const CallerMemory &each : lent) {
    if (each.in != in)
      continue;
    auto there = reinterpret_cast<DevicePointer>(each.memory);
    DevicePointer here = arena + DevicePointer(each.offset);
    if (Problem failed = problem(functions->memcpyAsync(
            in ? here : there, in ? there : here, each.bytes, stream)))
      return failed;
  }
  return {};
}

/// Once the step has ended, and only then: whoever calls a step that is given
/// up has its memory back, and may use it for something else when a kernel that
/// was left behind ends after all.
int32_t CudaDevice::giveResults(baechi_context &deviceContext) {
  bool any = std::any_of(lent.begin(), lent.end(),
                         [](const CallerMemory &each) { return !each.in; });
  Problem problem = any ? moveLent(/*in=*/false) : Problem();
  if (any)
    if (Problem late = drain("a result cannot be copied"))
      problem = problem ? problem : late;
  return problem ? deviceContext.exchange.fail(deviceContext,
                                               {problem.reason, problem.detail})
                 : 0;
}

/// The event is reached when the caller's memory is the caller's again. What
/// fails on the way is the event's and every later call's to tell.
int32_t CudaDevice::giveResultsLater(baechi_context &deviceContext) {
  const char *const what = "the step's end cannot be marked";
  Event end = nullptr;
  Problem problem = moveLent(/*in=*/false);
  if (!problem)
    problem = check(functions->eventCreate(&end, eventDisableTiming), what);
  if (!problem)
    problem = check(functions->eventRecord(end, stream), what);
  if (!problem)
    problem = check(functions->streamWait(legacyStream, end, 0), what);
  if (!problem) {
    laterEnd = end;
    return 0;
  }
  // The caller will have its memory back.
  static_cast<void>(drain(what));
  if (end)
    functions->eventDestroy(end);
  return deviceContext.exchange.fail(deviceContext,
                                     {problem.reason, problem.detail});
}

Error CudaDevice::exchange(int64_t offset, void *memory, size_t bytes,
                           bool in) const {
  auto there = reinterpret_cast<DevicePointer>(memory);
  DevicePointer here = arena + DevicePointer(offset);
  Selection selection = hold();
  if (Error error = functions->error(selection.result(), cannotBeSelected))
    return error;
  Expected<bool> asked = isHere(there);
  if (!asked)
    return asked.takeError();
  const bool isOnGpu = *asked;
  // Whoever works on the memory is not known: the GPU ends all of it first.
  Result result = isOnGpu ? functions->synchronize() : success;
  if (result == success)
    result = isOnGpu ? functions->memcpyAsync(in ? here : there,
                                              in ? there : here, bytes, stream)
             : in    ? copyIn(here, memory, bytes)
                     : functions->memcpyToHost(memory, here, bytes, stream);
  if (result == success)
    result = awaitStream();
  return functions->error(result, in ? "the device's memory cannot be written"
                                     : "the device's memory cannot be read");
}
