//===- RelayedLink.h - A link between ranks that can be held ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a network does to a connection: it moves its bytes, keeps them for a
/// time, in the middle of a message too, or loses the connection.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_RELAYEDLINK_H
#define BAECHI_UNITTESTS_RUNTIME_RELAYEDLINK_H

#include "SocketRanks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string>
#include <thread>

namespace baechi::runtime::test {

/// Moves bytes between two ends of other connections, which it owns.
class RelayedLink {
public:
  RelayedLink() = default;
  RelayedLink(int one, int other) { join(one, other); }
  ~RelayedLink() {
    ends = true;
    if (thread.joinable())
      thread.join();
  }

  void join(int one, int other) {
    sides = {sockets::Descriptor(one), sockets::Descriptor(other)};
    thread = std::thread([this] { move(); });
  }

  /// After so many bytes more, of both ways together, nothing comes through.
  void holdAfter(int64_t bytes) { left = bytes; }
  void letGo() { left = endless; }
  /// Whether the link is held, and somebody has sent what cannot pass.
  bool holdsSomething() const { return held; }
  /// Both ends see that the other has gone.
  void cut() { cuts = true; }

private:
  static constexpr int64_t endless = std::numeric_limits<int64_t>::max() / 2;

  void move() {
    while (!ends && !cuts) {
      std::array<pollfd, 2> looks = {
          {{sides[0].get(), POLLIN, 0}, {sides[1].get(), POLLIN, 0}}};
      ::poll(looks.data(), looks.size(), 1);
      held = left <= 0 && (looks[0].revents || looks[1].revents);
      for (size_t side : {0, 1})
        if (looks[side].revents && left > 0 &&
            !pass(looks[side].fd, sides[1 - side].get()))
          cuts = true;
    }
    sides = {};
  }

  bool pass(int from, int to) {
    std::array<char, 4096> bytes;
    size_t most = std::min<size_t>(bytes.size(), size_t(left.load()));
    ssize_t count = ::recv(from, bytes.data(), most, MSG_DONTWAIT);
    if (count <= 0)
      return count < 0 && errno == EAGAIN;
    // Who lets go meanwhile is not overruled.
    int64_t before = left;
    while (before < endless &&
           !left.compare_exchange_weak(before, before - count)) {
    }
    return sockets::writeAll(to, bytes.data(), size_t(count),
                             sockets::Deadline(60));
  }

  std::array<sockets::Descriptor, 2> sides;
  std::atomic<int64_t> left{endless};
  std::atomic<bool> ends{false}, cuts{false}, held{false};
  std::thread thread;
};

/// A port of its own for one who calls, who is connected to who listens at
/// another.
class RelayedPort {
public:
  explicit RelayedPort(uint16_t target) {
    std::string why;
    listener = sockets::listenAt("localhost", 0, why);
    EXPECT_TRUE(listener) << why;
    thread = std::thread([this, target] {
      pollfd look{listener.get(), POLLIN, 0};
      ::poll(&look, 1, 60000);
      int caller = accept4(listener.get(), nullptr, nullptr,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
      std::string failure;
      sockets::Descriptor called =
          sockets::call("localhost", target, sockets::Deadline(60), failure);
      EXPECT_TRUE(caller >= 0 && called) << failure;
      link.join(caller, called.release());
    });
  }
  ~RelayedPort() { thread.join(); }

  uint16_t port() const { return sockets::portOf(listener.get()); }

  RelayedLink link;

private:
  sockets::Descriptor listener;
  std::thread thread;
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_RELAYEDLINK_H
