//===- CudaMover.cpp - Messages to and from CUDA devices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A queue has a stream of its own. An offer of a CUDA device records an event
/// on its compute stream: the buffer is as it must be when the device comes to
/// it. The copy waits for the events of both ends; what awaits the message
/// waits for the copy: a CUDA device's compute stream, or a host device's
/// thread. No thread waits for a device otherwise. A message that is lent, from
/// a device to another of the same GPU, has no copy: the borrower's compute
/// stream waits for the sender's event, the sender's for one that the borrower
/// records when it gives the tensor back. Between GPUs that do not
/// reach each other's memory the copy is two, see CudaStaging.h.
///
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaMover.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaStaging.h"

#include <algorithm>

#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

namespace {

/// The events of one message.
struct MessageEvents {
  Event &offer(bool sender) { return sender ? sent : received; }

  Event sent = nullptr, received = nullptr; ///< null: that end is a host device
  Event begin = nullptr, done = nullptr;
  /// Nothing is copied: `received` is recorded when it is given back, and
  /// `begin` when it was borrowed.
  bool lent = false;
};

Error toError(const Problem &problem) {
  return Error(std::string(problem.reason) + ": " + problem.detail);
}

class CudaMover final : public Mover {
public:
  CudaMover(CudaDevice &device, CudaDevice *peer, bool otherSends,
            size_t messages)
      : device(device), peer(peer), otherSends(otherSends), api(device.api()),
        events(messages) {}

  ~CudaMover() override {
    Selection selection = device.hold();
    if (selection.result())
      return;
    api.synchronize();
    if (staging) {
      staging.reset();
      if (device.makeCurrent())
        return;
    }
    for (MessageEvents &message : events)
      for (Event event :
           {message.begin, message.done, message.offer(!otherSends)})
        if (event)
          api.eventDestroy(event);
    if (stream)
      api.streamDestroy(stream);
    if (pinned)
      api.hostUnregister(pinned);
    if (!peer || peer->makeCurrent())
      return;
    for (MessageEvents &message : events)
      if (Event event = message.offer(otherSends))
        api.eventDestroy(event);
  }

  Error start(std::span<char> hostArena,
              const std::vector<MessageInfo> &messages) {
    for (size_t seq = 0; seq < messages.size(); ++seq) {
      events[seq].lent = messages[seq].lent;
      if (messages[seq].lent && !(peer && peer->sharesMemoryWith(device)))
        return Error("message '" + messages[seq].name +
                     "' is lent, but the devices are on GPUs " +
                     std::to_string((otherSends ? peer : &device)->gpu()) +
                     " and " +
                     std::to_string((otherSends ? &device : peer)->gpu()) +
                     ", which have memories of their own: compile the program "
                     "with --transfers=copy");
    }
    auto create = [&](Event &event, unsigned flags) {
      return api.error(api.eventCreate(&event, flags),
                       "an event cannot be created");
    };
    if (Problem problem = device.makeCurrent())
      return toError(problem);
    if (Error error = api.error(api.streamCreate(&stream, streamNonBlocking),
                                "a stream cannot be created"))
      return error;
    for (MessageEvents &message : events)
      for (auto [event, flags] :
           {std::pair(&message.begin, eventDefault),
            std::pair(&message.done, eventDefault),
            std::pair(&message.offer(!otherSends), eventDisableTiming)})
        if (Error error = create(*event, flags))
          return error;
    if (!hostArena.empty()) {
      Result result = api.hostRegister(hostArena.data(), hostArena.size(),
                                       hostRegisterPortable);
      // Another queue pins it. Memory that cannot be pinned is copied all the
      // same, by the driver's own staging.
      if (result == success)
        pinned = hostArena.data();
    }
    if (!peer)
      return Error();
    if (Problem problem = peer->makeCurrent())
      return toError(problem);
    for (MessageEvents &message : events)
      if (Error error = create(message.offer(otherSends), eventDisableTiming))
        return error;
    return startStaging(messages);
  }

  /// Where the two GPUs do not reach each other's memory. The receiver's
  /// device is asked for the mover of two, so the stream is its.
  Error startStaging(const std::vector<MessageInfo> &messages) {
    Expected<bool> there = device.reach(*peer), back = peer->reach(device);
    for (Expected<bool> *reached : {&there, &back})
      if (!*reached)
        return reached->takeError();
    if (*there && *back)
      return Error();
    int64_t largest = 0;
    for (const MessageInfo &message : messages)
      largest = std::max(largest, message.bytes);
    staging = std::make_unique<Staging>(*peer, device, stream);
    return staging->start(largest);
  }

