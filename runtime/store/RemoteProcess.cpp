//===- RemoteProcess.cpp - The store's side of a cache elsewhere -*- C++ -*-==//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A process of the store whose cache is in another process of the machine, or
/// of another one. What it sends waits in the log of the cache that is here,
/// from where its carrier moves it to the server by the rules for all; what
/// others change waits in the server's log for it until it asks.
///
//===----------------------------------------------------------------------===//

#include "store/StoreState.h"

#include <algorithm>

using namespace baechi::store;

void ParameterStore::State::checkHere(int worker) {
  if (processOf(worker).isElsewhere)
    throw StoreError("worker " + std::to_string(worker) +
                     " has its rows in another process: let it read and add "
                     "there, and give each thread here a worker of its own");
}

size_t ParameterStore::State::elsewhere(int worker) {
  checkWorker(worker);
  checkLosses();
  if (!processOf(worker).isElsewhere)
    throw StoreError("worker " + std::to_string(worker) +
                     " has its rows with the store: move them elsewhere first");
  return size_t(worker);
}

void ParameterStore::State::forgetReads(size_t process) {
  std::vector<float> sum(widest);
  for (size_t table = 0; table < shapes.size(); ++table)
    for (size_t i = 0; i < stripes; ++i) {
      CacheStripe &cache = *processes[process]->tables[table][i];
      ServerStripe &stripe = *server[table][i];
      std::scoped_lock lock(cache.mutex, stripe.mutex);
      std::ranges::fill(cache.cached, 0);
      std::ranges::fill(stripe.readers[process], 0);
      UpdateLog &log = stripe.logs[process];
      while (!log.waiting().empty())
        log.take(log.waiting().front(), sum.data());
    }
}

bool ParameterStore::moveElsewhere(int worker, int64_t &clock, int64_t &fresh) {
  state->checkWorker(worker);
  if (state->simulation)
    throw StoreError("the store's time is simulated, and workers elsewhere "
                     "compute as long as they do: leave its network out");
  clock = state->workers[size_t(worker)]->clock;
  fresh = state->serverClock;
  if (state->processes.size() != state->workers.size())
    return false;
  auto process = size_t(worker);
  Process &own = *state->processes[process];
  {
    std::lock_guard lock(own.carrying);
    state->forgetReads(process);
    own.sent = clock; // what it did before is in the log here
    own.down.through = fresh = state->serverClock;
    own.isElsewhere = true;
  }
  state->wakeUp(process);
  return true;
}

void ParameterStore::moveBack(int worker) {
  state->checkWorker(worker);
  if (!state->processOf(worker).isElsewhere)
    return;
  auto process = size_t(worker);
  Process &own = *state->processes[process];
  {
    std::lock_guard lock(own.carrying);
    state->forgetReads(process);
    own.isElsewhere = false;
  }
  state->wakeUp(process);
}

size_t ParameterStore::numbersOf(size_t table) const {
  return table < state->widths.size() ? state->widths[table] : 0;
}

void ParameterStore::fetch(int worker, size_t table, size_t row,
                           float *numbers) {
  size_t process = state->elsewhere(worker);
  state->checkRow(table, row);
  Process &own = *state->processes[process];
  CacheStripe &cache = *own.tables[table][row % stripes];
  ServerStripe &stripe = *state->server[table][row % stripes];
  size_t at = row / stripes, width = state->widths[table];
  std::scoped_lock lock(cache.mutex, stripe.mutex);
  std::copy_n(stripe.values.row(at), width, numbers);
  // What has come from there and is not at the server yet.
  if (!state->revises(table))
    for (size_t i = 0; i < width; ++i)
      numbers[i] += cache.log.sum(at)[i];
  stripe.readers[process][at] = 1;
  size_t bytes = bytesOfRow(state->shapes[table]);
  own.down.bytes += bytes;
  own.fetched += bytes;
  ++own.down.rows;
}

void ParameterStore::State::carryFrom(size_t process) {
  Process &own = *processes[process];
  int64_t must = own.sent;
  if (isBulkSynchronous())
    for (auto &other : processes)
      must = std::min<int64_t>(must, other->clock);
  // The budget was kept where it comes from.
  finishRound(process, true, must,
              chooseUp(process, must, std::numeric_limits<size_t>::max()));
  reachedCache(process, serverClock);
}

void ParameterStore::receive(int worker, const SentRows &rows, int64_t sent,
                             int64_t clock) {
  size_t process = state->elsewhere(worker);
  Process &own = *state->processes[process];
  const float *numbers = rows.numbers.data(),
              *end = numbers + rows.numbers.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    size_t table = rows.tables[i], row = rows.rows[i];
    state->checkRow(table, row);
    size_t width = state->widths[table];
    if (end - numbers < int64_t(width))
      throw StoreError("a message of a store's rows ends within a row: use the "
                       "same version of Baechi in all processes");
    if (state->checker) {
      auto count =
          int64_t(numbers[numbersOfRow(state->shapes[table]) + size_t(worker)]);
      for (int64_t j = 0; j < count; ++j)
        state->checker->updated(worker, table, row, rows.clocks[i]);
    }
    CacheStripe &stripe = *own.tables[table][row % stripes];
    std::lock_guard lock(stripe.mutex);
    stripe.log.add(row / stripes, numbers, 0, rows.clocks[i]);
    numbers += width;
  }
  own.sent = std::max<int64_t>(own.sent, sent);
  if (clock > state->workers[size_t(worker)]->clock)
    state->setClock(worker, clock, false);
  std::lock_guard lock(own.carrying);
  state->carryFrom(process);
}

SentRows ParameterStore::send(int worker, size_t bytes, int64_t &through) {
  size_t process = state->elsewhere(worker);
  Process &own = *state->processes[process];
  SentRows made;
  std::lock_guard lock(own.carrying);
  int64_t served = state->serverClock;
  through = own.down.through;
  // Without a budget, a clock takes along all that waits.
  if (bytes == 0 || (!state->options.budget && served <= through))
    return made;
  Round round = state->chooseDown(process, served, bytes);
  own.down.count(round);
  for (const Candidate &row : round.rows) {
    ServerStripe &stripe = *state->server[row.table][row.row % stripes];
    float *sum = made.append(row.table, row.row, state->widths[row.table]);
    std::lock_guard rows(stripe.mutex);
    stripe.logs[process].take(row.row / stripes, sum);
  }
  if (served > through && round.needed <= round.rows.size())
    through = own.down.through = served;
  return made;
}

bool ParameterStore::await(int worker, int64_t clock, double limit,
                           double waited) {
  state->checkWorker(worker);
  state->checkLosses();
  return state->wait(worker, clock, limit, waited);
}

void ParameterStore::checkRead(int worker, size_t table, size_t row,
                               int64_t clock, const float *counts) {
  state->checkWorker(worker);
  state->checkRow(table, row);
  if (!state->checker)
    return;
  std::string missing = state->checker->missing(worker, table, row, clock,
                                                counts, !state->revises(table));
  if (!missing.empty())
    throw StoreError(
        textOfMissing(worker, clock, row, state->shapes[table], missing));
}

void ParameterStore::countReads(int worker,
                                const std::vector<uint64_t> &byStaleness) {
  state->checkWorker(worker);
  std::vector<uint64_t> &counts = state->workers[size_t(worker)]->staleness;
  for (size_t i = 0; i < std::min(counts.size(), byStaleness.size()); ++i)
    counts[i] = byStaleness[i];
}
