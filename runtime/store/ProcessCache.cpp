//===- ProcessCache.cpp - A store's rows in another process -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ProcessCache.h"
#include "store/CachedRows.h"
#include "store/Pace.h"
#include "store/ReadChecker.h"

#include <algorithm>
#include <cmath>

using namespace baechi::store;

namespace {
constexpr size_t everything = std::numeric_limits<size_t>::max();
} // namespace

struct ProcessCache::State {
  State(std::vector<TableShape> tables, StoreOptions given, int worker,
        int64_t clock, int64_t fresh)
      : shapes(std::move(tables)), options(given), worker(worker), clock(clock),
        fresh(fresh), sent(clock), up(given.budget), down(given.budget),
        turn(given.seed * 1000003 + uint64_t(worker)),
        staleness(size_t(given.staleness) + 1, 0) {
    if (options.checked)
      own = std::make_unique<ReadChecker>(options.workers, options.staleness);
    for (const TableShape &table : shapes) {
      widths.push_back(widthOf(table, options));
      rows.push_back(std::make_unique<CacheStripe>(table.rows, widths.back(),
                                                   table.width, ages));
    }
  }

  CacheStripe &of(size_t table, size_t row) {
    checkRow(shapes, table, row);
    return *rows[table];
  }
  bool isPaced() const {
    return options.budget && std::isfinite(*options.budget);
  }

  std::vector<TableShape> shapes;
  StoreOptions options;
  int worker;
  std::atomic<int64_t> clock, fresh, sent;
  std::vector<size_t> widths;
  std::vector<std::unique_ptr<CacheStripe>> rows; ///< by table
  std::atomic<uint64_t> ages{0};
  std::mutex paces; ///< of the next three: who reads asks how long to pause
  Pace up, down;
  Turn turn;
  std::vector<uint64_t> staleness;
  /// Of a store that is checked: that its own updates are within what it reads.
  std::unique_ptr<ReadChecker> own;
};

ProcessCache::ProcessCache(std::vector<TableShape> tables, StoreOptions options,
                           int worker, int64_t clock, int64_t fresh)
    : state(std::make_unique<State>(std::move(tables), options, worker, clock,
                                    fresh)) {}
ProcessCache::~ProcessCache() = default;

const std::vector<TableShape> &ProcessCache::tables() const {
  return state->shapes;
}

size_t ProcessCache::numbersOf(size_t table) const {
  return state->widths.at(table);
}

int64_t ProcessCache::clock() const { return state->clock; }
int64_t ProcessCache::fresh() const { return state->fresh; }
int64_t ProcessCache::sent() const { return state->sent; }
const StoreOptions &ProcessCache::options() const { return state->options; }

const std::vector<uint64_t> &ProcessCache::readsByStaleness() const {
  return state->staleness;
}

bool ProcessCache::has(size_t table, size_t row) const {
  CacheStripe &stripe = state->of(table, row);
  std::lock_guard lock(stripe.mutex);
  return stripe.cached[row];
}

void ProcessCache::put(size_t table, size_t row, const float *numbers) {
  CacheStripe &stripe = state->of(table, row);
  std::lock_guard lock(stripe.mutex);
  stripe.values.set(row, numbers);
  // Gradients are no change yet.
  if (state->shapes[table].rule == UpdateRule::Add)
    stripe.values.add(row, stripe.log.sum(row), SendOrder::Magnitude);
  stripe.cached[row] = 1;
}

void ProcessCache::get(size_t table, size_t row, float *value, float *counts) {
  CacheStripe &stripe = state->of(table, row);
  std::lock_guard lock(stripe.mutex);
  if (!stripe.cached[row] || fresh() < needed())
    throw StoreError("worker " + std::to_string(state->worker) +
                     " reads a row of table '" + state->shapes[table].name +
                     "' that its cache does not have yet: fetch it, and await "
                     "what others have changed");
  int64_t behind = clock() - std::min(fresh(), clock());
  ++state->staleness[size_t(std::min<int64_t>(behind, options().staleness))];
  const float *found = stripe.values.row(row);
  std::copy_n(found, state->shapes[table].width, value);
  if (!state->own)
    return;
  const float *counted = found + numbersOfRow(state->shapes[table]);
  std::string missing =
      state->own->missing(state->worker, table, row, clock(), counted,
                          state->shapes[table].rule == UpdateRule::Add);
  if (!missing.empty())
    throw StoreError(textOfMissing(state->worker, clock(), row,
                                   state->shapes[table], missing));
  if (counts)
    std::copy_n(counted, state->options.workers, counts);
}

void ProcessCache::inc(size_t table, size_t row, const float *update) {
  CacheStripe &stripe = state->of(table, row);
  std::lock_guard lock(stripe.mutex);
  addUpdate(stripe, row,
            {state->shapes[table], state->widths[table], state->options.order,
             state->options.checked, state->worker, clock(), row},
            update);
  if (state->own)
    state->own->updated(state->worker, table, row, clock());
}

int64_t ProcessCache::tick() { return ++state->clock; }

SentRows ProcessCache::take(bool all) {
  SentRows made;
  int64_t now = clock();
  std::lock_guard pacing(state->paces);
  bool isDue =
      state->options.budget ? Time::now() >= state->up.next() : now > sent();
  if (!all && !isDue)
    return made;
  bool isPart = state->isPaced() && !all;
  int64_t must = isPart ? mustSend(state->options, now) : now;
  Round round = collect(
      state->shapes, must, false, 1,
      [&](size_t table, size_t) -> std::mutex & {
        return state->rows[table]->mutex;
      },
      [&](size_t table, size_t) -> const UpdateLog & {
        return state->rows[table]->log;
      });
  size_t most = isPart ? state->options.roundBytes : everything;
  if (!round.rows.empty())
    keepFirst(round.rows, state->options.order, must, most, state->turn);
  for (const Candidate &row : round.rows) {
    float *sum = made.append(row.table, row.row, state->widths[row.table]);
    CacheStripe &stripe = *state->rows[row.table];
    std::lock_guard lock(stripe.mutex);
    made.clocks.back() = stripe.log.take(row.row, sum);
  }
  state->up.sent(round.bytes(), Time::now());
  if (must > sent() && round.needed <= round.rows.size())
    state->sent = must;
  return made;
}

size_t ProcessCache::room() const {
  if (!state->isPaced())
    return everything;
  std::lock_guard pacing(state->paces);
  return Time::now() < state->down.next() ? 0 : state->options.roundBytes;
}

void ProcessCache::add(const SentRows &rows, int64_t through) {
  size_t begin = 0, bytes = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    CacheStripe &stripe = state->of(rows.tables[i], rows.rows[i]);
    size_t width = state->widths[rows.tables[i]];
    if (begin + width > rows.numbers.size())
      throw StoreError("a message of a store's rows ends within a row: use the "
                       "same version of Baechi in all processes");
    std::lock_guard lock(stripe.mutex);
    stripe.values.add(rows.rows[i], rows.numbers.data() + begin,
                      SendOrder::Magnitude);
    begin += width;
    bytes += bytesOfRow(state->shapes[rows.tables[i]]);
  }
  {
    std::lock_guard pacing(state->paces);
    state->down.sent(bytes, Time::now());
  }
  if (through > fresh())
    state->fresh = through;
}

double ProcessCache::pause() const {
  if (!state->isPaced())
    return 0;
  std::lock_guard pacing(state->paces);
  std::chrono::duration<double> left =
      std::min(state->up.next(), state->down.next()) - Time::now();
  return std::max(left.count(), 0.0);
}
