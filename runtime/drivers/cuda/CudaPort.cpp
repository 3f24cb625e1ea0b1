//===- CudaPort.cpp - Where CUDA devices meet other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaPort.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

CudaPort::~CudaPort() {
  Selection selection = device.hold();
  if (selection.result())
    return;
  // What was begun must not find its events gone.
  api.synchronize();
  for (const MessageEvents &message : events)
    for (Event event : {message.offered, message.begin, message.done})
      if (event)
        api.eventDestroy(event);
}

Error CudaPort::start() {
  if (Error error = api.error(device.select(), "the device cannot be selected"))
    return error;
  for (MessageEvents &message : events)
    for (auto [event, flags] : {std::pair(&message.offered, eventDisableTiming),
                                std::pair(&message.begin, eventDefault),
                                std::pair(&message.done, eventDefault)})
      if (Error error = api.error(api.eventCreate(event, flags),
                                  "an event cannot be created"))
        return error;
  return Error();
}

Problem CudaPort::offered(Side, int32_t seq) {
  if (Problem problem = device.flush())
    return problem;
  return device.check(
      api.eventRecord(events[size_t(seq)].offered, device.computeStream()),
      "an offered buffer cannot be marked");
}

Problem CudaPort::awaited(Side, int32_t seq, const Exchange &) {
  return device.check(
      api.streamWait(device.computeStream(), events[size_t(seq)].done, 0),
      "a message cannot be awaited");
}

Interval CudaPort::timeOf(int32_t seq) const {
  Selection selection = device.hold();
  if (selection.result())
    return Interval();
  return device.between(events[size_t(seq)].begin, events[size_t(seq)].done);
}

Expected<std::shared_ptr<StagingPlaces>>
StagingPlaces::allocate(CudaDevice &device, const Program &program,
                        const std::vector<StagedMessage> &messages) {
  std::shared_ptr<StagingPlaces> made(
      new StagingPlaces(device, planStaging(program, messages)));
  if (made->bytes() == 0)
    return made;
  const Api &api = device.api();
  if (Error error = api.error(device.select(), "the device cannot be selected"))
    return error;
  if (Error error = api.error(
          api.hostAlloc(&made->memory, size_t(made->bytes()),
                        hostAllocPortable),
          ("cannot allocate " + std::to_string(made->bytes()) +
           " bytes of pinned host memory, for messages to other processes")
              .c_str()))
    return error;
  return made;
}

StagingPlaces::~StagingPlaces() {
  Selection selection = device.hold();
  if (memory && !selection.result())
    device.api().hostFree(memory);
}

void *StagingPlaces::at(size_t message) const {
  // A message without bytes has a place, too.
  static char none;
  return memory ? static_cast<char *>(memory) + plan.places[message].offset
                : &none;
}

bool StagingPlaces::isFree(size_t message) const {
  const std::vector<size_t> &after = plan.places[message].after;
  return std::all_of(after.begin(), after.end(), [&](size_t before) {
    return passed[before] > passed[message];
  });
}

namespace {

class StagedPort final : public CudaPort {
public:
  StagedPort(CudaDevice &device, bool sends, size_t messages,
             std::shared_ptr<StagingPlaces> places, size_t first)
      : CudaPort(device, messages), sends(sends), places(std::move(places)),
        first(first), isFirst(first == 0 && messages > 0) {}

  ~StagedPort() override {
    Selection selection = device.hold();
    if (selection.result() || !stream)
      return;
    api.synchronize();
    api.streamDestroy(stream);
  }

  Error start() {
    if (Error error = CudaPort::start())
      return error;
    return api.error(api.streamCreate(&stream, streamNonBlocking),
                     "a stream cannot be created");
  }

  void *hostBuffer(int32_t seq) override { return places->at(placeOf(seq)); }

  bool mayBegin(int32_t seq) const override {
    return places->isFree(placeOf(seq));
  }
  void ended(int32_t seq) override { places->pass(placeOf(seq)); }

  Problem begin(int32_t seq, void *buffer, int64_t bytes) override {
    if (Problem problem = device.makeCurrent())
      return problem;
    const MessageEvents &message = eventsOf(seq);
    void *from = sends ? buffer : hostBuffer(seq);
    void *to = sends ? hostBuffer(seq) : buffer;
    Result result = api.streamWait(stream, message.offered, 0);
    if (result == success)
      result = api.eventRecord(message.begin, stream);
    if (result == success && bytes > 0)
      result = api.memcpyAsync(reinterpret_cast<DevicePointer>(to),
                               reinterpret_cast<DevicePointer>(from),
                               size_t(bytes), stream);
    if (result == success)
      result = api.eventRecord(message.done, stream);
    return device.check(result, "a message cannot be copied");
  }

  /// What is sent leaves its place when the transport has it; what is received,
  /// when the device has.
  Problem poll(int32_t seq, State &state) override {
    state = State::Ended;
    if (Problem problem = device.makeCurrent())
      return problem;
    Result result = api.eventQuery(eventsOf(seq).done);
    if (result != notReady)
      return device.check(result, "the device failed");
    // Its thread may give the stream more to do.
    state = State::Ordered;
    return {};
  }

  bool isIdle() override {
    Selection selection = device.hold();
    return selection.result() || api.streamQuery(stream) != notReady;
  }

  /// The first of the ports tells of what they share.
  int64_t stagingBytes() const override {
    return isFirst ? places->bytes() : 0;
  }

private:
  size_t placeOf(int32_t seq) const { return first + size_t(seq); }

  const bool sends;
  Stream stream = nullptr;
  const std::shared_ptr<StagingPlaces> places;
  const size_t first;
  const bool isFirst;
};

} // namespace

Expected<std::unique_ptr<Port>> baechi::runtime::cuda::makeStagedPort(
    CudaDevice &device, bool sends, size_t messages,
    std::shared_ptr<StagingPlaces> places, size_t first) {
  auto port = std::make_unique<StagedPort>(device, sends, messages,
                                           std::move(places), first);
  if (Error error = port->start())
    return error;
  return std::unique_ptr<Port>(std::move(port));
}
