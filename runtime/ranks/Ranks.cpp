//===- Ranks.cpp - Processes that run one program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Ranks.h"
#include "core/Attention.h"
#include "ranks/Protocol.h"
#include "ranks/Pulse.h"
#include "ranks/Transport.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>
#include <vector>

using namespace baechi::runtime;

Ranks::Ranks(std::unique_ptr<Transport> transport)
    : link(std::move(transport)) {}
Ranks::~Ranks() = default;

int32_t Ranks::rank() const { return link->rank(); }
int32_t Ranks::size() const { return link->size(); }
bool Ranks::isNear(int32_t other) const {
  return other == rank() || link->sharesClock(other);
}
std::string Ranks::name(int32_t rank) { return "rank " + std::to_string(rank); }
int32_t Ranks::findLost() const { return link->lostRank(); }

int32_t Ranks::firstLost(int32_t seen) const {
  return pulse && seen >= 0 ? pulse->firstLost(seen) : seen;
}

std::string Ranks::describeLost(int32_t rank) const {
  return name(rank) + " was lost: " +
         (pulse ? pulse->whyLost(rank) : "its process has ended");
}

void Ranks::setPulse(std::unique_ptr<Pulse> given) {
  pulse = std::move(given);
  link->setGivenUp(&pulse->lostRank());
}

void Ranks::setSilence(double seconds) {
  silenceSeconds = seconds;
  if (pulse)
    pulse->setSilence(seconds);
}

void Ranks::sayEnding(int32_t signal) const {
  if (pulse)
    pulse->sayEnding(signal);
}

int32_t Ranks::ownerOf(size_t device, size_t devices) const {
  return int32_t(device * size_t(size()) / devices);
}

/// Waits for a message between steps. One that is received may take as long as
/// the other rank wants: it compiles, say. What is sent to it, it takes soon.
Error Ranks::wait(Ticket &ticket, Problem begun, int32_t peer, bool sends) {
  const double silence = silenceSeconds > 0 ? silenceSeconds : 10,
               patience = 6 * silence;
  if (broken())
    return Error(describeLost(lost));
  Problem problem = begun;
  int32_t lostFirst = -1;
  Attention since;
  for (int64_t looks = 0; !problem && ticket.busy; ++looks) {
    problem = link->poll(ticket);
    if (problem || !ticket.busy)
      break;
    if (looks < 200) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(looks < 2000 ? 50 : 1000));
    since.look();
    if (sends && silenceSeconds > 0 && since.exceeds(patience)) {
      link->abandon(ticket);
      setLost(peer);
      return Error(name(peer) +
                   " was lost: it has taken nothing of what it "
                   "was sent for " +
                   std::to_string(std::lround(patience)) + " seconds");
    }
    if (int32_t gone = link->lostRank(); gone >= 0) {
      // What it sent before may still be on its way.
      problem = link->poll(ticket);
      if (problem || !ticket.busy)
        break;
      if (lostFirst < 0) {
        lostFirst = gone;
        since.restart();
      }
      // Rank 0 tells of the others when it looks: it would take who has left by
      // then for the one that was lost. Where it has failed itself, it tells
      // nothing.
      if (!leads() && gone != 0 && !since.exceeds(silence))
        continue;
      // Who ends for the loss of another may be seen before that one.
      lostFirst = firstLost(lostFirst);
      setLost(lostFirst);
      link->abandon(ticket);
      return Error(describeLost(lostFirst));
    }
  }
  if (!problem)
    return Error();
  if (ticket.busy)
    link->abandon(ticket);
  setLost(peer);
  return Error(name(peer) + " cannot be reached: " + problem.reason +
               (problem.detail ? std::string(": ") + problem.detail : ""));
}

Error Ranks::send(int32_t to, std::string_view bytes) {
  int64_t size = int64_t(bytes.size());
  Ticket ticket;
  if (Error error = wait(
          ticket, link->send(ticket, to, tags::Size, &size, sizeof(size)), to,
          /*sends=*/true))
    return error;
  for (int64_t at = 0; at < size; at += tags::chunkBytes)
    if (Error error =
            wait(ticket,
                 link->send(ticket, to, tags::Bytes, bytes.data() + at,
                            std::min(tags::chunkBytes, size - at)),
                 to, /*sends=*/true))
      return error;
  return Error();
}

