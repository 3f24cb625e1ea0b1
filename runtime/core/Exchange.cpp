//===- Exchange.cpp - Messages between devices ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Exchange.h"

#include "Baechi/Runtime/Rules.h"
#include "core/Driver.h"
#include "core/ExchangeWait.h"
#include "core/Futex.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>

using namespace baechi::runtime;

/// No operator, no message, and no memory that its step could copy within.
static bool isIdle(const Program &program, int32_t device) {
  const DeviceInfo &info = program.devices[device];
  return info.operators.empty() && info.arenaBytes == 0 &&
         std::none_of(program.queues.begin(), program.queues.end(),
                      [&](const QueueInfo &queue) {
                        return queue.from == device || queue.to == device;
                      });
}

Exchange::Exchange(const Program &program, const std::vector<bool> &holdsData,
                   int32_t spins, bool timeline, FaultInjector *faults)
    : program(program), spins(spins), timeline(timeline), faults(faults),
      lentArguments(program.arguments.size()),
      elsewhere(program.devices.size(), false) {
  for (const QueueInfo &queue : program.queues) {
    queues.push_back({queue.from,
                      queue.to,
                      holdsData[queue.from] && holdsData[queue.to],
                      queue.messages,
                      std::vector<Slot>(queue.messages.size()),
                      {},
                      nullptr,
                      Reach::Here});
    for (size_t seq = 0; seq < queue.messages.size(); ++seq) {
      queues.back().slots[seq].bytes = queue.messages[seq].bytes;
      queues.back().slots[seq].lent = queue.messages[seq].lent;
      if (queue.messages[seq].carried)
        carried.emplace_back(int32_t(queues.size() - 1), int32_t(seq));
    }
    if (queue.link)
      for (int32_t lane : queue.link->lanes)
        laneRecords.resize(std::max(laneRecords.size(), size_t(lane) + 1));
  }
  for (size_t i = 0; i < program.devices.size(); ++i)
    contexts.push_back(std::make_unique<baechi_context>(
        *this, static_cast<int32_t>(i), program.devices[i].operators.size(),
        isIdle(program, static_cast<int32_t>(i))));
  waits.reserve(contexts.size());
}

//===----------------------------------------------------------------------===//
// On the device threads
//===----------------------------------------------------------------------===//

Slot *Exchange::find(baechi_context &self, Side side, int32_t queue,
                     int32_t seq) {
  if (queue < 0 || size_t(queue) >= queues.size()) {
    fail(self, {"used a queue that does not exist", nullptr, queue, seq});
    return nullptr;
  }
  Channel &channel = queues[queue];
  if (seq < 0 || size_t(seq) >= channel.slots.size()) {
    fail(self, {"used a message that does not exist", nullptr, queue, seq});
    return nullptr;
  }
  if (self.device != (side == Side::Sender ? channel.from : channel.to)) {
    fail(self, {side == Side::Sender ? "sent on a queue of another device"
                                     : "received on a queue of another device",
                nullptr, queue, seq});
    return nullptr;
  }
  return &channel.slotsOf(self.isOdd())[seq];
}

