//===- ParameterStore.cpp - Shared values with bounded staleness -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ParameterStore.h"
#include "store/StoreState.h"

#include <algorithm>
#include <cmath>

using namespace baechi::store;

namespace {

/// The clock of a worker that nobody waits for any more.
constexpr int64_t finishedClock = std::numeric_limits<int64_t>::max() / 2;

/// What a machine has threads and memory for: reads are counted by staleness,
/// for each worker.
constexpr int mostWorkers = 4096, mostStaleness = 1 << 20;

[[noreturn]] void refuse(const std::string &why) { throw StoreError(why); }

void check(const std::vector<TableShape> &tables, const StoreOptions &options) {
  auto wrong = [](const std::string &what, auto value,
                  const std::string &mend) {
    refuse(what + " is " + std::to_string(value) + ": " + mend);
  };
  if (options.workers < 1 || options.workers > mostWorkers)
    wrong("the number of workers", options.workers,
          "give 1 to " + std::to_string(mostWorkers) +
              ", as each has memory and, unless processes are fewer, a thread");
  if (options.processes < 0 || options.processes > options.workers)
    wrong("the number of processes", options.processes,
          "give at most one a worker, or 0 for one each");
  if (options.staleness < 0 || options.staleness > mostStaleness)
    wrong("the staleness", options.staleness,
          "give 0 for no delay, or how many clocks reads may be behind, at "
          "most " +
              std::to_string(mostStaleness));
  if (options.tolerance < 0)
    wrong("the tolerance", options.tolerance, "give 0 or more clocks");
  if (!(options.patience > 0))
    wrong("the patience", options.patience,
          "give seconds, or infinity to wait without end");
  if (options.simulated && !(options.simulated->bytesPerSecond > 0))
    wrong("the simulated network's bytes per second",
          options.simulated->bytesPerSecond, "give more than 0");
  if (options.simulated && options.simulated->latencyNs < 0)
    wrong("the simulated network's latency", options.simulated->latencyNs,
          "give 0 or more nanoseconds");
  if (tables.empty())
    refuse("the store has no table: give one of at least a row and a number");
  for (const TableShape &table : tables) {
    if (table.rows == 0 || table.width == 0 ||
        table.rows > std::numeric_limits<uint32_t>::max())
      refuse("table '" + table.name + "' has " + std::to_string(table.rows) +
             " rows of " + std::to_string(table.width) +
             " numbers: give 1 to 2^32 - 1 rows of at least a number");
    if (table.rule == UpdateRule::AdaptiveRevision && !(table.step > 0))
      refuse("table '" + table.name + "' is revised with steps of " +
             std::to_string(table.step) + ": give more than 0");
    double row = bytesOfRow(table);
    if (options.budget && !(*options.budget >= row))
      refuse("the budget of " + std::to_string(*options.budget) +
             " bytes a second is below one row of table '" + table.name +
             "' a second: give at least " + std::to_string(size_t(row)));
  }
}

size_t rowsOfStripe(size_t rows, size_t stripe) {
  return (rows + stripes - 1 - stripe) / stripes;
}

} // namespace

ParameterStore::State::State(std::vector<TableShape> tables, StoreOptions given)
    : shapes(std::move(tables)), options(given) {
  check(shapes, options);
  size_t count = options.processes ? options.processes : options.workers;
  limit = options.budget && std::isfinite(*options.budget)
              ? options.roundBytes
              : std::numeric_limits<size_t>::max();
  if (options.checked)
    checker = std::make_unique<ReadChecker>(options.workers, options.staleness);
  if (options.simulated)
    simulation = std::make_unique<Simulation>(*options.simulated,
                                              options.workers, count);
  for (size_t i = 0; i < count; ++i)
    processes.push_back(std::make_unique<Process>(
        options.budget, now(), 2 * (options.seed * 1000003 + i)));
  for (int i = 0; i < options.workers; ++i) {
    workers.push_back(std::make_unique<Worker>());
    workers.back()->ticked = now();
    workers.back()->staleness.assign(size_t(options.staleness) + 1, 0);
  }
  for (const TableShape &table : shapes) {
    size_t width = widthOf(table, options);
    widths.push_back(width);
    widest = std::max(widest, width);
    server.emplace_back();
    for (auto &process : processes)
      process->tables.emplace_back();
    for (size_t stripe = 0; stripe < stripes; ++stripe) {
      size_t rows = rowsOfStripe(table.rows, stripe);
      server.back().push_back(std::make_unique<ServerStripe>(
          rows, width, table.width, int(count), serverAges));
      if (table.rule == UpdateRule::AdaptiveRevision) {
        server.back().back()->revised.assign(rows * 2 * table.width, 0.0f);
        server.back().back()->change.assign(width, 0.0f);
      }
      for (auto &process : processes)
        process->tables.back().push_back(std::make_unique<CacheStripe>(
            rows, width, table.width, process->ages));
    }
  }
}

