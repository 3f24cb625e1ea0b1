//===- RankThread.cpp - The thread that talks to other ranks --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RankRelay.h"

#include <sys/prctl.h>

#include <thread>

using namespace baechi::runtime;

int32_t RankRelay::run(baechi_context &self) {
  // Short sleeps are meant to be short.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  stopping = Attention();
  for (;;) {
    bool busy = false;
    if (!exchange.aborted())
      busy = moveMessages();
    busy |= hear(self);
    lookAround();
    if (exchange.aborted() || aborted) {
      // Devices may be waiting for messages that never come.
      if (fabric && !cutOff)
        fabric->abort();
      cutOff = true;
      if (std::optional<int32_t> result = stopStep())
        return *result;
    } else {
      stopping = Attention();
      if (std::optional<int32_t> result = endStep())
        return *result;
    }
    rest(busy);
  }
}

/// Who computes should not be kept from it. MPI has to be looked at, and ports;
/// sockets wake who waits for them, but for what nobody looks at any more, as
/// in a step that has failed.
void RankRelay::rest(bool busy) {
  idleLooks = busy ? 0 : idleLooks + 1;
  bool hasFailed = exchange.aborted() || aborted;
  if (sleeps && ports.empty() && !hasFailed && (!spins || idleLooks >= 20000)) {
    bool isAnnounced = asleep.load(std::memory_order_relaxed);
    if (busy || !isAnnounced) {
      asleep.store(!busy, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      return; // looks once more
    }
    sleeps = transport.wait(lookEvery);
    asleep.store(false, std::memory_order_relaxed);
    return;
  }
  if (busy || idleLooks < 32)
    return;
  if (spins && idleLooks < 20000) {
    std::this_thread::yield();
    return;
  }
  // Nobody here computes: the time is free, unless other ranks share it.
  if (idleLooks < 512 && exchange.idleHere(/*waitingCounts=*/true)) {
    std::this_thread::yield();
    return;
  }
  std::this_thread::sleep_for(
      std::chrono::microseconds(idleLooks < 5000 ? 20 : 200));
}

void RankRelay::stir() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep.load(std::memory_order_relaxed) &&
      asleep.exchange(false, std::memory_order_relaxed))
    transport.wake();
}
