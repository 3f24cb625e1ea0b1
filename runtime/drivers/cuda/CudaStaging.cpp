//===- CudaStaging.cpp - Copies between GPUs through the host -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaStaging.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

Staging::~Staging() {
  if (sender.makeCurrent())
    return;
  if (out) {
    api.synchronize();
    api.streamDestroy(out);
  }
  for (Half &half : halves)
    for (Event event : {half.filled, half.emptied})
      if (event)
        api.eventDestroy(event);
  if (buffer)
    api.hostFree(buffer);
}

Error Staging::start(int64_t largest) {
  pieceBytes = std::clamp<int64_t>(largest, 1, mostPieceBytes);
  auto create = [&](Event &event) {
    return api.error(api.eventCreate(&event, eventDisableTiming),
                     "an event cannot be created");
  };
  auto select = [&](const CudaDevice &device) {
    return api.error(device.select(), "the device cannot be selected");
  };
  if (Error error = select(receiver))
    return error;
  for (Half &half : halves)
    if (Error error = create(half.emptied))
      return error;
  if (Error error = select(sender))
    return error;
  for (Half &half : halves)
    if (Error error = create(half.filled))
      return error;
  if (Error error = api.error(api.streamCreate(&out, streamNonBlocking),
                              "a stream cannot be created"))
    return error;
  if (Error error = api.error(
          api.hostAlloc(&buffer, size_t(bytes()), hostAllocPortable),
          ("cannot allocate " + std::to_string(bytes()) +
           " bytes of pinned host memory, for messages between GPUs that do "
           "not reach each other's memory")
              .c_str()))
    return error;
  halves[0].memory = static_cast<char *>(buffer);
  halves[1].memory = halves[0].memory + pieceBytes;
  return Error();
}

Result Staging::copy(Event sent, const void *source, void *destination,
                     int64_t bytes) {
  std::lock_guard<std::mutex> guard(mutex);
  const char *from = static_cast<const char *>(source);
  char *to = static_cast<char *>(destination);
  Result result = api.streamWait(out, sent, 0);
  for (int64_t at = 0; at < bytes && result == success; at += pieceBytes) {
    result = copyPiece(halves[next], from + at, to + at,
                       size_t(std::min(pieceBytes, bytes - at)));
    next = 1 - next;
  }
  return result;
}

Result Staging::copyPiece(Half &half, const char *source, char *destination,
                          size_t bytes) {
  auto address = [](const void *memory) {
    return reinterpret_cast<DevicePointer>(memory);
  };
  Result result = sender.select();
  if (result == success && half.wasEmptied)
    result = api.streamWait(out, half.emptied, 0);
  if (result == success)
    result = api.memcpyAsync(address(half.memory), address(source), bytes, out);
  if (result == success)
    result = api.eventRecord(half.filled, out);
  if (Result selected = receiver.select(); selected != success)
    return selected;
  if (result == success)
    result = api.streamWait(into, half.filled, 0);
  if (result == success)
    result = api.memcpyAsync(address(destination), address(half.memory), bytes,
                             into);
  if (result == success)
    result = api.eventRecord(half.emptied, into);
  half.wasEmptied = half.wasEmptied || result == success;
  return result;
}
