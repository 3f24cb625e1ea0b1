//===- Exchange.h - Messages between devices --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The rendezvous. A message has a slot; sender and receiver each offer their
/// buffer without blocking. Once both have, whoever awaits first claims the
/// copy and does it; the other waits for its end. So an await depends on
/// nothing but the other end's offer. A failure anywhere wakes everyone.
///
/// A message that is lent has no copy: the receiver borrows the sender's buffer
/// once it is offered, and giving it back is what marks it done.
///
/// Memory orders. An offer writes its pointer into the slot, then ORs its bit
/// into `Slot::state`: who sees both bits sees both pointers and, behind them,
/// the buffers' contents. The copy's end ORs in `Done`, which an await
/// acquires. A sleeper stores `Asleep` into its doorbell and then looks at the
/// slot; who offers or copies changes the slot and then looks at the doorbell.
/// Both pairs are sequentially consistent, so one of the two sees the other
/// (Dekker), and no system call is made for a device that is awake.
///
/// Steps that overlap (`setOverlapped`). A device ends its step when all of its
/// messages are done, and begins the next one whatever others do. Odd steps
/// have slots of their own. Each end says that it has left a slot; the last one
/// makes it new. Before either end uses it again, two steps later, the message
/// between, in the other slot, was done: so the other end had begun that step,
/// and had left this slot. Of a message to or from another process there is one
/// end here, whose leaving makes the slot new.
///
/// A carried message is offered in one step and awaited in the next, before
/// the same end offers it again; that await leaves the slot. An end that uses
/// it again, two steps later, has awaited the message between: so the other end
/// had offered that, and had left this slot before.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_EXCHANGE_H
#define BAECHI_RUNTIME_CORE_EXCHANGE_H

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Fault.h"
#include "Baechi/Runtime/HostCalls.h"
#include "Baechi/Runtime/Program.h"
#include "Baechi/Runtime/Timeline.h"
#include "core/Asynchronous.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace baechi::runtime {

class Exchange;

/// What is written by different threads is kept on different cache lines.
inline constexpr size_t cacheLineBytes = 64;

/// A message of the current step.
struct alignas(cacheLineBytes) Slot {
  enum : uint32_t {
    Sent = 1,
    Received = 2,
    Claimed = 4,
    Done = 8,
    LeftBySender = 16, ///< of steps that overlap
    LeftByReceiver = 32
  };
  static constexpr uint32_t Offered = Sent | Received;
  std::atomic<uint32_t> state{0};
  const void *source = nullptr;
  void *destination = nullptr;
  CopyRecord copy;
  int64_t bytes = 0;
  bool lent = false;
};

/// Who moves the messages of a queue.
enum class Reach : uint8_t {
  Here,     ///< both devices are of this process
  Carried,  ///< so, and the relay moves them, over a simulated network
  Relayed,  ///< one is; the relay moves them to and from another process
  Elsewhere ///< none is: nothing is done here
};

/// Takes messages to other processes and brings theirs, or moves those of a
/// simulated network.
class Relay {
public:
  virtual ~Relay() = default;

  /// A device of this process has offered its end, on its own thread; of a
  /// message within the process: both have. Of one that a simulated link has
  /// brought to another process: on the carrier's. Must neither block nor
  /// allocate.
  /// `odd`: of steps that overlap, in which of the slots.
  virtual void offered(int32_t queue, int32_t seq, bool odd) = 0;
  /// A device has ended its part of a step, or the step was aborted. By any
  /// thread.
  virtual void stir() {}
};

/// Looks after the other devices while the coordinator's own thread runs one.
class Attendant {
public:
  virtual ~Attendant() = default;

  /// Every tick in which that device sleeps. May abort the step.
  virtual void look() = 0;
};

/// A queue at work.
struct Channel {
  int32_t from;
  int32_t to;
  /// Both ends hold data, so there is something to copy.
  bool moves;
  const std::vector<MessageInfo> &messages;
  std::vector<Slot> slots;
  /// Of odd steps, where steps overlap.
  std::vector<Slot> oddSlots;
  /// Copies them; null where memcpy does.
  std::unique_ptr<Mover> mover;
  Reach reach = Reach::Here;
  /// Known to the receiver only: all messages before this one are done.
  size_t firstOpen = 0;

