//===- CarrierMeasure.cpp - What moving simulated messages takes ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CarrierCosts.h"
#include "core/Carrier.h"
#include "core/Exchange.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

using namespace baechi::runtime;

static constexpr int32_t messages = 24;
/// Many: more than caches keep, as of a step whose devices compute meanwhile.
/// So each message has buffers of its own: in turns in 32 MiB a processor of
/// large caches copies them more than twice as fast.
static constexpr int64_t fewBytes = 64, manyBytes = 4 << 20;
/// What a message has its link for: the thread sleeps meanwhile.
static constexpr int64_t everyNs = 100'000;
static constexpr int rounds = 3;

static int64_t ofThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

namespace {
/// Two devices between which a link moves messages.
class Trial {
public:
  explicit Trial(int64_t bytes)
      : sent(size_t(messages * bytes), 1), got(size_t(messages * bytes), 2),
        bytes(bytes) {
    program.devices = {{"first", "host", "", 64, 64, {}},
                       {"second", "host", "", 64, 64, {}}};
    program.queues = {
        {0, 1, std::vector<MessageInfo>(size_t(messages), {"", bytes, 0, 0})}};
    program.queues[0].link = SimulatedLink{
        everyNs / 2, std::max<int64_t>(1, bytes * 1000 / everyNs), {0}};
  }

  /// The processor's time, of who offers and of the carrier.
  Expected<int64_t> run() {
    Exchange exchange(program, {true, true}, /*spins=*/0, /*timeline=*/false,
                      /*faults=*/nullptr);
    exchange.reset();
    Carrier carrier(program, exchange);
    exchange.setCarrier(&carrier);
    const std::vector<Slot> &slots = exchange.channels()[0].slots;
    int64_t offering = 0;
    // One after the other: of several the thread would wake once.
    for (int32_t i = 0; i < messages; ++i) {
      size_t at = size_t(i * bytes);
      int64_t begin = ofThisThread();
      if (exchange.offer(exchange.context(0), Side::Sender, 0, i, &sent[at],
                         nullptr) ||
          exchange.offer(exchange.context(1), Side::Receiver, 0, i, nullptr,
                         &got[at]))
        return Error(exchange.describeFailure());
      offering += ofThisThread() - begin;
      while (!(slots[size_t(i)].state.load(std::memory_order_acquire) &
               Slot::Done)) {
        if (exchange.aborted())
          return Error(exchange.describeFailure());
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
    return offering + carrier.processorNs();
  }

private:
  std::vector<char> sent, got;
  const int64_t bytes;
  Program program;
};
} // namespace

/// Other work of the machine only adds to it.
static Expected<int64_t> leastOf(int64_t bytes) {
  Trial trial(bytes);
  Expected<int64_t> least = trial.run();
  for (int round = 1; round < rounds && least; ++round) {
    Expected<int64_t> next = trial.run();
    if (!next)
      return next;
    *least = std::min(*least, *next);
  }
  return least;
}

Expected<CarrierCosts> baechi::runtime::measureCarrier() {
  Expected<int64_t> few = leastOf(fewBytes);
  if (!few)
    return few.takeError();
  Expected<int64_t> many = leastOf(manyBytes);
  if (!many)
    return many.takeError();
  int64_t copying = std::max<int64_t>(1, *many - *few);
  return CarrierCosts{double(*few) / messages,
                      double(messages * manyBytes) * 1000 / double(copying)};
}
