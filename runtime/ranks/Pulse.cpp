//===- Pulse.cpp - Whether other ranks live -------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/Pulse.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

using namespace baechi::runtime;
using std::chrono::steady_clock;

/// How long an end that was seen is waited for to be explained.
static constexpr std::chrono::milliseconds aMoment{200};
/// All ranks lose rank 0 within this time of each other.
static constexpr std::chrono::seconds aWhile{3};

Pulse::Pulse(int32_t self, int32_t ranks, double silence)
    : self(self), ranks(ranks), silence(silence),
      peers(std::make_unique<Peer[]>(size_t(ranks))),
      causes(std::make_unique<std::atomic<int32_t>[]>(size_t(ranks))),
      bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  for (int32_t rank = 0; rank < ranks; ++rank)
    causes[size_t(rank)] = Unknown;
  thread = std::thread([this] { run(); });
}

Pulse::~Pulse() {
  ending = true;
  eventfd_write(bell, 1);
  thread.join();
  for (int32_t rank = 0; rank < ranks; ++rank)
    hangUp(rank);
  ::close(bell);
}

void Pulse::add(int32_t rank, int socket) {
  peers[size_t(rank)].socket.store(socket, std::memory_order_release);
  eventfd_write(bell, 1);
}

void Pulse::leave() {
  left = true;
  for (int32_t rank = 0; rank < ranks; ++rank)
    say(rank, {Word::Leaves, self, 0});
}

void Pulse::sayEnding(int32_t signal) const {
  for (int32_t rank = 0; rank < ranks; ++rank)
    say(rank, {Word::Ends, self, signal});
}

void Pulse::say(int32_t rank, const Word &word) const {
  int socket = peers[size_t(rank)].socket.load(std::memory_order_acquire);
  if (socket < 0)
    return;
  char bytes[wordBytes] = {word.kind};
  std::memcpy(bytes + 1, &word.rank, sizeof(word.rank));
  std::memcpy(bytes + 5, &word.cause, sizeof(word.cause));
  // Who has not listened for so long that there is no room is silent itself.
  (void)!::send(socket, bytes, word.kind == Word::Beat ? 1 : wordBytes,
                MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Pulse::hangUp(int32_t rank) {
  int socket = peers[size_t(rank)].socket.exchange(-1);
  if (socket >= 0)
    ::close(socket);
}

void Pulse::lose(int32_t rank, int32_t cause) {
  int32_t unknown = Unknown;
  if (!causes[size_t(rank)].compare_exchange_strong(unknown, cause))
    return;
  int32_t none = -1;
  lost.compare_exchange_strong(none, rank);
  if (cause == Silent)
    say(rank, {Word::Lost, rank, GaveUp});
  for (int32_t other = 1; self == 0 && other < ranks; ++other)
    if (other != rank)
      say(other, {Word::Lost, rank, cause});
}

void Pulse::run() {
  std::vector<pollfd> looks;
  std::vector<int32_t> lookedAt;
  auto next = steady_clock::now();
  while (!ending) {
    looks = {{bell, POLLIN, 0}};
    lookedAt.clear();
    for (int32_t rank = 0; rank < ranks; ++rank)
      if (int socket = peers[size_t(rank)].socket.load(); socket >= 0) {
        looks.push_back({socket, POLLIN, 0});
        lookedAt.push_back(rank);
      }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(
        next - steady_clock::now());
    ::poll(looks.data(), looks.size(), int(std::max<int64_t>(0, left.count())));
    if (eventfd_t count; looks[0].revents)
      eventfd_read(bell, &count);
    for (size_t i = 0; i < lookedAt.size(); ++i)
      if (looks[i + 1].revents)
        listen(lookedAt[i]);
    if (auto now = steady_clock::now(); now >= next) {
      beat();
      next = now + beatEvery;
    }
  }
}

/// Says that this rank lives, and looks whether the others do: what they have
/// said meanwhile was heard before.
void Pulse::beat() {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Peer &peer = peers[size_t(rank)];
    if (peer.socket.load() < 0)
      continue;
    say(rank, {Word::Beat, 0, 0});
    peer.silent.look();
    peer.isQuiet = peer.silent.exceeds(
        std::chrono::duration<double>(3 * beatEvery).count());
    double most = silence;
    if (most <= 0)
      peer.silent.restart();
    else if (peer.silent.exceeds(most))
      lose(rank, Silent);
  }
}

void Pulse::listen(int32_t rank) {
  Peer &peer = peers[size_t(rank)];
  for (;;) {
    ssize_t count = ::recv(peer.socket.load(), peer.heard + peer.bytes,
                           wordBytes - peer.bytes, MSG_DONTWAIT);
    if (count > 0) {
      peer.silent.restart();
      peer.bytes += size_t(count);
      if (!heed(rank))
        return;
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    } else {
      hangUp(rank);
      // Who leaves is told of no loss: others leave, too.
      if (!left)
        lose(rank, Ended);
      return;
    }
  }
}

bool Pulse::heed(int32_t rank) {
  Peer &peer = peers[size_t(rank)];
  while (peer.bytes > 0) {
    size_t size = peer.heard[0] == Word::Beat ? 1 : wordBytes;
    if (peer.bytes < size)
      return true;
    int32_t about = -1, cause = Unknown;
    if (size > 1) {
      std::memcpy(&about, peer.heard + 1, sizeof(about));
      std::memcpy(&cause, peer.heard + 5, sizeof(cause));
    }
    switch (peer.heard[0]) {
    case Word::Leaves:
      hangUp(rank);
      return false;
    case Word::Ends:
      lose(rank, cause);
      break;
    case Word::Lost:
      // Who has given up this rank is of no use to it.
      if (about == self)
        lose(rank, cause);
      else if (about >= 0 && about < ranks)
        lose(about, cause);
      break;
    default:
      break;
    }
    peer.bytes -= size;
    std::memmove(peer.heard, peer.heard + size, peer.bytes);
  }
  return true;
}

int32_t Pulse::firstLost(int32_t seen) const {
  auto until = steady_clock::now() + aWhile;
  while (self != 0 && seen != 0 && lost < 0 && silence > 0 &&
         peers[0].isQuiet && steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  int32_t known = lost;
  return known < 0 ? seen : known;
}

std::string Pulse::describeSilence(double seconds) {
  return "it has said nothing for " + std::to_string(std::lround(seconds)) +
         " seconds: its process was stopped, or it cannot be reached";
}

std::string Pulse::whyLost(int32_t rank) const {
  const std::atomic<int32_t> &known = causes[size_t(rank)];
  auto until = steady_clock::now() + aMoment;
  while (known == Unknown && steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  switch (int32_t cause = known) {
  case Silent:
    return describeSilence(silence);
  case GaveUp:
    return "it has given up this rank, which had said nothing for too long";
  case Ended:
  case Unknown:
    return "its process has ended";
  default:
    const char *name = sigabbrev_np(cause);
    return "its process was ended by " +
           (name ? "SIG" + std::string(name)
                 : "signal " + std::to_string(cause));
  }
}
