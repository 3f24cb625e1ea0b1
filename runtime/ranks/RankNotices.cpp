//===- RankNotices.cpp - What ranks say during a step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/Pulse.h"
#include "ranks/RankCalls.h"

#include <algorithm>
#include <thread>

using namespace baechi::runtime;
using std::chrono::steady_clock;

/// How often a rank says that it lives, and looks whether the others do.
static constexpr std::chrono::milliseconds beatEvery(250);

/// False when a beat would have to wait.
bool RankRelay::say(Peer &peer, Notice::Kind kind, int64_t value,
                    const std::string &text) {
  auto until = steady_clock::now() + std::chrono::seconds(1);
  for (;;) {
    for (size_t i = 0; i < Peer::outgoingAtOnce; ++i) {
      if (peer.outgoing[i].busy && transport.poll(peer.outgoing[i]))
        return false;
      if (peer.outgoing[i].busy)
        continue;
      peer.sent[i].kind = kind;
      peer.sent[i].value = value;
      peer.sent[i].setText(text);
      return !transport.send(peer.outgoing[i], peer.rank, tags::Notice,
                             &peer.sent[i], sizeof(Notice));
    }
    if (kind == Notice::Beat || steady_clock::now() > until)
      return false;
    std::this_thread::yield();
  }
}

void RankRelay::sayAll(Notice::Kind kind, const std::string &text) {
  for (Peer &peer : peers)
    if (peer.talks && !peer.isLost)
      say(peer, kind, ranks->broken() ? ranks->lostRank() + 1 : 0, text);
}

/// Waits until what was said has gone: nobody looks at it between steps.
void RankRelay::flush() {
  auto until = steady_clock::now() + std::chrono::seconds(1);
  for (Peer &peer : peers)
    for (Ticket &ticket : peer.outgoing)
      while (ticket.busy && !peer.isLost && !transport.poll(ticket) &&
             ticket.busy && steady_clock::now() < until)
        std::this_thread::yield();
}

/// Whether there was a notice.
bool RankRelay::hear(baechi_context &self) {
  bool heard = false;
  for (Peer &peer : peers) {
    if (!peer.talks || peer.isLost || endedEverywhere)
      continue;
    // What was said has gone, and keeps nobody awake.
    for (Ticket &ticket : peer.outgoing)
      if (transport.hasEnded(ticket))
        (void)transport.poll(ticket);
    if (!peer.incoming.busy)
      if (Problem problem =
              transport.receive(peer.incoming, peer.rank, tags::Notice,
                                &peer.received, sizeof(Notice))) {
        lose(peer.rank, describe(problem));
        continue;
      }
    if (Problem problem = transport.poll(peer.incoming))
      lose(peer.rank, describe(problem));
    else if (!peer.incoming.busy) {
      heard = true;
      peer.silent = Attention();
      heed(peer, self);
    }
  }
  return heard;
}

void RankRelay::heed(Peer &peer, baechi_context &self) {
  Notice &notice = peer.received;
  notice.text[sizeof(notice.text) - 1] = 0;
  switch (notice.kind) {
  case Notice::Beat:
    // What goes on elsewhere keeps this rank's watchdog quiet.
    if (peer.progress != notice.value)
      self.progress.fetch_add(1, std::memory_order_relaxed);
    peer.progress = notice.value;
    break;
  case Notice::Ended:
    peer.ended = true;
    endedEverywhere = !ranks->leads();
    break;
  case Notice::Failed:
    // A loss is known here, too, and better: who ends says why to rank 0.
    if (int32_t gone = ranks->firstLost(transport.lostRank());
        gone >= 0 && !peers[gone].isLost)
      lose(gone, ranks->describeLost(gone));
    else
      breakOff(notice.text);
    break;
  case Notice::Abort:
    agreed = notice.text;
    aborted = true;
    if (notice.value > 0)
      ranks->setLost(int32_t(notice.value) - 1);
    exchange.abort(agreed);
    break;
  case Notice::Stopped:
    peer.stopped = true;
    brokenOff |= notice.value != 0;
    break;
  }
}

