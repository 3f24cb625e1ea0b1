//===- RankRelay.h - A step among several ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The part of a step that concerns other ranks. One thread does all of it,
/// that of the first device that lives elsewhere: so the transport's calls come
/// from one thread at a time (MPI_THREAD_SERIALIZED; with MPI_THREAD_MULTIPLE
/// MPI would lock in every call), and a sender never waits in MPI.
///
/// Where a device of this process offers its end of a message, the thread
/// begins a receive straight into the receiver's buffer, or a send straight
/// from the sender's. Both are begun in the order in which devices offer, which
/// is the proven order of the queues, none is waited for before the others, and
/// messages are told apart by tags: so nothing is in the way of what a device
/// waits for, and what cannot deadlock in one process cannot here. What is
/// longer than a message of the transport may be goes in pieces, one after the
/// other.
///
/// Steps that overlap end everywhere only together. A transport may keep what
/// was sent, so that a sender would run ahead of its receivers without end:
/// what it offers in a step waits until the devices that it sends to on the
/// other rank have left the last but one, so that it is a step ahead of them at
/// most, as within a process. Who has ended the fewest steps is never kept
/// waiting by this, and so nobody is for ever.
///
/// A device whose memory is its own has a port (Port.h) at its end: a message
/// is sent from the port's host buffer once the device has filled it, and goes
/// on to the device once it has arrived there; or the port moves it without the
/// transport.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_RANKRELAY_H
#define BAECHI_RUNTIME_RANKS_RANKRELAY_H

#include "Baechi/Runtime/Ranks.h"
#include "core/Attention.h"
#include "core/Exchange.h"
#include "core/Port.h"
#include "ranks/Protocol.h"
#include "ranks/Transport.h"

#include <optional>

namespace baechi::runtime {

class RankCalls;

class RankRelay final : public Relay {
public:
  RankRelay(std::shared_ptr<Ranks> ranks, const Program &program,
            Exchange &exchange, double graceSeconds, bool spins);
  ~RankRelay() override;

  /// What keeps the transport from serving the program.
  Error check() const;
  /// Before the first step: the port of a queue's end here, and what the ports
  /// share (or null).
  void setPort(size_t queue, Port &port);
  void setFabric(std::unique_ptr<Fabric> given) { fabric = std::move(given); }
  /// When no thread uses the devices any more.
  void dropFabric() { fabric.reset(); }

  void offered(int32_t queue, int32_t seq, bool odd) override;
  void stir() override;

  /// Why steps cannot overlap; "" when they can.
  std::string whySeparate() const;
  /// Between steps: for one, or for several that overlap.
  void reset(int64_t count = 1, bool overlap = false);
  /// For calls that overlap, from \p first on.
  void reset(int64_t first, std::shared_ptr<RankCalls> given);
  /// Forgets all messages under way; no step comes after it.
  void release();
  /// On the thread of a device that lives elsewhere: the step to its end, on
  /// all ranks. `self`: that device.
  int32_t run(baechi_context &self);
  /// Why the step failed, the same on all ranks; "" when it did not.
  const std::string &verdict() const { return agreed; }

  /// The device whose thread is the one.
  int32_t runBy() const { return runner; }
  int32_t ownerOf(int32_t device) const { return owners[device]; }
  const std::vector<int32_t> &deviceOwners() const { return owners; }
  /// "; it held" and the names of the devices of \p rank, for what is said of a
  /// rank that was lost.
  std::string describeHeld(int32_t rank) const;
  bool isElsewhere(int32_t device) const {
    return owners[device] != ranks->rank();
  }
  /// Rank 0, after a step: times of the devices and copies elsewhere.
  void addTimes(Timeline &timeline) const;

private:
  struct Message {
    int32_t queue;
    int32_t seq;
    int32_t peer;
    int32_t tag;
    bool sends;
    /// Of every other step, where steps overlap.
    bool odd = false;
    Ticket ticket;
    int64_t beganNs = 0;
    /// Bytes that the transport has moved or is moving.
    int64_t moved = 0;
    Port *port = nullptr;
    /// It is the port's turn, not the transport's.
    bool atPort = false;
    /// The device has been told that it may go on.
    bool told = false;
    /// Of steps that overlap: the one that it is of, and then the next.
    int64_t step = 0;
  };
  /// Another rank, as far as this one talks to it.
  struct Peer {
    int32_t rank = 0;
    bool talks = false; ///< only rank 0 talks to all
    bool ended = false, stopped = false, isLost = false;
    Ticket incoming;
    Notice received;
    static constexpr size_t outgoingAtOnce = 4;
    Ticket outgoing[outgoingAtOnce];
    Notice sent[outgoingAtOnce];
    int64_t progress = 0;
    Attention silent;
    /// Of its devices' operators and its ends of copies.
    std::vector<int64_t> times;
    Ticket timesTicket;
    bool timesBegun = false;
    /// Devices here that it sends to, and whether it is sent to.
    std::vector<int32_t> receivers;
    bool isSentTo = false;
    /// Of steps that overlap: how many all receivers here have left, as far as
    /// it was told; how many those there have, and what it says of that next.
    int64_t leftTold = 0, left = 0, leftHeard = 0;
    Ticket leftOutgoing, leftIncoming;
  };

