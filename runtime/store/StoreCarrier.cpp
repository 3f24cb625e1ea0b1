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

} // namespace

void ParameterStore::State::start() {
  if (simulation) {
    for (size_t i = 0; i < workers.size(); ++i)
      simulation->at(now(), Happening::GoesOn, i);
    return;
  }
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

void ParameterStore::State::wakeUp(size_t process) {
  if (simulation)
    return carryAt(process, now());
  Process &woken = *processes[process];
  std::lock_guard lock(woken.mutex);
  woken.woken = true;
  woken.wake.notify_one();
}

void ParameterStore::State::wakeAll() {
  for (size_t i = 0; i < processes.size(); ++i)
    wakeUp(i);
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

Round ParameterStore::State::chooseUp(size_t process, int64_t must,
                                      size_t most) {
  Process &own = *processes[process];
  Round round = collect(
      shapes, must, isBulkSynchronous(), stripes,
      [&](size_t table, size_t stripe) -> std::mutex & {
        return own.tables[table][stripe]->mutex;
      },
      [&](size_t table, size_t stripe) -> const UpdateLog & {
        return own.tables[table][stripe]->log;
      });
  if (!round.rows.empty())
    keepFirst(round.rows, options.order, must, most, own.up.turn);
  return round;
}

Round ParameterStore::State::chooseDown(size_t process, int64_t must,
                                        size_t most) {
  Round round = collect(
      shapes, must, isBulkSynchronous(), stripes,
      [&](size_t table, size_t stripe) -> std::mutex & {
        return server[table][stripe]->mutex;
      },
      [&](size_t table, size_t stripe) -> const UpdateLog & {
        return server[table][stripe]->logs[process];
      });
  if (!round.rows.empty())
    keepFirst(round.rows, options.order, must, most,
              processes[process]->down.turn);
  return round;
}

void ParameterStore::State::addAtServer(size_t process, const Candidate &row,
                                        int64_t clock, const float *sum) {
  ServerStripe &stripe = *server[row.table][row.row % stripes];
  size_t at = row.row / stripes;
  bool revised = revises(row.table);
  if (revised)
    sum = revise(stripe, row.table, at, sum);
  double importance = stripe.values.add(at, sum, options.order);
  for (size_t other = 0; other < processes.size(); ++other)
    if ((other != process || revised) && stripe.readers[other][at])
      stripe.logs[other].add(at, sum, importance, clock);
}

void ParameterStore::State::addAtCache(size_t process, const Candidate &row,
                                       const float *sum) {
  CacheStripe &cache =
      *processes[process]->tables[row.table][row.row % stripes];
  std::scoped_lock mine(cache.mutex);
  cache.values.add(row.row / stripes, sum, SendOrder::Magnitude);
}

void ParameterStore::State::moveUp(size_t process, const Round &round) {
  std::vector<float> sum(widest);
  for (const Candidate &row : round.rows) {
    size_t stripe = row.row % stripes;
    CacheStripe &cache = *processes[process]->tables[row.table][stripe];
    std::scoped_lock mine(cache.mutex);
    int64_t clock = cache.log.take(row.row / stripes, sum.data());
    std::scoped_lock theirs(server[row.table][stripe]->mutex);
    addAtServer(process, row, clock, sum.data());
  }
}

void ParameterStore::State::moveDown(size_t process, const Round &round) {
  std::vector<float> sum(widest);
  for (const Candidate &row : round.rows) {
    {
      ServerStripe &stripe = *server[row.table][row.row % stripes];
      std::scoped_lock theirs(stripe.mutex);
      stripe.logs[process].take(row.row / stripes, sum.data());
    }
    addAtCache(process, row, sum.data());
  }
}

void ParameterStore::State::reachedServer(size_t process, int64_t through) {
  Process &own = *processes[process];
  if (through <= own.flushed)
    return;
  own.flushed = through;
  updateServerClock();
}

void ParameterStore::State::reachedCache(size_t process, int64_t through) {
  Process &own = *processes[process];
  if (through <= own.fresh)
    return;
  std::lock_guard lock(mutex);
  own.fresh = through;
  progress.notify_all();
}

size_t ParameterStore::State::finishRound(size_t process, bool up, int64_t must,
                                          Round round) {
  Process &own = *processes[process];
  Direction &way = up ? own.up : own.down;
  size_t bytes = round.bytes();
  way.count(round);
  bool more = must > way.through && round.needed <= round.rows.size();
  if (more)
    way.through = must;
  if (simulation) {
    way.pace.sent(bytes, now());
    if (bytes > 0 || more)
      depart(process, up, way.through, std::move(round));
    return bytes;
  }
  if (up) {
    moveUp(process, round);
    reachedServer(process, way.through);
  } else {
    moveDown(process, round);
    reachedCache(process, way.through);
  }
  way.pace.sent(bytes, now());
  return bytes;
}

size_t ParameterStore::State::carryUp(size_t process) {
  Process &own = *processes[process];
  int64_t must = mustSend(options, own.clock);
  if (isBulkSynchronous())
    for (auto &other : processes)
      must = std::min<int64_t>(must, other->clock);
  // Without a budget, a clock takes along all that waits.
  if (now() < own.up.pace.next() || (!options.budget && must <= own.up.through))
    return 0;
  return finishRound(process, true, must, chooseUp(process, must, limit));
}

size_t ParameterStore::State::carryDown(size_t process) {
  Process &own = *processes[process];
  int64_t served = serverClock;
  if (now() < own.down.pace.next() ||
      (!options.budget && served <= own.down.through))
    return 0;
  return finishRound(process, false, served,
                     chooseDown(process, served, limit));
}

void ParameterStore::State::carry(size_t process) {
  Process &own = *processes[process];
  while (!stopping) {
    size_t bytes = 0;
    std::unique_lock carrying(own.carrying);
    if (own.isElsewhere) {
      carryFrom(process);
    } else {
      bytes += carryUp(process);
      bytes += carryDown(process);
    }
    Time::time_point next = std::min(own.up.pace.next(), own.down.pace.next());
    carrying.unlock();
    std::unique_lock lock(own.mutex);
    auto ready = [&] { return own.woken || stopping.load(); };
    if (!options.budget || own.isElsewhere)
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
  if (simulation)
    while (!simulation->flights.empty())
      arrive(*simulation->flights.front());
  for (size_t i = 0; i < processes.size(); ++i) {
    std::lock_guard lock(processes[i]->carrying);
    Round round = chooseUp(i, always, everything);
    processes[i]->up.count(round);
    moveUp(i, round);
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    if (processes[i]->isElsewhere)
      continue; // its own asks for it
    std::lock_guard lock(processes[i]->carrying);
    Round round = chooseDown(i, always, everything);
    processes[i]->down.count(round);
    moveDown(i, round);
  }
}
