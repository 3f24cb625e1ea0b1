//===- Sockets.h - Connections between machines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETS_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETS_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace baechi::runtime::sockets {

/// A descriptor that is closed with its owner.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor();

  int get() const { return number; }
  int release() { return std::exchange(number, -1); }
  explicit operator bool() const { return number >= 0; }

private:
  int number = -1;
};

class Deadline {
public:
  explicit Deadline(double seconds)
      : end(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(seconds))) {}
  bool passed() const { return std::chrono::steady_clock::now() >= end; }
  /// For poll(): at most `most`.
  int milliseconds(int most = 1000) const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    return int(std::clamp<int64_t>(left.count() + 1, 0, most));
  }

private:
  std::chrono::steady_clock::time_point end;
};

/// Whole objects of connections that do not block; false: the other end is
/// gone, or the time is over.
bool readAll(int socket, void *data, size_t bytes, const Deadline &until);
bool writeAll(int socket, const void *data, size_t bytes,
              const Deadline &until);

/// Small messages go at once, and an end that has lost its power is noticed.
void setUp(int socket);

bool isLoopback(const std::string &host);
/// Waits at a port of this machine, 0 for any that is free, for those that call
/// it as \p host: by a loopback's name or address, other machines are not let
/// in. None, and why, where that cannot be.
Descriptor listenAt(const std::string &host, uint16_t port, std::string &why);
uint16_t portOf(int socket);
/// The number of the machine at the other end.
std::string peerAddress(int socket);
/// Calls until somebody answers: the other may not have started yet.
Descriptor call(const std::string &host, uint16_t port, const Deadline &until,
                std::string &why);

} // namespace baechi::runtime::sockets

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETS_H
