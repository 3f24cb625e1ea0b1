//===- StoreCarrier.cpp - What moves updates of a store ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The carrier threads of a parameter store, one a process: rounds that take
/// rows that wait, those that a clock needs first, then by what matters, and
/// pauses as long as the bytes take at the budget. A row is taken and added to
/// the server under both locks: an update is always in a cache's log or at the
/// server. On the way down it is added to a cache, whose own updates stay.
///
//===----------------------------------------------------------------------===//

#include "store/StoreState.h"

#include <algorithm>

using namespace baechi::store;

namespace {

/// How often a carrier with a budget looks for rows that wait.
constexpr std::chrono::milliseconds idle(1);

/// A round's rows: which, and what must be said when they are through.
struct Round {
  std::vector<Candidate> rows;
  size_t needed = 0; ///< that the clock needs
};

template <typename Lock, typename Log>
Round collect(const std::vector<TableShape> &shapes, int64_t must,
              bool neededOnly, Lock lockOf, Log logOf) {
  Round round;
  for (size_t table = 0; table < shapes.size(); ++table)
    for (size_t stripe = 0; stripe < stripes; ++stripe) {
      std::lock_guard lock(lockOf(table, stripe));
      const UpdateLog &log = logOf(table, stripe);
      for (uint32_t at : log.waiting()) {
        bool needed = log.clock(at) < must;
        round.needed += needed;
        if (neededOnly && !needed)
          continue;
        round.rows.push_back(
            {uint32_t(table), uint32_t(at * stripes + stripe), log.clock(at),
             log.age(at), log.importance(at),
             uint32_t(shapes[table].width * sizeof(float)) + bytesOfRowHeader});
      }
    }
  return round;
}

size_t sizeOf(const std::vector<Candidate> &rows) {
  size_t bytes = 0;
  for (const Candidate &row : rows)
    bytes += row.bytes;
  return bytes;
}

} // namespace

void ParameterStore::State::start() {
  for (size_t i = 0; i < processes.size(); ++i)
    processes[i]->carrier = std::thread([this, i] { carry(i); });
}

ParameterStore::State::~State() {
  stopping = true;
  wakeAll();
  for (auto &process : processes)
    if (process->carrier.joinable())
      process->carrier.join();
}

void ParameterStore::State::wakeUp(Process &process) {
  std::lock_guard lock(process.mutex);
  process.woken = true;
  process.wake.notify_one();
}

void ParameterStore::State::wakeAll() {
  for (auto &process : processes)
    wakeUp(*process);
}

int64_t ParameterStore::State::mustSend(int64_t clock) const {
  return std::min(clock, clock - options.staleness + options.tolerance);
}

void ParameterStore::State::updateServerClock() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (auto &process : processes)
    least = std::min<int64_t>(least, process->flushed);
  int64_t before = serverClock;
  while (before < least && !serverClock.compare_exchange_weak(before, least))
    ;
  if (before < least)
    wakeAll();
}

Carried ParameterStore::State::push(size_t process, int64_t must, size_t limit,
                                    SplitMix &random) {
  Process &own = *processes[process];
  Round round = collect(
      shapes, must, isBulkSynchronous(),
      [&](size_t table, size_t stripe) -> std::mutex & {
        return own.tables[table][stripe]->mutex;
      },
      [&](size_t table, size_t stripe) -> const UpdateLog & {
        return own.tables[table][stripe]->log;
      });
  if (!round.rows.empty())
    keepFirst(round.rows, options.order, must, limit, random);
  std::vector<float> sum(widest);
  for (const Candidate &row : round.rows) {
    CacheStripe &cache = *own.tables[row.table][row.row % stripes];
    ServerStripe &stripe = *server[row.table][row.row % stripes];
    size_t at = row.row / stripes;
    std::scoped_lock mine(cache.mutex);
    int64_t clock = cache.log.take(at, sum.data());
    std::scoped_lock theirs(stripe.mutex);
    double importance = stripe.values.add(at, sum.data(), options.order);
    for (size_t other = 0; other < processes.size(); ++other)
      if (other != process && stripe.readers[other][at])
        stripe.logs[other].add(at, sum.data(), importance, clock);
  }
  size_t bytes = sizeOf(round.rows);
  own.up.bytes += bytes;
  own.up.rows += round.rows.size();
  return {bytes, round.needed <= round.rows.size()};
}

