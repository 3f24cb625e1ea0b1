//===- NcclLane.cpp - A GPU's messages by NCCL -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclLane.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace baechi::runtime;
using namespace baechi::runtime::nccl;

/// How many messages go together at most: NCCL splits large groups, and not
/// alike on all ranks.
static constexpr size_t mostTogether = 32;

static auto placeOf(const LaneMessage &message) {
  return std::tuple(message.group, message.startNs, message.queue, message.seq);
}

Lane::~Lane() {
  if (device.makeCurrent())
    return;
  const cuda::Api &cuda = device.api();
  if (stream) {
    cuda.synchronize();
    cuda.streamDestroy(stream);
  }
  if (greetings)
    cuda.memFree(greetings);
}

LaneMessage &Lane::find(int32_t queue, int32_t seq) {
  return *std::find_if(messages.begin(), messages.end(),
                       [&](const LaneMessage &message) {
                         return message.queue == queue && message.seq == seq;
                       });
}

//===----------------------------------------------------------------------===//
// Coming and going
//===----------------------------------------------------------------------===//

Error Lane::start() {
  std::sort(messages.begin(), messages.end(),
            [](const LaneMessage &a, const LaneMessage &b) {
              return placeOf(a) < placeOf(b);
            });
  const cuda::Api &cuda = device.api();
  if (Error error = cuda.error(device.select(), "the GPU cannot be selected"))
    return error;
  if (Error error =
          cuda.error(cuda.streamCreate(&stream, cuda::streamNonBlocking),
                     "a stream cannot be created"))
    return error;
  // A byte to be sent, and one from each peer.
  size_t bytes = 1 + messages.size();
  if (Error error = cuda.error(cuda.memAlloc(&greetings, bytes),
                               "there is no memory to connect NCCL"))
    return error;
  return cuda.error(cuda.memsetAsync(greetings, 0, bytes, stream),
                    "the GPU's memory cannot be cleared");
}

Problem Lane::join(const UniqueId &id, int ranks, int rank) {
  if (Problem problem = device.makeCurrent())
    return problem;
  Config config;
  return api.problem(api.initRank(&handle, ranks, id, rank, &config),
                     "NCCL cannot be initialised");
}

Problem Lane::greet() {
  std::set<std::pair<int, bool>> peers;
  for (const LaneMessage &message : messages)
    peers.insert({message.peer, message.sends});
  if (Problem problem = device.makeCurrent())
    return problem;
  auto *byte = reinterpret_cast<char *>(greetings);
  Result result = api.groupStart();
  size_t received = 0;
  for (auto [peer, sends] : peers)
    if (result == success || result == inProgress)
      result = sends ? api.send(byte, 1, bytesType, peer, handle, stream)
                     : api.receive(byte + ++received, 1, bytesType, peer,
                                   handle, stream);
  Result ended = api.groupEnd();
  return api.problem(result == success || result == inProgress ? ended : result,
                     "NCCL cannot connect two GPUs");
}

Problem Lane::settle(bool &settled) const {
  settled = true;
  if (!handle)
    return {};
  Result state = success;
  Result asked = api.getAsyncError(handle, &state);
  settled = state != inProgress;
  return api.problem(asked == success ? state : asked, "NCCL failed");
}

bool Lane::isIdle() const {
  return device.makeCurrent() ||
         device.api().streamQuery(stream) != cuda::notReady;
}

const char *Lane::lastError() const {
  return handle ? api.getLastError(handle) : "";
}

void Lane::abort() {
  if (!handle || device.makeCurrent())
    return;
  api.abort(handle);
  handle = nullptr;
}

void Lane::finalize() {
  if (handle && !device.makeCurrent())
    api.finalize(handle);
}

void Lane::destroy() {
  if (!handle || device.makeCurrent())
    return;
  api.destroy(handle);
  handle = nullptr;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

void Lane::offer(LaneMessage &message, void *buffer, int64_t bytes) {
  message.buffer = buffer;
  message.bytes = bytes;
  message.offered = true;
  message.issued = false;
}

/// Whether the device has come to the offer, not only its thread.
bool Lane::isReady(const LaneMessage &message) const {
  return device.api().eventQuery(message.port->eventsOf(message.seq).offered) !=
         cuda::notReady;
}

Problem Lane::advance() {
  for (;;) {
    if (launching > 0) {
      bool settled = false;
      if (Problem problem = settle(settled))
        return problem;
      if (!settled)
        return {};
      if (Problem problem = device.makeCurrent())
        return problem;
      for (; launching > 0; --launching, ++next) {
        LaneMessage &message = messages[next];
        if (Problem problem = device.check(
                device.api().eventRecord(
                    message.port->eventsOf(message.seq).done, stream),
                "a message cannot be marked"))
          return problem;
        message.offered = false;
        message.issued = true;
      }
    }
    // The next step begins with the first.
    next = next == messages.size() ? 0 : next;
    LaneMessage &head = messages[next];
    if (!head.offered)
      return {};
    if (Problem problem = device.makeCurrent())
      return problem;
    // What is ready goes together, so that both directions move at once. What
    // is not would keep the others waiting.
    size_t count = 1;
    if (isReady(head))
      while (count < mostTogether && next + count < messages.size() &&
             messages[next + count].group == head.group &&
             messages[next + count].offered && isReady(messages[next + count]))
        ++count;
    if (Problem problem = issue(next, count))
      return problem;
  }
}

Problem Lane::issue(size_t first, size_t count) {
  const cuda::Api &cuda = device.api();
  for (size_t i = first; i < first + count; ++i) {
    const cuda::CudaPort::MessageEvents &events =
        messages[i].port->eventsOf(messages[i].seq);
    cuda::Result result = cuda.streamWait(stream, events.offered, 0);
    if (result == cuda::success)
      result = cuda.eventRecord(events.begin, stream);
    if (Problem problem = device.check(result, "a message cannot be ordered"))
      return problem;
  }
  Result result = api.groupStart();
  for (size_t i = first; i < first + count; ++i) {
    const LaneMessage &message = messages[i];
    if ((result != success && result != inProgress) || message.bytes == 0)
      continue;
    auto bytes = size_t(message.bytes);
    result = message.sends ? api.send(message.buffer, bytes, bytesType,
                                      message.peer, handle, stream)
                           : api.receive(message.buffer, bytes, bytesType,
                                         message.peer, handle, stream);
  }
  Result ended = api.groupEnd();
  launching = count;
  return api.problem(result == success || result == inProgress ? ended : result,
                     "NCCL cannot move a message");
}