ParameterStore::ParameterStore(std::vector<TableShape> tables,
                               StoreOptions options)
    : state(std::make_unique<State>(std::move(tables), options)) {
  state->start();
}
ParameterStore::~ParameterStore() = default;

const std::vector<TableShape> &ParameterStore::tables() const {
  return state->shapes;
}
const StoreOptions &ParameterStore::options() const { return state->options; }

void ParameterStore::State::checkWorker(int worker) const {
  if (worker < 0 || worker >= options.workers)
    refuse("there is no worker " + std::to_string(worker) + " of " +
           std::to_string(options.workers));
}

std::string ParameterStore::State::lossesText() {
  std::string text;
  std::lock_guard lock(mutex);
  for (const auto &[worker, why] : losses)
    text += (text.empty() ? "" : "; ") + ("worker " + std::to_string(worker)) +
            " is lost: " + why;
  return text;
}

void ParameterStore::State::checkLosses() {
  if (lost && options.whenLost == WhenLost::Stop)
    refuse(lossesText());
}

void ParameterStore::set(size_t table, size_t row, const float *value) {
  state->checkRow(table, row);
  ServerStripe &stripe = *state->server[table][row % stripes];
  size_t at = row / stripes;
  std::lock_guard lock(stripe.mutex);
  for (const std::vector<uint8_t> &reader : stripe.readers)
    if (reader[at])
      refuse("row " + std::to_string(row) + " of table '" +
             state->shapes[table].name +
             "' was read already: set rows before, and add to them after");
  std::vector<float> whole(stripe.values.row(at),
                           stripe.values.row(at) + state->widths[table]);
  std::copy_n(value, state->shapes[table].width, whole.begin());
  stripe.values.set(at, whole.data());
}

void ParameterStore::read(size_t table, size_t row, float *value) const {
  state->checkRow(table, row);
  ServerStripe &stripe = *state->server[table][row % stripes];
  std::lock_guard lock(stripe.mutex);
  std::copy_n(stripe.values.row(row / stripes), state->shapes[table].width,
              value);
}

void ParameterStore::State::fetch(size_t process, size_t table, size_t row) {
  CacheStripe &cache = *processes[process]->tables[table][row % stripes];
  ServerStripe &stripe = *server[table][row % stripes];
  size_t at = row / stripes;
  std::lock_guard lock(stripe.mutex);
  cache.values.set(at, stripe.values.row(at));
  // Gradients are no change yet.
  if (!revises(table))
    cache.values.add(at, cache.log.sum(at), SendOrder::Magnitude);
  if (simulation && !revises(table))
    addFlights(process, table, row, cache.values);
  cache.cached[at] = stripe.readers[process][at] = 1;
  Process &own = *processes[process];
  size_t bytes = bytesOfRow(shapes[table]);
  own.down.bytes += bytes;
  own.fetched += bytes;
  ++own.down.rows;
}

void ParameterStore::State::fetchFor(int worker, size_t table, size_t row) {
  fetch(size_t(worker) % processes.size(), table, row);
  if (simulation)
    simulation->fetched[size_t(worker)] += bytesOfRow(shapes[table]);
}

void ParameterStore::get(int worker, size_t table, size_t row, float *value) {
  state->checkWorker(worker);
  state->checkRow(table, row);
  state->checkHere(worker);
  state->checkLosses();
  Worker &own = *state->workers[size_t(worker)];
  Process &process = state->processOf(worker);
  int64_t clock = own.clock, staleness = state->options.staleness;
  if (process.fresh < clock - staleness)
    state->wait(worker, clock - staleness);
  int64_t behind = clock - std::min<int64_t>(process.fresh, clock);
  ++own.staleness[size_t(std::min(behind, staleness))];

  CacheStripe &stripe = *process.tables[table][row % stripes];
  size_t at = row / stripes, width = state->shapes[table].width;
  std::lock_guard lock(stripe.mutex);
  if (!stripe.cached[at])
    state->fetchFor(worker, table, row);
  const float *found = stripe.values.row(at);
  std::copy_n(found, width, value);
  if (state->checker) {
    std::string missing = state->checker->missing(
        worker, table, row, clock, found + numbersOfRow(state->shapes[table]),
        !state->revises(table));
    if (!missing.empty())
      refuse(textOfMissing(worker, clock, row, state->shapes[table], missing));
  }
}

