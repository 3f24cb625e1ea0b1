//===- CudaPort.cpp - Where CUDA devices meet other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaPort.h"

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

namespace {

class StagedPort final : public CudaPort {
public:
  StagedPort(CudaDevice &device, bool sends, const std::vector<int64_t> &given)
      : CudaPort(device, given.size()), sends(sends) {
    for (int64_t size : given) {
      places.push_back(total);
      total += (size + alignment - 1) / alignment * alignment;
    }
  }

  ~StagedPort() override {
    Selection selection = device.hold();
    if (selection.result())
      return;
    if (stream) {
      api.synchronize();
      api.streamDestroy(stream);
    }
    if (memory)
      api.hostFree(memory);
  }

  Error start() {
    if (Error error = CudaPort::start())
      return error;
    if (Error error = api.error(api.streamCreate(&stream, streamNonBlocking),
                                "a stream cannot be created"))
      return error;
    if (total == 0)
      return Error();
    return api.error(
        api.hostAlloc(&memory, size_t(total), hostAllocPortable),
        ("cannot allocate " + std::to_string(total) +
         " bytes of pinned host memory, for messages to other processes")
            .c_str());
  }

  void *hostBuffer(int32_t seq) override {
    // A message without bytes has a place, too.
    static char none;
    return memory ? static_cast<char *>(memory) + places[size_t(seq)] : &none;
  }

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

  Problem poll(int32_t seq, State &state) override {
    state = State::Ended;
    if (!sends)
      return {};
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

  int64_t stagingBytes() const override { return total; }

private:
  static constexpr int64_t alignment = 64;

  const bool sends;
  Stream stream = nullptr;
  void *memory = nullptr;
  /// Where each message lies in it.
  std::vector<int64_t> places;
  int64_t total = 0;
};

} // namespace

Expected<std::unique_ptr<Port>>
baechi::runtime::cuda::makeStagedPort(CudaDevice &device, bool sends,
                                      const std::vector<int64_t> &bytes) {
  auto port = std::make_unique<StagedPort>(device, sends, bytes);
  if (Error error = port->start())
    return error;
  return std::unique_ptr<Port>(std::move(port));
}
