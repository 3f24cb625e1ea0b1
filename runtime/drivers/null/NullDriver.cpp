//===- NullDriver.cpp - Devices that only walk the protocol ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/null/NullDriver.h"
#include "core/Exchange.h"

#include <cstring>

using namespace baechi::runtime;

namespace {

class NullDriver final : public Driver {
public:
  Error start() override { return Error(); }

  int32_t run(baechi_context *context) override {
    if (int32_t stop = forEachMessage(
            *context,
            [=](int32_t queue, int32_t seq) {
              return baechi_send(context, queue, seq, nullptr);
            },
            [=](int32_t queue, int32_t seq) {
              return baechi_recv(context, queue, seq, nullptr);
            }))
      return stop;
    for (size_t op = 0; op < context->operators.size(); ++op) {
      baechi_operator_begin(context, static_cast<int32_t>(op));
      baechi_operator_end(context, static_cast<int32_t>(op));
    }
    return forEachMessage(
        *context,
        [=](int32_t queue, int32_t seq) {
          return baechi_await_send(context, queue, seq);
        },
        [=](int32_t queue, int32_t seq) {
          return baechi_await_recv(context, queue, seq);
        });
  }

  /// There is no data: what is written is dropped, and zeros are read.
  Error write(int64_t, const void *, size_t) override { return Error(); }
  Error read(int64_t, void *data, size_t bytes) const override {
    std::memset(data, 0, bytes);
    return Error();
  }

private:
  /// Calls `send` or `recv` for each message that leaves or reaches the device
  /// until one returns nonzero.
  template <typename Send, typename Recv>
  static int32_t forEachMessage(baechi_context &context, Send send, Recv recv) {
    const std::vector<Channel> &channels = context.exchange.channels();
    for (size_t q = 0; q < channels.size(); ++q) {
      bool sends = channels[q].from == context.device;
      if (!sends && channels[q].to != context.device)
        continue;
      for (size_t seq = 0; seq < channels[q].slots.size(); ++seq) {
        int32_t queue = static_cast<int32_t>(q);
        int32_t message = static_cast<int32_t>(seq);
        if (int32_t stop = sends ? send(queue, message) : recv(queue, message))
          return stop;
      }
    }
    return 0;
  }
};

} // namespace

std::unique_ptr<Driver> baechi::runtime::makeNullDriver(const DeviceInfo &,
                                                        Entry, const Share &) {
  return std::make_unique<NullDriver>();
}