/// Rank 0: the first failure of all becomes the step's.
void RankRelay::breakOff(const std::string &why) {
  if (aborted)
    return;
  aborted = true;
  agreed = why;
  exchange.abort(why);
  sayAll(Notice::Abort, why);
}

std::string RankRelay::describeHeld(int32_t rank) const {
  std::string text = "; it held";
  for (size_t i = 0; i < owners.size(); ++i)
    if (owners[i] == rank)
      text += " " + program.devices[i].name;
  return text;
}

/// A rank cannot be reached any more. Others than rank 0 say so, and wait to be
/// told, as after any failure.
void RankRelay::lose(int32_t rank, const std::string &why) {
  ranks->setLost(rank);
  peers[rank].isLost = true;
  std::string text = why + describeHeld(rank);
  std::string devices = exchange.describeDevices();
  if (!devices.empty())
    text += "; meanwhile " + devices;
  if (ranks->leads())
    breakOff(text);
  else
    exchange.abort(text);
}

/// Every few milliseconds: do the others live?
void RankRelay::lookAround() {
  steady_clock::time_point now = steady_clock::now();
  if (now - lastLook < lookEvery)
    return;
  lastLook = now;
  if (fabric && !exchange.aborted())
    if (Problem problem = fabric->check())
      exchange.abort(describe(problem));
  int32_t gone = transport.lostRank();
  if (gone >= 0 && !peers[gone].isLost)
    gone = ranks->firstLost(gone);
  if (gone >= 0 && !peers[gone].isLost)
    lose(gone, ranks->describeLost(gone));
  for (Peer &peer : peers) {
    if (!peer.talks || peer.isLost || ranks->silence() <= 0)
      continue;
    peer.silent.look();
    if (peer.silent.exceeds(ranks->silence()))
      lose(peer.rank, Ranks::name(peer.rank) + " was lost: " +
                          Pulse::describeSilence(ranks->silence()));
  }
  if (now - lastBeat >= beatEvery) {
    lastBeat = now;
    beat();
  }
}

int64_t RankRelay::progressHere() const {
  int64_t sum = 0;
  for (size_t i = 0; i < owners.size(); ++i)
    if (!isElsewhere(int32_t(i)))
      sum += int64_t(exchange.context(i).progress.load());
  return sum;
}

/// Tells of this rank's progress; rank 0 tells of all.
void RankRelay::beat() {
  int64_t all = progressHere();
  if (ranks->leads())
    for (const Peer &peer : peers)
      all += peer.progress;
  for (Peer &peer : peers)
    if (peer.talks && !peer.isLost)
      say(peer, Notice::Beat, all);
}

//===----------------------------------------------------------------------===//
// A step's end
//===----------------------------------------------------------------------===//

bool RankRelay::allDone() const {
  return !isOpen && (!calls || calls->isIdle()) && done == messagesInAll() &&
         exchange.idleHere(/*waitingCounts=*/false) &&
         std::all_of(peers.begin(), peers.end(),
                     [&](const Peer &peer) { return hasLeftAll(peer); }) &&
         std::all_of(ports.begin(), ports.end(),
                     [](Port *port) { return port->isIdle(); });
}

