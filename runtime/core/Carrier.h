//===- Carrier.h - A simulated network --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Moves the messages of queues with simulated links, while devices compute: a
/// message has its lanes for its bytes, and arrives a latency after these, in
/// which the lanes have others. A lane is a bucket of no depth: it has one
/// message at a time, and whose turn comes is the one that the plan starts
/// first (then by queue and number).
///
/// Whose turn it was is found out when the thread looks, from when messages
/// were offered: a message has its lanes from the moment that they were free,
/// so what the machine is late does not add up. So the thread sleeps until a
/// message may have arrived as a whole, and while it is awake copies what has
/// its lanes already: both ends have offered their buffers, and look at them
/// when it has arrived. On a machine whose devices have all processors it is
/// these that it takes time from.
///
/// A message to another process has its lanes once it is offered here, as
/// nobody here knows when it is awaited there, and is the relay's when it has
/// arrived: its way through the machine comes on top. Lanes are of one
/// process's queues.
///
/// A program with an exchange (ExchangeOrder) has other rules: of what was
/// offered when the lanes became free the smallest priority goes first, then
/// what was offered first. Where steps overlap, an earlier step's messages go
/// before all of a later one: whoever receives them has no use for these
/// before those, and may be what the later ones' receivers wait for. Messages
/// may be cut in slices, which take the lanes each by itself: others overtake
/// between them.
/// Jayarajan et al., "Priority-based Parameter Propagation for Distributed DNN
/// Training" (P3), MLSys 2019.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_CARRIER_H
#define BAECHI_RUNTIME_CORE_CARRIER_H

#include "Baechi/Runtime/Program.h"
#include "core/Exchange.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace baechi::runtime {

class Carrier final : public Relay {
public:
  /// Starts the thread. Throws std::system_error.
  Carrier(const Program &program, Exchange &exchange);
  ~Carrier() override;

  /// Whether a queue has a link that is simulated.
  static bool isNeeded(const Program &program);

  void offered(int32_t queue, int32_t seq, bool odd) override;

  /// After a step, successful or not: nothing is moved from here on until the
  /// next offer.
  void drop();

  /// The processor's time that its thread has taken.
  int64_t processorNs();

private:
  struct Message {
    int64_t step; ///< since the clock was set
    int64_t offeredNs;
    int64_t plannedNs;
    int64_t priority;
    int32_t queue;
    int32_t seq;
    bool odd;
    /// Of the next slice, or the one that is moving.
    int64_t beginNs = 0;
    int64_t endNs = 0;
    int64_t movedBytes = 0;  ///< of the slices before it
    int64_t firstNs = 0;     ///< when the first one began
    int64_t copiedBytes = 0; ///< to where the receiver has it
  };

  const SimulatedLink &linkOf(const Message &message) const;
  int64_t bytesOf(const Message &message) const;
  void work();
  int64_t sliceOf(const Message &message) const;
  bool isLastSlice(const Message &message) const;
  int64_t beginOf(const Message &message) const;
  int64_t leastArrivalNs(const Message &message, bool isMoving) const;
  bool isMoreUrgent(const Message &a, const Message &b) const;
  void boardOne(std::vector<Message>::iterator message, int64_t begin);
  /// Gives waiting messages the lanes that were free by \p now.
  void board(int64_t now);
  /// Delivers a message that has arrived by \p now; gives up \p lock
  /// meanwhile, as copyAhead.
  bool deliver(std::unique_lock<std::mutex> &lock, int64_t now);
  /// Copies a part of a message that has its lanes; false where there is none.
  bool copyAhead(std::unique_lock<std::mutex> &lock);
  void copy(std::unique_lock<std::mutex> &lock, Message &message,
            int64_t mostBytes);
  void noteArrival(const Message &message);
  int64_t nextNs() const;

  const Program &program;
  Exchange &exchange;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Message> waiting;
  std::vector<Message> moving;
  /// Of each queue: how often each message was offered.
  std::vector<std::vector<int64_t>> steps;
  /// When each lane is free again, ns since the step's start.
  std::vector<int64_t> freeNs;
  /// Until when the time is counted in which each lane had messages to move.
  std::vector<int64_t> countedNs;
  /// When the thread looks by itself; before all times while it is awake.
  int64_t wakesAtNs;
  bool isCopying = false;
  bool isDropped = false; ///< while what is copied is waited for
  bool isEnding = false;
  std::thread thread;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_CARRIER_H