Carried ParameterStore::State::pull(size_t process, int64_t must, size_t limit,
                                    SplitMix &random) {
  Process &own = *processes[process];
  Round round = collect(
      shapes, must, isBulkSynchronous(),
      [&](size_t table, size_t stripe) -> std::mutex & {
        return server[table][stripe]->mutex;
      },
      [&](size_t table, size_t stripe) -> const UpdateLog & {
        return server[table][stripe]->logs[process];
      });
  if (!round.rows.empty())
    keepFirst(round.rows, options.order, must, limit, random);
  std::vector<float> sum(widest);
  for (const Candidate &row : round.rows) {
    size_t at = row.row / stripes;
    {
      ServerStripe &stripe = *server[row.table][row.row % stripes];
      std::scoped_lock theirs(stripe.mutex);
      stripe.logs[process].take(at, sum.data());
    }
    CacheStripe &cache = *own.tables[row.table][row.row % stripes];
    std::scoped_lock mine(cache.mutex);
    cache.values.add(at, sum.data(), SendOrder::Magnitude);
  }
  size_t bytes = sizeOf(round.rows);
  own.down.bytes += bytes;
  own.down.rows += round.rows.size();
  return {bytes, round.needed <= round.rows.size()};
}

size_t ParameterStore::State::carryUp(size_t process, SplitMix &random) {
  Process &own = *processes[process];
  int64_t must = mustSend(own.clock);
  if (isBulkSynchronous())
    for (auto &other : processes)
      must = std::min<int64_t>(must, other->clock);
  // Without a budget, a clock takes along all that waits.
  if (Time::now() < own.up.pace.next() ||
      (!options.budget && must <= own.flushed))
    return 0;
  Carried carried = push(process, must, limit, random);
  own.up.pace.sent(carried.bytes, Time::now());
  if (carried.through && must > own.flushed) {
    own.flushed = must;
    updateServerClock();
  }
  return carried.bytes;
}

size_t ParameterStore::State::carryDown(size_t process, SplitMix &random) {
  Process &own = *processes[process];
  int64_t served = serverClock;
  if (Time::now() < own.down.pace.next() ||
      (!options.budget && served <= own.fresh))
    return 0;
  Carried carried = pull(process, served, limit, random);
  own.down.pace.sent(carried.bytes, Time::now());
  if (carried.through && served > own.fresh) {
    std::lock_guard lock(mutex);
    own.fresh = served;
    progress.notify_all();
  }
  return carried.bytes;
}

void ParameterStore::State::carry(size_t process) {
  Process &own = *processes[process];
  SplitMix random(options.seed * 1000003 + process);
  while (!stopping) {
    size_t bytes = 0;
    {
      std::lock_guard lock(own.carrying);
      bytes += carryUp(process, random);
      bytes += carryDown(process, random);
    }
    std::unique_lock lock(own.mutex);
    auto ready = [&] { return own.woken || stopping.load(); };
    Time::time_point next = std::min(own.up.pace.next(), own.down.pace.next());
    if (!options.budget)
      own.wake.wait(lock, ready);
    else if (next > Time::now())
      own.wake.wait_until(lock, next, [&] { return stopping.load(); });
    else if (bytes == 0)
      own.wake.wait_for(lock, idle, ready);
    own.woken = false;
  }
}

void ParameterStore::State::drain() {
  constexpr int64_t always = std::numeric_limits<int64_t>::max();
  constexpr size_t everything = std::numeric_limits<size_t>::max();
  SplitMix random(options.seed);
  for (size_t i = 0; i < processes.size(); ++i) {
    std::lock_guard lock(processes[i]->carrying);
    push(i, always, everything, random);
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    std::lock_guard lock(processes[i]->carrying);
    pull(i, always, everything, random);
  }
}