/// What the step returns, once it has ended well on all ranks.
std::optional<int32_t> RankRelay::endStep() {
  if (!saidEnded && allDone()) {
    saidEnded = true;
    if (!ranks->leads()) {
      collectTimes();
      if (!times.empty())
        if (Problem problem =
                transport.send(timesTicket, 0, tags::Times, times.data(),
                               int64_t(times.size() * sizeof(int64_t)))) {
          lose(0, describe(problem));
          return std::nullopt;
        }
      if (!say(peers[0], Notice::Ended))
        lose(0, Ranks::name(0) + " cannot be reached");
    }
  }
  if (!saidEnded) {
    // The devices here have ended, so nobody is left to offer the rest.
    if (!isOpen && exchange.idleHere(/*waitingCounts=*/false) &&
        !exchange.aborted() && !exchange.isBringing() &&
        offersTaken == offerCount.load(std::memory_order_acquire) &&
        offersTaken < messagesInAll())
      exchange.abort(exchange.describeUndelivered());
    return std::nullopt;
  }
  if (!ranks->leads()) {
    if (timesTicket.busy)
      if (Problem problem = transport.poll(timesTicket))
        lose(0, describe(problem));
    return endedEverywhere && !timesTicket.busy ? std::optional(0)
                                                : std::nullopt;
  }
  for (Peer &peer : peers) {
    if (!peer.talks)
      continue;
    if (!peer.ended)
      return std::nullopt;
    if (peer.times.empty())
      continue;
    if (!peer.timesBegun) {
      peer.timesBegun = true;
      if (Problem problem = transport.receive(
              peer.timesTicket, peer.rank, tags::Times, peer.times.data(),
              int64_t(peer.times.size() * sizeof(int64_t)))) {
        lose(peer.rank, describe(problem));
        return std::nullopt;
      }
    }
    if (peer.timesTicket.busy)
      if (Problem problem = transport.poll(peer.timesTicket))
        lose(peer.rank, describe(problem));
    if (peer.timesTicket.busy)
      return std::nullopt;
  }
  if (aborted)
    return std::nullopt;
  collectTimes();
  sayAll(Notice::Ended, "");
  flush();
  return 0;
}

/// Why this rank stopped, with the rank in front; who lost another names that.
std::string RankRelay::describeOwnFailure() const {
  std::string text = exchange.describeFailure();
  return ranks->broken() ? text : Ranks::name(ranks->rank()) + ": " + text;
}

/// What the step returns, once it has been stopped everywhere.
std::optional<int32_t> RankRelay::stopStep() {
  stopping.look();
  if (ranks->leads())
    breakOff(describeOwnFailure());
  else if (!saidFailed) {
    // Unless it was rank 0 that said so.
    saidFailed = true;
    if (!aborted && !peers[0].isLost)
      say(peers[0], Notice::Failed, 0, describeOwnFailure());
  }
  // Devices inside a kernel have less time than rank 0 waits for the answers.
  bool late = stopping.exceeds(0.7 * graceSeconds);
  bool idle = exchange.idleHere(/*waitingCounts=*/false);
  if (!idle && !late)
    return std::nullopt;
  if (!ranks->leads()) {
    bool isUnheard = !aborted && !peers[0].isLost;
    if (isUnheard && !stopping.exceeds(0.9 * graceSeconds))
      return std::nullopt;
    if (!peers[0].isLost)
      say(peers[0], Notice::Stopped, !idle);
    // Stopped itself, say: nobody else would tell, and its next command may
    // never come. Where it is only slow, it still says that it lives.
    bool isSilent = isUnheard && peers[0].silent.exceeds(0.5 * graceSeconds);
    if (isSilent)
      ranks->setLost(0);
    if (agreed.empty())
      agreed = describeOwnFailure();
    if (isSilent)
      agreed += "; " + Ranks::name(0) + " does not answer";
    flush();
    return 1;
  }
  for (const Peer &peer : peers)
    if (peer.talks && !peer.isLost && !peer.stopped &&
        !stopping.exceeds(graceSeconds))
      return std::nullopt;
  for (const Peer &peer : peers)
    if (peer.talks && !peer.isLost && !peer.stopped) {
      ranks->setLost(peer.rank);
      agreed += "; " + Ranks::name(peer.rank) + " did not stop";
    }
  if (brokenOff)
    agreed += "; a device elsewhere is still inside a kernel";
  flush();
  return 1;
}