  std::vector<Slot> &slotsOf(bool odd) { return odd ? oddSlots : slots; }
  const std::vector<Slot> &slotsOf(bool odd) const {
    return odd ? oddSlots : slots;
  }
};

/// Why a device failed; `reason` is static.
struct Failure {
  const char *reason = "";
  const char *detail = nullptr;
  int32_t queue = -1;
  int32_t seq = -1;
  /// What the step function returned, when that is the failure.
  int32_t code = 0;
  /// Where the device was, as in baechi_context, and in which of several steps;
  /// filled in by Exchange::fail.
  int32_t place = -1;
  int64_t step = 0;
  /// The device whose failure this one saw; -1: its own.
  int32_t culprit = -1;
};

} // namespace baechi::runtime

/// A device as its program sees it: the handle of the C interface. Written by
/// the device's thread; the coordinator reads the atomics at any time and the
/// rest between steps.
struct alignas(baechi::runtime::cacheLineBytes) baechi_context {
  baechi_context(baechi::runtime::Exchange &exchange, int32_t device,
                 size_t operators, bool idle)
      : exchange(exchange), device(device), idle(idle), operators(operators) {}

  static constexpr int32_t nowhere = -1;
  static constexpr uint64_t nothing = UINT64_MAX;
  enum : uint32_t { Awake, Asleep };

  baechi::runtime::Exchange &exchange;
  const int32_t device;
  /// The step has nothing for it to do, so no step wakes it.
  bool idle;
  std::vector<baechi::runtime::Interval> operators;
  /// The step is only run through (Driver::rehearse): its messages are none.
  bool rehearses = false;
  /// What it borrows then.
  const void *standIn = nullptr;
  /// Null: an operator runs while its thread is between begin and end.
  baechi::runtime::OperatorMarks *marks = nullptr;
  /// Null: the thread is the device's own, which others look after.
  baechi::runtime::Attendant *attendant = nullptr;
  baechi::runtime::Failure failure;
  /// What a host call that failed said.
  std::array<char, 2000> hostError{};
  /// 2 * op inside an operator, 2 * op + 1 after it.
  std::atomic<int32_t> place{nowhere};
  /// Grows with every call of the C interface: the watchdog's food.
  std::atomic<uint64_t> progress{0};
  /// The message it sleeps for: odd << 63 | queue << 32 | seq.
  std::atomic<uint64_t> waitingFor{nothing};
  /// It is not inside a step, or inside its start.
  std::atomic<bool> finished{false};
  /// Of steps that overlap, the number of the one that it is in: those that it
  /// has ended, where the first is 0.
  std::atomic<int64_t> stepsEnded{0};
  bool isOdd() const {
    return (stepsEnded.load(std::memory_order_relaxed) & 1) != 0;
  }
  /// Written by peers.
  alignas(baechi::runtime::cacheLineBytes) std::atomic<uint32_t> doorbell{
      Awake};
};

namespace baechi::runtime {

class Exchange {
  using Clock = std::chrono::steady_clock;

public:
  /// What send, recv and await return when the step was aborted.
  static constexpr int32_t Stop = 1;

  /// `holdsData[d]`: device d has memory that messages are copied from and to.
  /// `spins`: how often an await looks before it sleeps.
  /// `faults`: null, or what makes calls fail.
  Exchange(const Program &program, const std::vector<bool> &holdsData,
           int32_t spins, bool timeline, FaultInjector *faults);

