//===- SocketTransport.cpp - Messages between processes, by TCP -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/SocketTransport.h"
#include "transport/sockets/Connection.h"
#include "transport/sockets/Meet.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

namespace {

class SocketTransport final : public Transport {
public:
  SocketTransport(int32_t self, Mesh mesh, bool readsMemory)
      : self(self), bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    const std::string &here = mesh.machines[size_t(self)];
    for (size_t rank = 0; rank < mesh.connections.size(); ++rank) {
      neighbours.push_back(mesh.machines[rank] == here);
      connections.emplace_back(std::move(mesh.connections[rank]), messages);
      if (neighbours.back() && readsMemory)
        connections.back().introduce();
    }
    // So that a wait allocates nothing.
    awaited.resize(connections.size() + 1);
  }

  int32_t rank() const override { return self; }
  int32_t size() const override { return int32_t(connections.size()); }
  int32_t ranksHere() const override {
    return int32_t(std::ranges::count(neighbours, true));
  }
  bool sharesClock(int32_t rank) const override {
    return neighbours[size_t(rank)];
  }
  int64_t largestBytes() const override { return int64_t(1) << 40; }
  int32_t largestTag() const override { return INT32_MAX; }

  Problem send(Ticket &ticket, int32_t to, int32_t tag, const void *data,
               int64_t bytes) override {
    // It is only read.
    return begin(ticket, to,
                 {to, tag, epoch, true, bytes,
                  const_cast<char *>(static_cast<const char *>(data))});
  }

  Problem receive(Ticket &ticket, int32_t from, int32_t tag, void *data,
                  int64_t bytes) override {
    return begin(ticket, from,
                 {from, tag, epoch, false, bytes, static_cast<char *>(data)});
  }

  Problem poll(Ticket &ticket) override {
    const Message &message = messages.of(ticket.handle);
    if (!message.done) {
      progress();
      // Of one that has ended otherwise lostRank() tells.
      if (!message.done)
        return connections[size_t(message.peer)].failure();
    }
    messages.free(ticket.handle);
    ticket.busy = false;
    return {};
  }

  void abandon(Ticket &ticket) override {
    connections[size_t(messages.of(ticket.handle).peer)].forget(ticket.handle);
    messages.free(ticket.handle);
    ticket.busy = false;
  }

  int64_t ended() const override { return messages.ended(); }
  bool hasEnded(const Ticket &ticket) const override {
    return ticket.busy && messages.of(ticket.handle).done;
  }
  bool wait(std::chrono::microseconds most) override {
    if (!bell || messages.ended() > 0 ||
        std::ranges::any_of(connections, &Connection::isBusy))
      return bool(bell);
    awaited[0] = {bell.get(), POLLIN, 0};
    for (size_t i = 0; i < connections.size(); ++i) {
      pollfd &each = awaited[i + 1];
      each.fd = connections[i].waitsFor(each.events);
    }
    auto whole = std::chrono::floor<std::chrono::seconds>(most);
    timespec time{whole.count(),
                  std::chrono::nanoseconds(most - whole).count()};
    ppoll(awaited.data(), awaited.size(), &time, nullptr);
    eventfd_t count;
    if (awaited[0].revents)
      eventfd_read(bell.get(), &count);
    return true;
  }
  void wake() override { eventfd_write(bell.get(), 1); }

  Problem renew() override {
    if (lostRank() >= 0)
      return {"a rank was lost before the session began", nullptr};
    messages.renew(++epoch);
    for (Connection &each : connections)
      each.forgetBefore(epoch);
    return {};
  }

  int32_t endedRank() const override {
    for (size_t rank = 0; rank < connections.size(); ++rank)
      if (connections[rank].isLost())
        return int32_t(rank);
    return -1;
  }

  void close() override {
    for (Connection &each : connections)
      each.sayGoodbye();
    // The others may still have to come to their own end.
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::ranges::any_of(connections, &Connection::isOpen) &&
           !hasGivenUp() && std::chrono::steady_clock::now() < end) {
      progress();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    for (Connection &each : connections)
      each.close();
  }

private:
  Problem begin(Ticket &ticket, int32_t peer, Message message) {
    Connection &connection = connections[size_t(peer)];
    ticket.handle = messages.add(message);
    ticket.busy = true;
    connection.begin(ticket.handle);
    return connection.failure();
  }

  void progress() {
    for (Connection &each : connections)
      each.progress();
  }

  const int32_t self;
  uint32_t epoch = 0;
  Messages messages;
  std::vector<uint8_t> neighbours; ///< a rank each: on this machine
  std::deque<Connection> connections;
  Descriptor bell;
  std::vector<pollfd> awaited;
};

} // namespace

Expected<std::unique_ptr<Transport>>
baechi::runtime::connectBySockets(const Meeting &meeting) {
  Expected<Mesh> mesh = meet(meeting);
  if (!mesh)
    return mesh.takeError();
  return std::unique_ptr<Transport>(std::make_unique<SocketTransport>(
      meeting.rank, std::move(*mesh), meeting.readsMemory));
}