void ParameterStore::inc(int worker, size_t table, size_t row,
                         const float *update) {
  state->checkWorker(worker);
  state->checkRow(table, row);
  state->checkHere(worker);
  state->checkLosses();
  int64_t clock = state->workers[size_t(worker)]->clock;
  CacheStripe &stripe = *state->processOf(worker).tables[table][row % stripes];
  size_t at = row / stripes;
  std::lock_guard lock(stripe.mutex);
  if (state->revises(table) && !stripe.cached[at])
    state->fetchFor(worker, table, row);
  addUpdate(stripe, at,
            {state->shapes[table], state->widths[table], state->options.order,
             state->options.checked, worker, clock, row},
            update);
  if (state->checker)
    state->checker->updated(worker, table, row, clock);
  if (state->simulation && state->options.budget)
    state->carryAt(size_t(worker) % state->processes.size(), state->now());
}

void ParameterStore::State::setClock(int worker, int64_t clock, bool finished) {
  Worker &own = *workers[size_t(worker)];
  Process &process = processOf(worker);
  {
    std::lock_guard lock(mutex);
    own.clock = clock;
    own.finished = finished;
    own.ticked = now();
    losses.erase(worker);
    lost = !losses.empty();
    int64_t earliest = finishedClock;
    for (size_t i = size_t(worker) % processes.size(); i < workers.size();
         i += processes.size())
      if (!workers[i]->finished)
        earliest = std::min<int64_t>(earliest, workers[i]->clock);
    process.clock = earliest;
  }
  if (isBulkSynchronous())
    wakeAll();
  else
    wakeUp(size_t(worker) % processes.size());
}

int64_t ParameterStore::clock(int worker) {
  state->checkWorker(worker);
  state->checkLosses();
  int64_t next = state->workers[size_t(worker)]->clock + 1;
  state->setClock(worker, next, false);
  return next;
}

void ParameterStore::finish(int worker) {
  state->checkWorker(worker);
  state->setClock(worker, state->workers[size_t(worker)]->clock, true);
  state->endTurn(worker);
}

void ParameterStore::lose(int worker, const std::string &why) {
  state->checkWorker(worker);
  state->endTurn(worker);
  std::lock_guard lock(state->mutex);
  state->losses[worker] = why;
  state->lost = true;
  state->progress.notify_all();
}

bool ParameterStore::State::wait(int worker, int64_t clock, double limit,
                                 double waited) {
  Process &process = processOf(worker);
  Worker &own = *workers[size_t(worker)];
  if (simulation)
    refuse("worker " + std::to_string(worker) + " at clock " +
           std::to_string(own.clock) +
           " reads before the bound lets it: in simulated time a worker reads "
           "when it is its turn");
  Time::time_point begin = Time::now();
  bool stops = options.whenLost == WhenLost::Stop, there = false;
  double most = std::min(limit, options.patience - waited);
  {
    std::unique_lock lock(mutex);
    auto ready = [&] { return process.fresh >= clock || (lost && stops); };
    if (std::isfinite(most)) {
      std::chrono::duration<double> length(most);
      there = progress.wait_until(
          lock, begin + std::chrono::duration_cast<Time::duration>(length),
          ready);
    } else {
      progress.wait(lock, ready);
      there = true;
    }
  }
  double length = std::chrono::duration<double>(Time::now() - begin).count();
  own.waited.fetch_add(length);
  checkLosses();
  if (!there && waited + length >= options.patience)
    refuseToWait(worker, waited + length);
  return there;
}

void ParameterStore::State::refuseToWait(int worker, double waited) {
  size_t slowest = 0;
  auto reached = [&](size_t i) {
    return workers[i]->finished ? finishedClock : workers[i]->clock.load();
  };
  for (size_t i = 0; i < workers.size(); ++i)
    if (reached(i) < reached(slowest))
      slowest = i;
  std::chrono::duration<double> silent =
      now() - workers[slowest]->ticked.load();
  std::string losses = lossesText();
  refuse("worker " + std::to_string(worker) + " at clock " +
         std::to_string(workers[size_t(worker)]->clock) + " waited " +
         std::to_string(waited) + " s for worker " + std::to_string(slowest) +
         ", which is at clock " + std::to_string(workers[slowest]->clock) +
         " since " + std::to_string(silent.count()) + " s; the staleness is " +
         std::to_string(options.staleness) +
         (losses.empty() ? "" : " (" + losses + ")") +
         ": look after that worker, or give more patience");
}

void ParameterStore::drain() { state->drain(); }

StoreReport ParameterStore::report() const {
  StoreReport report;
  for (const auto &process : state->processes) {
    report.bytesSent.push_back(process->up.bytes);
    report.bytesReceived.push_back(process->down.bytes);
    report.bytesFetched.push_back(process->fetched);
    report.rowsSent.push_back(process->up.rows);
    report.rowsReceived.push_back(process->down.rows);
  }
  report.readsByStaleness.assign(size_t(state->options.staleness) + 1, 0);
  for (const auto &worker : state->workers) {
    report.clocks.push_back(worker->clock);
    report.secondsWaited.push_back(worker->waited);
    for (size_t i = 0; i < worker->staleness.size(); ++i)
      report.readsByStaleness[i] += worker->staleness[i];
  }
  return report;
}