  // Called by the device threads.
  int32_t offer(baechi_context &self, Side side, int32_t queue, int32_t seq,
                const void *source, void *destination);
  int32_t await(baechi_context &self, Side side, int32_t queue, int32_t seq);
  int32_t borrow(baechi_context &self, int32_t queue, int32_t seq,
                 const void **source);
  int32_t giveBack(baechi_context &self, int32_t queue, int32_t seq);
  void beginOperator(baechi_context &self, int32_t op);
  void endOperator(baechi_context &self, int32_t op);
  /// Lets the host program compute its function `name`.
  int32_t callHost(baechi_context &self, const char *name, void *const *places);
  /// Of steps that overlap: ends one, once all messages of the device are
  /// done, those that are carried only after the last, and is ready for the
  /// next.
  int32_t leaveStep(baechi_context &self, bool isLast);
  /// After a step that no other overlaps: waits for the carried messages.
  int32_t awaitCarried(baechi_context &self) {
    return awaitCarried(self, self.isOdd());
  }
  /// Of steps that overlap, between two of them or after all: waits for what
  /// the last one carries that the device has ended, if it has ended any. The
  /// next step awaits it once more.
  int32_t awaitCarriedByLast(baechi_context &self);
  /// Aborts the step on behalf of `self`. The first failure counts.
  int32_t fail(baechi_context &self, const Failure &failure);

  /// Whether times are recorded.
  bool keepsTimeline() const { return timeline; }
  /// Between steps.
  void recordTimes(bool wanted) { timeline = wanted; }

  // Called by the coordinator.

  /// Before the first step.
  void setMover(size_t queue, std::unique_ptr<Mover> mover) {
    queues[queue].mover = std::move(mover);
  }
  /// Before the first step: the devices of other processes, who moves messages
  /// to and from them, and whose thread does.
  void setRelay(Relay *given, const std::vector<bool> &elsewhere,
                int32_t runner);
  /// Before the first step: who moves the messages of queues with simulated
  /// links.
  void setCarrier(Relay *given);
  /// Between steps: who computes host calls.
  void setHostCalls(HostCalls given) { hostCalls = given; }
  bool callsHost() const { return hostCalls.function != nullptr; }
  /// Between steps: the next ones read an argument where the caller has it,
  /// until all are taken back. Where calls overlap, between two steps of the
  /// device that asks for it, on its thread; null: in its place.
  void lendArgument(size_t argument, const void *memory) {
    lentArguments[argument] = memory;
  }
  void takeArgumentsBack() {
    std::fill(lentArguments.begin(), lentArguments.end(), nullptr);
  }
  /// Null: it lies in its place.
  const void *lentArgument(int32_t argument) const {
    return size_t(argument) < lentArguments.size()
               ? lentArguments[size_t(argument)]
               : nullptr;
  }
  /// When no thread uses them any more.
  void dropMovers() {
    for (Channel &channel : queues)
      channel.mover.reset();
  }

  /// Makes all messages new, and \p first the number of the next step. Between
  /// steps.
  void reset(int64_t first = 0);
  /// Between steps: whether devices that follow begin their next step alone.
  void setOverlapped(bool given);
  bool isOverlapped() const { return overlapped; }
  /// Aborts the step from outside, for that reason; false when a device was
  /// first.
  bool abort(std::string reason);
  bool aborted() const {
    return failed.load(std::memory_order_acquire) != nobody;
  }
  /// True when every device has finished or waits for a message that only
  /// another waiting or finished device could complete.
  bool deadlocked();
  /// Grows while any device makes progress.
  uint64_t progress() const;
  /// What each unfinished device is doing.
  std::string describeDevices() const;
  /// Why the step was aborted.
  std::string describeFailure() const;
  /// The first message that was not delivered in a step that ended well; "" if
  /// there is none.
  std::string describeUndelivered() const;

  /// On the carrier's thread: that message has arrived, after that time; one to
  /// another process is the relay's now.
  void arrive(int32_t queue, int32_t seq, bool odd, Interval moved);
  /// On the device's thread: all that it does of the steps.
  void finishPart(baechi_context &self);
  /// On the relay's thread: that message has been moved, in that time.
  void complete(int32_t queue, int32_t seq, bool odd, Interval copied);
  /// Whether all devices of this process have ended their part of the step, or
  /// wait for messages.
  bool idleHere(bool waitingCounts) const;