  Problem offered(Side side, int32_t seq) override {
    MessageEvents &message = events[size_t(seq)];
    Event event = side == Side::Sender ? message.sent : message.received;
    CudaDevice *of = deviceOf(side);
    if (!of)
      return {};
    if (Problem problem = of->flush())
      return problem;
    return of->check(api.eventRecord(event, of->computeStream()),
                     "an offered buffer cannot be marked");
  }

  Problem copy(int32_t seq, const void *source, void *destination,
               int64_t bytes) override {
    const MessageEvents &message = events[size_t(seq)];
    if (Problem problem = device.makeCurrent())
      return problem;
    Result result = success;
    for (Event event : {message.sent, message.received})
      if (event && result == success)
        result = api.streamWait(stream, event, 0);
    if (result == success)
      result = api.eventRecord(message.begin, stream);
    // One address space holds the memory of all devices and the host's.
    if (staging && result == success)
      result = staging->copy(message.sent, source, destination, bytes);
    else if (result == success && bytes > 0)
      result = api.memcpyAsync(reinterpret_cast<DevicePointer>(destination),
                               reinterpret_cast<DevicePointer>(source),
                               size_t(bytes), stream);
    if (result == success)
      result = api.eventRecord(message.done, stream);
    // A device's own thread goes on with its own context.
    if (currentDevice && currentDevice != &device)
      if (Problem problem = currentDevice->makeCurrent())
        return problem;
    return device.check(result, "a message cannot be copied");
  }

  Problem borrowed(int32_t seq) override {
    const MessageEvents &message = events[size_t(seq)];
    CudaDevice &borrower = *deviceOf(Side::Receiver);
    Stream reads = borrower.computeStream();
    Result result = api.streamWait(reads, message.sent, 0);
    if (result == success)
      result = api.eventRecord(message.begin, reads);
    return borrower.check(result, "a message cannot be borrowed");
  }

  Problem givenBack(int32_t seq) override {
    CudaDevice &borrower = *deviceOf(Side::Receiver);
    if (Problem problem = borrower.flush())
      return problem;
    return borrower.check(
        api.eventRecord(events[size_t(seq)].received, borrower.computeStream()),
        "a message cannot be given back");
  }

  Problem awaited(Side side, int32_t seq, const Exchange &exchange) override {
    const MessageEvents &message = events[size_t(seq)];
    Event done = message.lent ? message.received : message.done;
    if (CudaDevice *of = deviceOf(side))
      return of->check(api.streamWait(of->computeStream(), done, 0),
                       "a message cannot be awaited");
    if (Problem problem = device.makeCurrent())
      return problem;
    for (int64_t looks = 0; !exchange.aborted(); ++looks) {
      Result state = api.eventQuery(done);
      if (state == success)
        return {};
      if (state != notReady)
        return device.check(state, "the device failed");
      if (looks > 2000)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      else if (looks > 200)
        std::this_thread::yield();
    }
    return {};
  }

  bool isIdle() override {
    Selection selection = device.hold();
    return selection.result() || (api.streamQuery(stream) != notReady &&
                                  (!staging || staging->isIdle()));
  }

  int64_t stagingBytes() const override {
    return staging ? staging->bytes() : 0;
  }

  Interval timeOf(int32_t seq) const override {
    Selection selection = device.hold();
    if (selection.result())
      return Interval();
    const MessageEvents &message = events[size_t(seq)];
    return device.between(message.begin,
                          message.lent ? message.begin : message.done);
  }

private:
  CudaDevice *deviceOf(Side side) const {
    return (side == Side::Sender) == otherSends ? peer : &device;
  }
  CudaDevice &device;
  CudaDevice *const peer;
  const bool otherSends;
  const Api &api;
  Stream stream = nullptr;
  std::vector<MessageEvents> events;
  char *pinned = nullptr;
  /// Null: the copy goes directly.
  std::unique_ptr<Staging> staging;
};

} // namespace

Expected<std::unique_ptr<Mover>>
baechi::runtime::cuda::makeCudaMover(CudaDevice &device, CudaDevice *peer,
                                     std::span<char> hostArena, bool otherSends,
                                     const std::vector<MessageInfo> &messages) {
  auto mover =
      std::make_unique<CudaMover>(device, peer, otherSends, messages.size());
  if (Error error = mover->start(hostArena, messages))
    return error;
  return std::unique_ptr<Mover>(std::move(mover));
}
