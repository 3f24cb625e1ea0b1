//===- ExchangeWait.h - How a device's thread waits -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the parts of Exchange share that run on the devices' threads.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_EXCHANGEWAIT_H
#define BAECHI_RUNTIME_CORE_EXCHANGEWAIT_H

#include "core/Attention.h"
#include "core/Exchange.h"
#include "core/Futex.h"

#include <thread>

namespace baechi::runtime {

/// Only its owner writes it, so no read-modify-write is needed.
inline void advance(baechi_context &self) {
  self.progress.store(self.progress.load(std::memory_order_relaxed) + 1,
                      std::memory_order_relaxed);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

inline uint32_t offeredBy(Side side) {
  return side == Side::Sender ? Slot::Sent : Slot::Received;
}

template <typename Done>
bool Exchange::waitUntil(baechi_context &self, uint64_t wait, Slot &slot,
                         Done done) {
  // A copy that has begun is waited for awake, unless cores are short.
  for (int32_t i = 0; i < spins && !done() && !aborted(); relax())
    if (!copyAhead(self))
      i += (slot.state.load(std::memory_order_relaxed) & Slot::Claimed) == 0 ||
           slot.lent;
  if (done())
    return true;
  if (aborted())
    return false;

  self.waitingFor.store(wait, std::memory_order_release);
  for (;;) {
    while (copyAhead(self))
      ;
    self.doorbell.store(baechi_context::Asleep, std::memory_order_seq_cst);
    if (done() || failed.load(std::memory_order_seq_cst) != nobody)
      break;
    if (!self.attendant) {
      sleepWhile(self.doorbell, baechi_context::Asleep);
      continue;
    }
    sleepWhile(self.doorbell, baechi_context::Asleep, tick);
    self.attendant->look();
  }
  self.doorbell.store(baechi_context::Awake, std::memory_order_relaxed);
  self.waitingFor.store(baechi_context::nothing, std::memory_order_release);
  advance(self);
  return !aborted();
}

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_EXCHANGEWAIT_H