int32_t Exchange::offer(baechi_context &self, Side side, int32_t queue,
                        int32_t seq, const void *source, void *destination) {
  advance(self);
  if (aborted())
    return Stop;
  Slot *slot = find(self, side, queue, seq);
  if (!slot)
    return Stop;
  if (injected(side == Side::Sender ? Call::Send : Call::Receive))
    return fail(self, {side == Side::Sender ? "injected fault: cannot send"
                                            : "injected fault: cannot receive",
                       nullptr, queue, seq});
  // Only this device sets its bit: relaxed tells the truth.
  if (slot->state.load(std::memory_order_relaxed) & offeredBy(side))
    return fail(self,
                {"offered a message twice in one step", nullptr, queue, seq});
  if (slot->lent && side == Side::Receiver)
    return fail(self, {"offered a buffer for a message that is lent", nullptr,
                       queue, seq});
  const Channel &channel = queues[queue];
  bool moves = channel.moves || channel.mover || channel.reach != Reach::Here;
  if (moves && !source && !destination && slot->bytes > 0)
    return fail(self, {"offered a null buffer", nullptr, queue, seq});
  if (channel.mover)
    if (Problem problem = channel.mover->offered(side, seq))
      return fail(self, {problem.reason, problem.detail, queue, seq});

  Side otherSide = side == Side::Sender ? Side::Receiver : Side::Sender;
  if (side == Side::Sender)
    slot->source = source;
  else
    slot->destination = destination;
  uint32_t before =
      slot->state.fetch_or(offeredBy(side), std::memory_order_seq_cst);
  if (channel.reach == Reach::Relayed) {
    bool isSimulated = side == Side::Sender && program.queues[queue].link;
    bringing.fetch_add(isSimulated, std::memory_order_relaxed);
    (isSimulated ? carrier : relay)->offered(queue, seq, self.isOdd());
  } else if (channel.reach == Reach::Carried) {
    if (before & offeredBy(otherSide))
      carrier->offered(queue, seq, self.isOdd());
  } else if ((before & offeredBy(otherSide)) || slot->lent) {
    ring(*contexts[side == Side::Sender ? channel.to : channel.from]);
  }
  return 0;
}

/// Copies the message unless the other end does; true when it is done.
bool Exchange::finish(baechi_context &self, Channel &channel, Slot &slot,
                      Side side) {
  uint32_t state = slot.state.load(std::memory_order_seq_cst);
  if (state & Slot::Done)
    return true;
  if (channel.reach == Reach::Carried)
    return false;
  if ((state & Slot::Offered) != Slot::Offered || (state & Slot::Claimed) ||
      (slot.state.fetch_or(Slot::Claimed, std::memory_order_acq_rel) &
       Slot::Claimed))
    return false;
  if (!copy(self, channel, slot, side))
    return false;
  slot.state.fetch_or(Slot::Done, std::memory_order_seq_cst);
  ring(*contexts[side == Side::Sender ? channel.to : channel.from]);
  return true;
}

/// Copies a message that this device does not await yet, as it has nothing
/// better to do; false when there is none. Devices that compute do so for what
/// they receive, if it takes little time; a pool also for what it sends, and
/// whatever the size, as what it does takes nobody's time.
bool Exchange::copyAhead(baechi_context &self) {
  bool isPool = isPoolKind(program.devices[size_t(self.device)].kind);
  int64_t most = isPool ? std::numeric_limits<int64_t>::max() : bytesAhead;
  for (Channel &channel : queues) {
    bool isPushed = isPool && channel.from == self.device &&
                    (channel.moves || (channel.mover && !self.marks &&
                                       channel.mover->copiesAtOnce()));
    if ((channel.to != self.device && !isPushed) ||
        channel.reach == Reach::Carried)
      continue;
    std::vector<Slot> &slots = channel.slotsOf(self.isOdd());
    auto stateOf = [&](size_t seq) {
      return slots[seq].state.load(std::memory_order_relaxed);
    };
    // Of what is sent, the receiver knows the first that is open.
    size_t open = isPushed ? 0 : channel.firstOpen;
    while (open < slots.size() && (stateOf(open) & Slot::Done))
      ++open;
    if (!isPushed)
      channel.firstOpen = open;
    size_t end = std::min(slots.size(), open + messagesAhead);
    for (size_t seq = open; seq < end; ++seq)
      if (stateOf(seq) == Slot::Offered && slots[seq].bytes <= most)
        return finish(self, channel, slots[seq],
                      isPushed ? Side::Sender : Side::Receiver);
  }
  return false;
}

