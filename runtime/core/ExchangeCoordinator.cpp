//===- ExchangeCoordinator.cpp - Messages between and beside steps --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the coordinator's thread does with an exchange: it prepares steps, and
/// watches them.
///
//===----------------------------------------------------------------------===//

#include "core/Exchange.h"

using namespace baechi::runtime;

void Exchange::setRelay(Relay *given, const std::vector<bool> &away,
                        int32_t runner) {
  relay = given;
  elsewhere = away;
  for (auto &context : contexts)
    if (elsewhere[context->device])
      context->idle = context->device != runner;
  for (Channel &channel : queues)
    if (elsewhere[channel.from] || elsewhere[channel.to])
      channel.reach = elsewhere[channel.from] && elsewhere[channel.to]
                          ? Reach::Elsewhere
                          : Reach::Relayed;
}

void Exchange::setCarrier(Relay *given) {
  carrier = given;
  for (size_t i = 0; i < queues.size(); ++i)
    if (program.queues[i].link && queues[i].reach == Reach::Here)
      queues[i].reach = Reach::Carried;
}

void Exchange::reset(int64_t first) {
  firstStep = first;
  for (Channel &channel : queues) {
    channel.firstOpen = 0;
    for (Slot &slot : channel.slots) {
      // What other processes exchange among themselves is delivered, as seen
      // from here.
      slot.state.store(channel.reach == Reach::Elsewhere
                           ? Slot::Offered | Slot::Claimed | Slot::Done
                           : 0,
                       std::memory_order_relaxed);
      slot.copy = CopyRecord();
    }
    for (Slot &slot : channel.oddSlots)
      slot.state.store(0, std::memory_order_relaxed);
  }
  for (auto &context : contexts) {
    context->stepsEnded.store(first, std::memory_order_relaxed);
    context->operators.assign(context->operators.size(), Interval());
    context->failure = Failure();
    context->place.store(baechi_context::nowhere, std::memory_order_relaxed);
    context->finished.store(context->idle, std::memory_order_relaxed);
  }
  std::fill(laneRecords.begin(), laneRecords.end(), LaneRecord());
  bringing.store(0, std::memory_order_relaxed);
  failed.store(nobody, std::memory_order_relaxed);
  epoch = Clock::now();
}

void Exchange::setOverlapped(bool given) {
  overlapped = given;
  for (Channel &channel : queues) {
    if (!overlapped || channel.oddSlots.size() == channel.slots.size())
      continue;
    channel.oddSlots = std::vector<Slot>(channel.slots.size());
    for (size_t seq = 0; seq < channel.slots.size(); ++seq) {
      channel.oddSlots[seq].bytes = channel.slots[seq].bytes;
      channel.oddSlots[seq].lent = channel.slots[seq].lent;
    }
  }
}

/// \p wait: as in baechi_context::waitingFor.
Slot &Exchange::slotOf(uint64_t wait) {
  std::vector<Slot> &slots = queues[size_t(queueOf(wait))].slotsOf(wait >> 63);
  return slots[size_t(seqOf(wait))];
}

bool Exchange::abort(std::string reason) {
  std::lock_guard<std::mutex> guard(abortMutex);
  if (aborted())
    return false;
  abortReason = std::move(reason);
  int32_t expected = nobody;
  bool first = failed.compare_exchange_strong(expected, coordinator,
                                              std::memory_order_seq_cst);
  if (first)
    ringAll();
  return first;
}

bool Exchange::deadlocked() {
  // First see what everyone waits for, then whether it is still not there. A
  // device cannot leave an await whose message one end has not offered, so when
  // all messages are so, there was a moment at which all of them waited: nobody
  // is left to offer anything. The read-modify-write reads the latest state.
  waits.clear();
  for (const auto &context : contexts) {
    if (context->finished.load(std::memory_order_acquire))
      continue;
    int64_t steps = context->stepsEnded.load(std::memory_order_acquire);
    waits.push_back({context->waitingFor.load(std::memory_order_acquire),
                     context->device, steps});
    if (waits.back().message == baechi_context::nothing)
      return false;
  }
  for (auto [wait, device, steps] : waits) {
    Slot &slot = slotOf(wait);
    uint32_t state = slot.state.fetch_or(0, std::memory_order_acq_rel);
    // Who borrows waits for the offer alone.
    bool borrows = slot.lent && queues[size_t(queueOf(wait))].to == device;
    if ((state & Slot::Done) || (state & Slot::Offered) == Slot::Offered ||
        (borrows && (state & Slot::Sent)))
      return false;
  }
  // A slot that is new again has been left, and who leaves one waits no more.
  for (auto [wait, device, steps] : waits) {
    const baechi_context &context = *contexts[size_t(device)];
    if (context.waitingFor.load(std::memory_order_acquire) != wait ||
        context.stepsEnded.load(std::memory_order_acquire) != steps)
      return false;
  }
  return !waits.empty();
}

uint64_t Exchange::progress() const {
  uint64_t sum = 0;
  for (const auto &context : contexts)
    sum += context->progress.load(std::memory_order_relaxed);
  return sum;
}