Expected<std::string> Ranks::receive(int32_t from) {
  std::string bytes;
  if (Error error = receive(from, bytes))
    return error;
  return bytes;
}

Error Ranks::receive(int32_t from, std::string &bytes) {
  int64_t size = 0;
  Ticket ticket;
  if (Error error = wait(
          ticket, link->receive(ticket, from, tags::Size, &size, sizeof(size)),
          from, /*sends=*/false))
    return error;
  bytes.resize(size_t(size));
  for (int64_t at = 0; at < size; at += tags::chunkBytes)
    if (Error error =
            wait(ticket,
                 link->receive(ticket, from, tags::Bytes, bytes.data() + at,
                               std::min(tags::chunkBytes, size - at)),
                 from, /*sends=*/false))
      return error;
  return Error();
}

Expected<std::vector<std::string>> Ranks::gather(const std::string &mine) {
  auto all = std::vector<std::string>(size_t(size()));
  all[size_t(rank())] = mine;
  if (!leads())
    if (Error error = send(0, mine))
      return error;
  for (int32_t from = 0; from < size(); ++from)
    if (from != rank())
      if (Error error = receive(leads() ? from : 0, all[size_t(from)]))
        return error;
  if (leads())
    for (int32_t to = 1; to < size(); ++to)
      for (int32_t from = 0; from < size(); ++from)
        if (from != to)
          if (Error error = send(to, all[size_t(from)]))
            return error;
  return all;
}

Error baechi::runtime::commandAll(Ranks &ranks, Command::Kind kind) {
  for (int32_t rank = 1; rank < ranks.size(); ++rank)
    if (Error error = ranks.send(rank, Command(kind).bytes()))
      return error;
  return Error();
}

Error Ranks::renew() {
  if (broken())
    return Error(describeLost(lost));
  if (Problem problem = link->renew()) {
    int32_t gone = link->lostRank();
    setLost(std::max(0, gone));
    if (gone >= 0)
      return Error(describeLost(gone));
    return Error(std::string(problem.reason) +
                 (problem.detail ? std::string(": ") + problem.detail : ""));
  }
  return Error();
}

/// Where two lists of lines "name: value" differ first; "" where they do not.
static std::string firstDifference(const std::string &mine,
                                   const std::string &theirs, int32_t rank) {
  std::istringstream a(mine), b(theirs);
  for (;;) {
    std::string x, y;
    bool more = bool(std::getline(a, x));
    more = bool(std::getline(b, y)) || more;
    if (!more)
      return "";
    if (x == y)
      continue;
    size_t colon = std::min(x.find(": "), x.size());
    std::string what = x.substr(0, colon);
    auto value = [&](const std::string &line) {
      return line.size() > colon + 2 ? line.substr(colon + 2) : "nothing";
    };
    return "the ranks differ in " + what + ": " + Ranks::name(0) + " has " +
           value(x) + ", " + Ranks::name(rank) + " has " + value(y);
  }
}

Error Ranks::agree(const Error &error, const std::string &same) {
  // The first byte says whether there is an error or what must be the same.
  std::string mine =
      error ? "e" + name(rank()) + ": " + error.message() : "s" + same;
  if (!leads()) {
    if (Error failed = send(0, mine))
      return failed;
    Expected<std::string> verdict = receive(0);
    if (!verdict)
      return verdict.takeError();
    return verdict->empty() ? Error() : Error(*verdict);
  }
  std::string verdict = error ? mine.substr(1) : "", difference;
  for (int32_t other = 1; other < size(); ++other) {
    Expected<std::string> theirs = receive(other);
    if (!theirs)
      return theirs.takeError();
    if ((*theirs)[0] == 'e') {
      verdict = verdict.empty() ? theirs->substr(1) : verdict;
    } else if (!error && difference.empty()) {
      difference = firstDifference(same, theirs->substr(1), other);
    }
  }
  if (verdict.empty())
    verdict = difference;
  for (int32_t other = 1; other < size(); ++other)
    if (Error failed = send(other, verdict))
      return failed;
  return verdict.empty() ? Error() : Error(verdict);
}

void Ranks::dismiss() {
  if (!mayEnd && !broken())
    (void)bool(commandAll(*this, Command::Quit));
  mayEnd = true;
}

void Ranks::close() {
  if (!closed && !broken()) {
    link->close();
    if (pulse)
      pulse->leave();
  }
  closed = true;
}
