//===- Sockets.cpp - Connections between machines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/Sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

Descriptor::~Descriptor() {
  if (number >= 0)
    ::close(number);
}

/// Reads or writes a whole object of a connection that does not block.
template <bool reads>
static bool transferAll(int socket, void *data, size_t bytes,
                        const Deadline &until) {
  for (size_t done = 0; done < bytes;) {
    char *at = static_cast<char *>(data) + done;
    ssize_t count = reads ? recv(socket, at, bytes - done, 0)
                          : ::send(socket, at, bytes - done, MSG_NOSIGNAL);
    if (count > 0) {
      done += size_t(count);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (until.passed())
        return false;
      pollfd look{socket, short(reads ? POLLIN : POLLOUT), 0};
      ::poll(&look, 1, until.milliseconds());
    } else {
      return false;
    }
  }
  return true;
}
bool sockets::readAll(int socket, void *data, size_t bytes,
                      const Deadline &until) {
  return transferAll<true>(socket, data, bytes, until);
}
bool sockets::writeAll(int socket, const void *data, size_t bytes,
                       const Deadline &until) {
  return transferAll<false>(socket, const_cast<void *>(data), bytes, until);
}

/// Small messages at once, and an end that has lost its power is noticed.
void sockets::setUp(int socket) {
  int yes = 1, idle = 5, interval = 2, probes = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

static Addresses resolve(const std::string &host, uint16_t port,
                         std::string &why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  int code =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code)
    why = gai_strerror(code);
  return {found, freeaddrinfo};
}

bool sockets::isLoopback(const std::string &host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Listens at an address; none, and why, where it cannot.
template <typename Address>
static Descriptor listenOn(int family, Address at, std::string &why) {
  Descriptor socket(
      ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int yes = 1, no = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (family == AF_INET6)
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (socket &&
      bind(socket.get(), reinterpret_cast<sockaddr *>(&at), sizeof(at)) == 0 &&
      listen(socket.get(), 4096) == 0)
    return socket;
  why = std::strerror(errno);
  return Descriptor();
}

Descriptor sockets::listenAt(const std::string &host, uint16_t port,
                             std::string &why) {
  bool here = isLoopback(host);
  Descriptor found;
  // Of IPv4's callers, too, unless it is the loopback's own address.
  if (!here || host == "::1") {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_addr = here ? in6addr_loopback : in6addr_any;
    at.sin6_port = htons(port);
    found = listenOn(AF_INET6, at, why);
  }
  if (!found && host != "::1") {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(here ? INADDR_LOOPBACK : INADDR_ANY);
    at.sin_port = htons(port);
    found = listenOn(AF_INET, at, why);
  }
  return found;
}

uint16_t sockets::portOf(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof(at);
  if (getsockname(socket, reinterpret_cast<sockaddr *>(&at), &size) != 0)
    return 0;
  return ntohs(at.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(at).sin6_port
                   : reinterpret_cast<sockaddr_in &>(at).sin_port);
}

/// The number of the machine at the other end.
std::string sockets::peerAddress(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof(at);
  char text[64] = {};
  if (getpeername(socket, reinterpret_cast<sockaddr *>(&at), &size) == 0)
    getnameinfo(reinterpret_cast<sockaddr *>(&at), size, text, sizeof(text),
                nullptr, 0, NI_NUMERICHOST);
  std::string result = text;
  return result.starts_with("::ffff:") ? result.substr(7) : result;
}

/// Calls until somebody answers: the other may not have started yet.
Descriptor sockets::call(const std::string &host, uint16_t port,
                         const Deadline &until, std::string &why) {
  for (;;) {
    Addresses all = resolve(host, port, why);
    for (addrinfo *each = all.get(); each; each = each->ai_next) {
      Descriptor socket(::socket(
          each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket)
        continue;
      int code =
          connect(socket.get(), each->ai_addr, each->ai_addrlen) ? errno : 0;
      if (code == EINPROGRESS) {
        pollfd look{socket.get(), POLLOUT, 0};
        socklen_t size = sizeof(code);
        code = ::poll(&look, 1, until.milliseconds(5000)) > 0 ? 0 : ETIMEDOUT;
        if (!code)
          getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
      }
      if (!code) {
        setUp(socket.get());
        return socket;
      }
      why = std::strerror(code);
    }
    if (until.passed())
      return Descriptor();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}