/// False when it failed, which aborts the step.
bool Exchange::copy(baechi_context &self, const Channel &channel, Slot &slot,
                    Side side) {
  if (timeline) {
    slot.copy.byReceiver = side == Side::Receiver;
    slot.copy.beginNs = elapsedNs();
  }
  if (channel.moves && slot.bytes > 0)
    std::memcpy(slot.destination, slot.source, size_t(slot.bytes));
  if (channel.mover) { // of steps that do not overlap
    auto seq = static_cast<int32_t>(&slot - channel.slots.data());
    if (Problem problem = channel.mover->copy(seq, slot.source,
                                              slot.destination, slot.bytes)) {
      failMoving(self, problem, int32_t(&channel - queues.data()), seq);
      return false;
    }
  }
  if (timeline)
    slot.copy.endNs = elapsedNs();
  return true;
}

/// What follows an await that ended well.
int32_t Exchange::settle(baechi_context &self, Side side, int32_t queue,
                         int32_t seq) {
  if (Mover *mover = queues[queue].mover.get())
    if (Problem problem = mover->awaited(side, seq, *this))
      return failMoving(self, problem, queue, seq);
  return aborted() ? Stop : 0;
}

/// A device without marks is a host device: what failed is the other end, whose
/// own thread knows better in which operator it was and is given the time to
/// say so first.
int32_t Exchange::failMoving(baechi_context &self, const Problem &problem,
                             int32_t queue, int32_t seq) {
  Failure failure{problem.reason, problem.detail, queue, seq};
  const Channel &channel = queues[queue];
  if (!self.marks && !isPoolKind(program.devices[size_t(self.device)].kind)) {
    failure.culprit = channel.from == self.device ? channel.to : channel.from;
    for (int i = 0; i < 1000 && !aborted(); ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return fail(self, failure);
}

int32_t Exchange::await(baechi_context &self, Side side, int32_t queue,
                        int32_t seq) {
  advance(self);
  if (aborted())
    return Stop;
  Slot *slot = find(self, side, queue, seq);
  if (!slot)
    return Stop;
  if (injected(side == Side::Sender ? Call::AwaitSend : Call::AwaitReceive))
    return fail(self, {"injected fault: cannot await", nullptr, queue, seq});
  if (queues[queue].messages[seq].carried)
    return awaitLastStep(self, side, queue, seq);
  if (!(slot->state.load(std::memory_order_relaxed) & offeredBy(side)))
    return fail(
        self, {"awaited a message before it was offered", nullptr, queue, seq});
  if (self.marks)
    if (Problem problem = self.marks->flush())
      return fail(self, {problem.reason, problem.detail});

  bool ended = waitUntil(self, waitOf(self.isOdd(), queue, seq), *slot, [&] {
    return finish(self, queues[queue], *slot, side);
  });
  return ended ? settle(self, side, queue, seq) : Stop;
}

int32_t Exchange::borrow(baechi_context &self, int32_t queue, int32_t seq,
                         const void **source) {
  advance(self);
  if (aborted())
    return Stop;
  Slot *slot = find(self, Side::Receiver, queue, seq);
  if (!slot)
    return Stop;
  if (injected(Call::Borrow))
    return fail(self, {"injected fault: cannot borrow", nullptr, queue, seq});
  if (!slot->lent)
    return fail(self,
                {"borrowed a message that is not lent", nullptr, queue, seq});
  // Only this device sets the bit: relaxed tells the truth.
  if (slot->state.load(std::memory_order_relaxed) & Slot::Claimed)
    return fail(self,
                {"borrowed a message twice in one step", nullptr, queue, seq});
  if (self.marks)
    if (Problem problem = self.marks->flush())
      return fail(self, {problem.reason, problem.detail});
  if (!waitUntil(self, waitOf(self.isOdd(), queue, seq), *slot, [&] {
        return (slot->state.load(std::memory_order_seq_cst) & Slot::Sent) != 0;
      }))
    return Stop;
  slot->state.fetch_or(Slot::Claimed, std::memory_order_relaxed);
  if (timeline) {
    slot->copy.byReceiver = true;
    slot->copy.beginNs = slot->copy.endNs = elapsedNs();
  }
  if (Mover *mover = queues[queue].mover.get())
    if (Problem problem = mover->borrowed(seq))
      return failMoving(self, problem, queue, seq);
  *source = slot->source;
  return 0;
}

int32_t Exchange::giveBack(baechi_context &self, int32_t queue, int32_t seq) {
  advance(self);
  if (aborted())
    return Stop;
  Slot *slot = find(self, Side::Receiver, queue, seq);
  if (!slot)
    return Stop;
  if (injected(Call::GiveBack))
    return fail(self,
                {"injected fault: cannot give back", nullptr, queue, seq});
  uint32_t state = slot->state.load(std::memory_order_relaxed);
  if (!slot->lent || !(state & Slot::Claimed) || (state & Slot::Done))
    return fail(self, {"gave back a message that it does not hold", nullptr,
                       queue, seq});
  if (Mover *mover = queues[queue].mover.get())
    if (Problem problem = mover->givenBack(seq))
      return failMoving(self, problem, queue, seq);
  slot->state.fetch_or(Slot::Received | Slot::Done, std::memory_order_seq_cst);
  ring(*contexts[queues[queue].from]);
  return 0;
}

void Exchange::ring(baechi_context &sleeper) {
  if (sleeper.doorbell.load(std::memory_order_seq_cst) == baechi_context::Awake)
    return;
  sleeper.doorbell.store(baechi_context::Awake, std::memory_order_seq_cst);
  wakeOne(sleeper.doorbell);
}

void Exchange::ringAll() {
  for (auto &context : contexts)
    ring(*context);
  stirRelay();
}

void Exchange::finishPart(baechi_context &self) {
  self.finished.store(true, std::memory_order_seq_cst);
  stirRelay();
}

int32_t Exchange::fail(baechi_context &self, const Failure &failure) {
  if (aborted())
    return Stop;
  self.failure = failure;
  self.failure.place = self.place.load(std::memory_order_relaxed);
  self.failure.step = self.stepsEnded.load(std::memory_order_relaxed);
  int32_t expected = nobody;
  if (failed.compare_exchange_strong(expected, self.device,
                                     std::memory_order_seq_cst))
    ringAll();
  return Stop;
}

//===----------------------------------------------------------------------===//
// On the relay's thread
//===----------------------------------------------------------------------===//

void Exchange::complete(int32_t queue, int32_t seq, bool odd, Interval copied) {
  Channel &channel = queues[queue];
  Slot &slot = channel.slotsOf(odd)[seq];
  static_cast<Interval &>(slot.copy) = copied;
  slot.copy.byReceiver = !elsewhere[channel.to];
  slot.state.fetch_or(Slot::Offered | Slot::Claimed | Slot::Done,
                      std::memory_order_seq_cst);
  ring(*contexts[elsewhere[channel.to] ? channel.from : channel.to]);
}

void Exchange::arrive(int32_t queue, int32_t seq, bool odd, Interval moved) {
  Channel &channel = queues[queue];
  if (channel.reach == Reach::Relayed) {
    relay->offered(queue, seq, odd);
    bringing.fetch_sub(1, std::memory_order_release);
    return;
  }
  Slot &slot = channel.slotsOf(odd)[seq];
  static_cast<Interval &>(slot.copy) = moved;
  slot.copy.byReceiver = true;
  slot.state.fetch_or(Slot::Claimed | Slot::Done, std::memory_order_seq_cst);
  ring(*contexts[channel.from]);
  ring(*contexts[channel.to]);
}

bool Exchange::idleHere(bool waitingCounts) const {
  for (const auto &context : contexts)
    if (!elsewhere[context->device] &&
        !context->finished.load(std::memory_order_acquire) &&
        !(waitingCounts &&
          context->waitingFor.load(std::memory_order_relaxed) !=
              baechi_context::nothing))
      return false;
  return true;
}