  Error checkLanes() const;
  static std::string describe(const Problem &problem);
  const Slot &slotOf(const Message &message) const;
  bool begin(Message &message);
  bool transfer(Message &message);
  bool enterPort(Message &message);
  bool pollPort(Message &message, bool &ended);
  bool pollTransport(Message &message, bool &ended);
  void tell(Message &message);
  void fail(const Message &message, const Problem &problem);
  bool moveMessages();
  bool pollMessage(size_t position, bool &moved);
  bool hear(baechi_context &self);
  void heed(Peer &peer, baechi_context &self);
  bool say(Peer &peer, Notice::Kind kind, int64_t value = 0,
           const std::string &text = "");
  void sayAll(Notice::Kind kind, const std::string &text);
  void lookAround();
  void beat();
  int64_t progressHere() const;
  std::string describeOwnFailure() const;
  void breakOff(const std::string &why);
  void lose(int32_t rank, const std::string &why);
  bool mayBegin(const Message &message) const;
  bool start(uint32_t message);
  bool moveCalls();
  /// Of all steps that are known of.
  uint64_t messagesInAll() const {
    return messagesOfStep * uint64_t(steps - firstStep);
  }
  bool tellLeft(Peer &peer);
  bool hearLeft(Peer &peer);
  bool exchangeLeft();
  bool hasLeftAll(const Peer &peer) const;
  bool allDone() const;
  std::optional<int32_t> endStep();
  std::optional<int32_t> stopStep();
  void flush();
  void collectTimes();
  void rest(bool busy);

  const std::shared_ptr<Ranks> ranks;
  const Program &program;
  Exchange &exchange;
  Transport &transport;
  std::unique_ptr<Fabric> fabric;
  std::vector<Port *> ports;
  const double graceSeconds;
  const bool spins;
  std::vector<int32_t> owners;
  int32_t runner = -1;

  /// Those of odd steps behind all others.
  std::vector<Message> messages;
  /// For each queue its first message here.
  std::vector<size_t> firstMessage;
  /// What devices here have offered, in that order: message + 1; 0: not yet. A
  /// ring: of a message and its odd one there is one offer at a time.
  std::vector<std::atomic<uint32_t>> offers;
  alignas(cacheLineBytes) std::atomic<uint64_t> offerCount{0};
  uint64_t offersTaken = 0;
  /// Offered, but ahead of their receivers, or without room at their ports.
  std::vector<uint32_t> held;
  std::vector<uint32_t> active;
  size_t nextActive = 0;
  /// Of all steps.
  uint64_t done = 0;
  int64_t firstStep = 0, steps = 1; ///< the first, and what comes after all
  bool overlaps = false;
  bool isOpen = false; ///< more calls may come
  std::shared_ptr<RankCalls> calls;
  size_t messagesOfStep = 0;
  int32_t tagsOfStep = 0;

  std::vector<Peer> peers;
  /// This rank's own times, while they are being sent.
  std::vector<int64_t> times;
  Ticket timesTicket;
  bool saidEnded = false, saidFailed = false, aborted = false;
  bool endedEverywhere = false, brokenOff = false, cutOff = false;
  std::string agreed;
  Attention stopping;
  std::chrono::steady_clock::time_point lastLook, lastBeat;
  uint32_t idleLooks = 0;
  /// How often the thread looks around, whatever happens.
  static constexpr std::chrono::milliseconds lookEvery{5};
  bool sleeps = true; ///< the transport can wait, as far as is known
  /// What happens from now on has to wake the thread. It sets this before it
  /// looks for the last time, and others look at it after what they change: a
  /// sequentially consistent fence lies in between on both sides (Dekker),
  /// whatever the order of the looks and changes themselves.
  alignas(cacheLineBytes) std::atomic<bool> asleep{false};
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_RANKRELAY_H
