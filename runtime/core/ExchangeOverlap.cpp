//===- ExchangeOverlap.cpp - Where one step ends and the next begins ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What steps that overlap need beside offers and awaits: a device leaves a
/// step once its messages are done, and what is carried is awaited a step
/// later.
///
//===----------------------------------------------------------------------===//

#include "core/Exchange.h"
#include "core/ExchangeWait.h"

using namespace baechi::runtime;

/// Steps that do not overlap, and the last that do, end with what they carry.
int32_t Exchange::awaitLastStep(baechi_context &self, Side side, int32_t queue,
                                int32_t seq) {
  if (!overlapped || isInFirstStep(self))
    return 0;
  Slot &slot = queues[queue].slotsOf(!self.isOdd())[size_t(seq)];
  if (!(slot.state.load(std::memory_order_acquire) & offeredBy(side)))
    return fail(self, {"awaited a message that the step before did not offer",
                       nullptr, queue, seq});
  if (!waitUntil(self, waitOf(!self.isOdd(), queue, seq), slot,
                 [&] { return finish(self, queues[queue], slot, side); }))
    return Stop;
  leave(queues[queue], slot, side);
  return aborted() ? Stop : 0;
}

int32_t Exchange::awaitCarriedByLast(baechi_context &self) {
  return isInFirstStep(self) ? 0 : awaitCarried(self, !self.isOdd());
}

int32_t Exchange::awaitCarried(baechi_context &self, bool odd) {
  for (auto [queue, seq] : carried) {
    Channel &channel = queues[queue];
    if (channel.from != self.device && channel.to != self.device)
      continue;
    if (aborted())
      return Stop;
    Side side = channel.from == self.device ? Side::Sender : Side::Receiver;
    Slot &slot = channel.slotsOf(odd)[size_t(seq)];
    if (!(slot.state.load(std::memory_order_acquire) & offeredBy(side)))
      return fail(self, {"ended a step without offering a message", nullptr,
                         queue, seq});
    if (!waitUntil(self, waitOf(odd, queue, seq), slot,
                   [&] { return finish(self, channel, slot, side); }))
      return Stop;
  }
  return aborted() ? Stop : 0;
}

/// The last end makes it new.
void Exchange::leave(const Channel &channel, Slot &slot, Side side) {
  bool sends = side == Side::Sender;
  uint32_t mine = sends ? Slot::LeftBySender : Slot::LeftByReceiver;
  uint32_t others = sends ? Slot::LeftByReceiver : Slot::LeftBySender;
  if ((slot.state.fetch_or(mine, std::memory_order_acq_rel) & others) ||
      channel.reach == Reach::Relayed)
    slot.state.store(0, std::memory_order_release);
}

int32_t Exchange::leaveStep(baechi_context &self, bool isLast) {
  advance(self);
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    Channel &channel = queues[queue];
    if (channel.from != self.device && channel.to != self.device)
      continue;
    bool sends = channel.from == self.device;
    Side side = sends ? Side::Sender : Side::Receiver;
    std::vector<Slot> &slots = channel.slotsOf(self.isOdd());
    for (size_t seq = 0; seq < slots.size(); ++seq) {
      if (channel.messages[seq].carried)
        continue;
      Slot &slot = slots[seq];
      if (aborted())
        return Stop;
      // Nobody would ever complete what this device has not even begun.
      uint32_t begun = slot.lent && !sends ? Slot::Done : offeredBy(side);
      if (!(slot.state.load(std::memory_order_acquire) & begun))
        return fail(self, {slot.lent && !sends
                               ? "ended a step without giving a message back"
                               : "ended a step without offering a message",
                           nullptr, int32_t(queue), int32_t(seq)});
      if (!waitUntil(self, waitOf(self.isOdd(), int32_t(queue), int32_t(seq)),
                     slot, [&] { return finish(self, channel, slot, side); }))
        return Stop;
      leave(channel, slot, side);
    }
    if (!sends)
      channel.firstOpen = 0;
  }
  if (isLast && awaitCarried(self))
    return Stop;
  self.place.store(baechi_context::nowhere, std::memory_order_relaxed);
  self.stepsEnded.store(self.stepsEnded.load(std::memory_order_relaxed) + 1,
                        std::memory_order_seq_cst);
  stirRelay();
  return aborted() ? Stop : 0;
}
