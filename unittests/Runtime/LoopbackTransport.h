//===- LoopbackTransport.h - Ranks that are threads -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A transport between threads of one process that stand for ranks. It delays
/// messages, and so reorders those of different tags, holds a send until it is
/// received (as MPI does with large messages) or ends it at once (as with small
/// ones), fails, loses ranks and silences them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_LOOPBACKTRANSPORT_H
#define BAECHI_UNITTESTS_RUNTIME_LOOPBACKTRANSPORT_H

#include "ranks/Protocol.h"
#include "ranks/Transport.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace baechi::runtime::test {

/// What all ranks share.
struct LoopbackHub {
  explicit LoopbackHub(int32_t ranks) : ranks(ranks), epochs(size_t(ranks)) {
    sends.reserve(1 << 12);
    receives.reserve(1 << 12);
    ended.resize(1 << 20);
  }

  struct Message {
    int32_t from, to, tag, epoch;
    uint64_t id;
    const void *source;
    void *destination;
    int64_t bytes;
    int32_t delay;
    std::unique_ptr<char[]> copy;

    bool meets(const Message &other) const {
      return from == other.from && to == other.to && tag == other.tag &&
             epoch == other.epoch;
    }
  };

  const int32_t ranks;
  /// Sends end before they are received; they are copied.
  bool eager = false;
  /// Up to how many polls a message is on its way.
  int32_t longestDelay = 0;
  /// The call of send, receive or poll that fails, counted from 1; 0: none.
  std::atomic<int64_t> failingCall{0};
  std::atomic<int32_t> killed{-1};
  /// Says nothing any more.
  std::atomic<int32_t> silenced{-1};
  std::atomic<bool> dismissed = false;

  std::mutex mutex;
  std::vector<int32_t> epochs;
  std::vector<Message> sends, receives;
  std::vector<uint8_t> ended;
  uint64_t ids = 0;
  uint32_t random = 1;
  int64_t calls = 0;
  /// For tests: messages met, and those that met one of other size.
  int64_t met = 0, wrong = 0;

  void match() {
    for (size_t r = 0; r < receives.size();) {
      auto send =
          std::find_if(sends.begin(), sends.end(), [&](const Message &each) {
            return each.meets(receives[r]);
          });
      if (send == sends.end() || send->from == silenced || send->delay-- > 0) {
        ++r;
        continue;
      }
      wrong += send->bytes != receives[r].bytes;
      if (send->bytes)
        std::memcpy(receives[r].destination, send->source,
                    size_t(std::min(send->bytes, receives[r].bytes)));
      ended[send->id] = ended[receives[r].id] = 1;
      ++met;
      sends.erase(send);
      receives.erase(receives.begin() + ptrdiff_t(r));
    }
  }
};

class LoopbackTransport final : public Transport {
public:
  LoopbackTransport(std::shared_ptr<LoopbackHub> hub, int32_t self)
      : hub(std::move(hub)), self(self) {}

  int32_t rank() const override { return self; }
  int32_t size() const override { return hub->ranks; }
  int32_t ranksHere() const override { return hub->ranks; }
  bool sharesClock(int32_t) const override { return true; }
  int64_t largestBytes() const override { return mostBytes; }
  int32_t largestTag() const override { return mostTags; }

  Problem send(Ticket &ticket, int32_t to, int32_t tag, const void *data,
               int64_t bytes) override {
    std::lock_guard<std::mutex> guard(hub->mutex);
    if (Problem problem = failure())
      return problem;
    if (tag >= tags::FirstMessage && bytes > mostBytes)
      return {"a message is too long", nullptr};
    begin(ticket, hub->sends,
          {self, to, tag, 0, 0, data, nullptr, bytes, 0, {}});
    LoopbackHub::Message &message = hub->sends.back();
    if (hub->longestDelay)
      message.delay =
          int32_t((hub->random = hub->random * 1664525 + 1013904223) >> 16) %
          hub->longestDelay;
    if (hub->eager) {
      message.copy = std::make_unique<char[]>(size_t(bytes) + 1);
      if (bytes)
        std::memcpy(message.copy.get(), data, size_t(bytes));
      message.source = message.copy.get();
      ticket.busy = false;
    }
    return {};
  }

  Problem receive(Ticket &ticket, int32_t from, int32_t tag, void *data,
                  int64_t bytes) override {
    std::lock_guard<std::mutex> guard(hub->mutex);
    if (Problem problem = failure())
      return problem;
    begin(ticket, hub->receives,
          {from, self, tag, 0, 0, nullptr, data, bytes, 0, {}});
    return {};
  }

  Problem poll(Ticket &ticket) override {
    std::lock_guard<std::mutex> guard(hub->mutex);
    if (Problem problem = failure())
      return problem;
    hub->match();
    ticket.busy = ticket.busy && !hub->ended[ticket.handle];
    return {};
  }

  void abandon(Ticket &ticket) override {
    std::lock_guard<std::mutex> guard(hub->mutex);
    for (auto *list : {&hub->sends, &hub->receives})
      std::erase_if(*list, [&](const LoopbackHub::Message &each) {
        return each.id == ticket.handle;
      });
    ticket.busy = false;
  }

  Problem renew() override {
    std::lock_guard<std::mutex> guard(hub->mutex);
    ++hub->epochs[self];
    return {};
  }

  int32_t endedRank() const override {
    return hub->killed == self ? -1 : hub->killed.load();
  }

  void close() override { hub->dismissed = true; }

  int64_t mostBytes = INT_MAX;
  int32_t mostTags = INT_MAX;

private:
  void begin(Ticket &ticket, std::vector<LoopbackHub::Message> &list,
             LoopbackHub::Message message) {
    message.epoch = hub->epochs[self];
    message.id = ticket.handle = ++hub->ids % hub->ended.size();
    hub->ended[message.id] = 0;
    ticket.busy = true;
    list.push_back(std::move(message));
  }

  Problem failure() {
    if (hub->killed == self)
      return {"this rank is dead", nullptr};
    if (++hub->calls == hub->failingCall)
      return {"injected fault", "of the transport"};
    return {};
  }

  const std::shared_ptr<LoopbackHub> hub;
  const int32_t self;
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_LOOPBACKTRANSPORT_H
