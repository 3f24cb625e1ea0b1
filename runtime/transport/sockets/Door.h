//===- Door.h - Who calls a rank that waits ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What ranks say to each other as they meet (Meet.h), and those that call.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_DOOR_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_DOOR_H

#include "transport/sockets/Sockets.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace baechi::runtime::sockets {

inline constexpr char magic[8] = {'b', 'a', 'e', 'c', 'h', 'i', 0, 3};

/// What a rank says of itself when it calls another.
struct Hello {
  char magic[8];
  int32_t rank, size;
  /// Of the start, as rank 0 has told it; 0 to rank 0.
  uint64_t start;
  /// Where it can be called.
  uint16_t port;
  char job[128], machine[128];
};

/// Rank 0's answer: why not, or the start's number; neither while it waits for
/// others, which it says at once, and now and then. The number comes twice:
/// with an Entry a rank when all are there, and when each has called the
/// others.
struct Answer {
  char magic[8];
  uint64_t start;
  char refusal[496];
};
struct Entry {
  char address[64], machine[128];
  uint16_t port;
};

/// Others' processes may send anything: texts end where their field does.
template <size_t N> std::string textOf(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}
template <size_t N> void setText(char (&field)[N], const std::string &text) {
  std::memset(field, 0, N);
  text.copy(field, N - 1);
}

/// Who calls here, one after the other. Callers that say nothing, or something
/// else, are put down without keeping the others waiting.
class Door {
public:
  explicit Door(int listener) : listener(listener) {}

  struct Caller {
    Descriptor socket;
    Hello hello{};
    size_t heard = 0;
  };

  /// None when the time is over.
  Caller next(const Deadline &until) {
    while (!until.passed()) {
      std::vector<pollfd> looks{{listener, POLLIN, 0}};
      for (const Caller &each : callers)
        looks.push_back({each.socket.get(), POLLIN, 0});
      ::poll(looks.data(), looks.size(), until.milliseconds());
      for (size_t i = callers.size(); i-- > 0;) {
        if (!looks[i + 1].revents)
          continue;
        Caller &each = callers[i];
        ssize_t count = recv(each.socket.get(),
                             reinterpret_cast<char *>(&each.hello) + each.heard,
                             sizeof(Hello) - each.heard, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
          continue;
        each.heard += size_t(std::max<ssize_t>(count, 0));
        bool ours = std::memcmp(each.hello.magic, magic,
                                std::min(each.heard, sizeof(magic))) == 0;
        if (count > 0 && ours && each.heard < sizeof(Hello))
          continue;
        Caller done = std::move(each);
        callers.erase(callers.begin() + ptrdiff_t(i));
        if (count > 0 && ours)
          return done;
      }
      if (looks[0].revents) {
        Descriptor socket(
            accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket) {
          setUp(socket.get());
          // The one that has said nothing for longest makes room.
          if (callers.size() >= mostCallers)
            callers.erase(callers.begin());
          callers.push_back({std::move(socket)});
        }
      }
    }
    return {};
  }

private:
  static constexpr size_t mostCallers = 64;
  int listener;
  std::vector<Caller> callers;
};

} // namespace baechi::runtime::sockets

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_DOOR_H