  /// Whether messages to other processes are on their way over simulated
  /// links: the carrier still offers them.
  bool isBringing() const {
    return bringing.load(std::memory_order_acquire) != 0;
  }

  /// Since the last reset, which is the step's start.
  int64_t elapsedNs() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                                epoch)
        .count();
  }

  /// Whether a test wants this call to fail.
  bool injected(Call call) const { return faults && faults->fails(call); }

  const std::vector<Channel> &channels() const { return queues; }
  /// Of this process's links since the last reset, by who moves messages over
  /// them: complete for those that have arrived.
  std::vector<LaneRecord> &lanes() { return laneRecords; }
  baechi_context &context(size_t device) { return *contexts[device]; }

private:
  static constexpr int32_t nobody = -1;
  static constexpr int32_t coordinator = -2;

  Slot *find(baechi_context &self, Side side, int32_t queue, int32_t seq);
  static uint64_t waitOf(bool odd, int32_t queue, int32_t seq) {
    return uint64_t(odd) << 63 | uint64_t(uint32_t(queue)) << 32 |
           uint64_t(uint32_t(seq));
  }
  static int32_t queueOf(uint64_t wait) { return int32_t(wait << 1 >> 33); }
  static int32_t seqOf(uint64_t wait) { return int32_t(uint32_t(wait)); }
  int32_t awaitLastStep(baechi_context &self, Side side, int32_t queue,
                        int32_t seq);
  int32_t awaitCarried(baechi_context &self, bool odd);
  /// Whether the device has ended none of the steps since the last reset.
  bool isInFirstStep(const baechi_context &self) const {
    return self.stepsEnded.load(std::memory_order_relaxed) == firstStep;
  }
  static void leave(const Channel &channel, Slot &slot, Side side);
  bool copy(baechi_context &self, const Channel &channel, Slot &slot,
            Side side);
  Slot &slotOf(uint64_t wait);
  bool finish(baechi_context &self, Channel &channel, Slot &slot, Side side);
  /// Waits until \p done, copying other messages ahead meanwhile; false when
  /// the step was aborted.
  template <typename Done>
  bool waitUntil(baechi_context &self, uint64_t wait, Slot &slot, Done done);
  int32_t settle(baechi_context &self, Side side, int32_t queue, int32_t seq);
  int32_t failMoving(baechi_context &self, const Problem &problem,
                     int32_t queue, int32_t seq);
  bool copyAhead(baechi_context &self);
  static void ring(baechi_context &sleeper);
  void ringAll();
  void stirRelay() {
    if (relay)
      relay->stir();
  }
  std::string describeMessage(int32_t queue, int32_t seq) const;
  std::string describePlace(int32_t device, int32_t place) const;

  const Program &program;
  const int32_t spins;
  bool timeline;
  FaultInjector *const faults;
  Relay *relay = nullptr;
  Relay *carrier = nullptr;
  HostCalls hostCalls;
  std::vector<const void *> lentArguments;
  std::vector<LaneRecord> laneRecords;
  std::vector<bool> elsewhere;
  /// How many of them.
  std::atomic<int64_t> bringing{0};
  bool overlapped = false;
  int64_t firstStep = 0;
  Clock::time_point epoch;
  std::vector<Channel> queues;
  /// Queues and numbers.
  std::vector<std::pair<int32_t, int32_t>> carried;
  std::vector<std::unique_ptr<baechi_context>> contexts;
  /// The coordinator's, kept so that a step allocates nothing.
  struct Wait {
    uint64_t message; ///< as baechi_context::waitingFor
    int32_t device;
    int64_t steps; ///< as baechi_context::stepsEnded
  };
  std::vector<Wait> waits;
  /// Why the step was aborted from outside; written, under the lock, before
  /// `failed` says so.
  std::string abortReason;
  std::mutex abortMutex;
  /// The device whose failure aborted the step.
  alignas(cacheLineBytes) std::atomic<int32_t> failed{nobody};
};

/// The device whose thread this is, for calls without a context; null on
/// others.
extern thread_local baechi_context *thisDevice;

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_EXCHANGE_H
