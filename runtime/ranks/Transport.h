//===- Transport.h - Messages between processes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What several processes that run one program, its ranks, exchange messages
/// with: MPI (transport/mpi), or threads of one process that stand for ranks in
/// tests (LoopbackTransport.h). Messages of the same sender, receiver and tag
/// arrive in the order in which they were sent; others in any.
///
/// Calls come from one thread at a time. None blocks, and none allocates memory
/// of ours.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_TRANSPORT_H
#define BAECHI_RUNTIME_RANKS_TRANSPORT_H

#include "core/Asynchronous.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace baechi::runtime {

/// A message under way.
struct Ticket {
  /// The transport's own.
  uint64_t handle = 0;
  bool busy = false;
};

class Transport {
public:
  virtual ~Transport() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  /// How many ranks share this one's machine, itself among them.
  virtual int32_t ranksHere() const = 0;
  /// Whether that rank's steady clock is this one's.
  virtual bool sharesClock(int32_t rank) const = 0;
  /// Of one message; the same for all ranks.
  virtual int64_t largestBytes() const = 0;
  virtual int32_t largestTag() const = 0;

  /// Begin a message. The buffer is the transport's, the ticket busy, until
  /// poll() has ended it. Messages between two ranks with one tag are received
  /// in the order in which they were sent.
  virtual Problem send(Ticket &ticket, int32_t to, int32_t tag,
                       const void *data, int64_t bytes) = 0;
  virtual Problem receive(Ticket &ticket, int32_t from, int32_t tag, void *data,
                          int64_t bytes) = 0;
  /// Ends the message if it can; the ticket is busy no more when it has.
  virtual Problem poll(Ticket &ticket) = 0;
  /// Forgets a message, whose other end may never come. Its buffer may be gone
  /// afterwards, and renew() must come before the next message.
  virtual void abandon(Ticket &ticket) = 0;

  /// Of a transport that can wait: how many messages of this session have ended
  /// unnoticed, as others were polled, and whether that one has. poll() ends
  /// them without a look at anything else.
  virtual int64_t ended() const { return 0; }
  virtual bool hasEnded(const Ticket &) const { return false; }
  /// Sleeps until something of the messages under way may have come, wake() is
  /// called, or for that long; not at all while any has ended() unnoticed.
  /// False: it cannot, and has to be polled.
  virtual bool wait(std::chrono::microseconds) { return false; }
  /// Ends a wait, or the next one, at once. By any thread; must not block.
  virtual void wake() {}

  /// By all ranks: messages that were begun before will never meet those that
  /// are begun afterwards.
  virtual Problem renew() = 0;

  /// A rank that goes on no more: one that was given up, or whose process has
  /// ended; -1: none that is known of. May be called at any time by any thread,
  /// and by signal handlers.
  int32_t lostRank() const {
    int32_t rank = givenUp ? givenUp->load() : -1;
    return rank >= 0 ? rank : endedRank();
  }
  /// Who else knows of ranks that were lost (Pulse.h), -1 as long as none was.
  void setGivenUp(const std::atomic<int32_t> *rank) { givenUp = rank; }

  /// The last call, by all ranks.
  virtual void close() = 0;

protected:
  /// A rank whose process has ended, as far as messages show it. On the machine
  /// of this rank it is known at once.
  virtual int32_t endedRank() const = 0;
  bool hasGivenUp() const { return givenUp && givenUp->load() >= 0; }

private:
  const std::atomic<int32_t> *givenUp = nullptr;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_TRANSPORT_H
