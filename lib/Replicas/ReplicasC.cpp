//===- ReplicasC.cpp - Baechi's replicas for C ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReplicasC.h"
#include "Baechi/Replicas/ExchangeSimulation.h"
#include "Baechi/Runtime/ParameterStore.h"

#include <algorithm>

using namespace baechi;
using namespace baechi::replicas;

thread_local std::string replicas::lastError;

store::StoreOptions replicas::optionsOf(const BaechiStoreOptions &given) {
  store::StoreOptions options;
  options.workers = given.workers;
  options.processes = given.processes;
  options.staleness = given.staleness;
  options.tolerance = given.tolerance;
  if (given.budget != 0)
    options.budget = given.budget;
  options.patience = given.patience;
  options.order = store::SendOrder(std::clamp(given.order, 0, 4));
  options.whenLost =
      given.waitForLost ? store::WhenLost::Wait : store::WhenLost::Stop;
  options.checked = given.checked != 0;
  options.roundBytes = given.roundBytes;
  options.seed = given.seed;
  if (given.simulatedBytesPerSecond != 0)
    options.simulated = store::SimulatedNetwork{given.simulatedBytesPerSecond,
                                                given.simulatedLatencyNs};
  return options;
}

std::vector<store::TableShape> replicas::shapesOf(size_t tables,
                                                  const char *const *names,
                                                  const uint64_t *rows,
                                                  const uint64_t *widths,
                                                  const double *steps) {
  std::vector<store::TableShape> shapes;
  for (size_t i = 0; i < tables; ++i)
    shapes.push_back({names[i], size_t(rows[i]), size_t(widths[i]),
                      steps[i] != 0 ? store::UpdateRule::AdaptiveRevision
                                    : store::UpdateRule::Add,
                      steps[i]});
  return shapes;
}

namespace {
/// Calls \p row with each row and where its numbers are.
template <typename Float, typename Row>
int forRows(BaechiStore *store, size_t table, const int64_t *rows, size_t count,
            Float *values, Row &&row) {
  return guarded([&] {
    const auto &tables = store->store->tables();
    size_t width = table < tables.size() ? tables[table].width : 0;
    for (size_t i = 0; i < count; ++i)
      row(size_t(rows[i]), values + i * width);
  });
}
} // namespace

const char *baechiReplicasError(void) { return replicas::lastError.c_str(); }

BaechiStore *baechiStoreCreate(size_t tables, const char *const *names,
                               const uint64_t *rows, const uint64_t *widths,
                               const double *steps,
                               const BaechiStoreOptions *options) {
  std::unique_ptr<store::ParameterStore> made;
  int failed = guarded([&] {
    made = std::make_unique<store::ParameterStore>(
        shapesOf(tables, names, rows, widths, steps), optionsOf(*options));
  });
  return failed ? nullptr : new BaechiStore{std::move(made)};
}

BaechiStore *baechiStoreRestore(const char *file,
                                const BaechiStoreOptions *options) {
  std::unique_ptr<store::ParameterStore> made;
  int failed = guarded([&] {
    made = store::ParameterStore::restore(file, optionsOf(*options));
  });
  return failed ? nullptr : new BaechiStore{std::move(made)};
}

void baechiStoreDestroy(BaechiStore *store) { delete store; }

int32_t baechiStoreWorkers(const BaechiStore *store) {
  return store->store->options().workers;
}

size_t baechiStoreTables(const BaechiStore *store) {
  return store->store->tables().size();
}

const char *baechiStoreTable(const BaechiStore *store, size_t table,
                             uint64_t *rows, uint64_t *width) {
  const store::TableShape &shape = store->store->tables()[table];
  *rows = shape.rows;
  *width = shape.width;
  return shape.name.c_str();
}

int baechiStoreSet(BaechiStore *store, size_t table, const int64_t *rows,
                   size_t count, const float *values) {
  return forRows(store, table, rows, count, values,
                 [&](size_t row, const float *value) {
                   store->store->set(table, row, value);
                 });
}

int baechiStoreRead(BaechiStore *store, size_t table, const int64_t *rows,
                    size_t count, float *values) {
  return forRows(
      store, table, rows, count, values,
      [&](size_t row, float *value) { store->store->read(table, row, value); });
}

int baechiStoreGet(BaechiStore *store, int32_t worker, size_t table,
                   const int64_t *rows, size_t count, float *values) {
  return forRows(store, table, rows, count, values,
                 [&](size_t row, float *value) {
                   store->store->get(worker, table, row, value);
                 });
}

int baechiStoreInc(BaechiStore *store, int32_t worker, size_t table,
                   const int64_t *rows, size_t count, const float *updates) {
  return forRows(store, table, rows, count, updates,
                 [&](size_t row, const float *update) {
                   store->store->inc(worker, table, row, update);
                 });
}

int baechiStoreClock(BaechiStore *store, int32_t worker, int64_t *clock) {
  return guarded([&] { *clock = store->store->clock(worker); });
}

int baechiStoreFinish(BaechiStore *store, int32_t worker) {
  return guarded([&] { store->store->finish(worker); });
}

int baechiStoreLose(BaechiStore *store, int32_t worker, const char *why) {
  return guarded([&] { store->store->lose(worker, why); });
}

int baechiStoreDrain(BaechiStore *store) {
  return guarded([&] { store->store->drain(); });
}

int baechiStoreSave(BaechiStore *store, const char *file) {
  return guarded([&] { store->store->save(file); });
}

int baechiStoreReport(BaechiStore *store, uint64_t *sent, uint64_t *received,
                      uint64_t *fetched, int64_t *clocks, double *waited,
                      uint64_t *staleness) {
  return guarded([&] {
    store::StoreReport report = store->store->report();
    std::ranges::copy(report.bytesSent, sent);
    std::ranges::copy(report.bytesReceived, received);
    std::ranges::copy(report.bytesFetched, fetched);
    std::ranges::copy(report.clocks, clocks);
    std::ranges::copy(report.secondsWaited, waited);
    std::ranges::copy(report.readsByStaleness, staleness);
  });
}

int baechiStoreNext(BaechiStore *store, int32_t *worker) {
  return guarded([&] { *worker = store->store->next().value_or(-1); });
}

int baechiStoreCompute(BaechiStore *store, int32_t worker, double seconds) {
  return guarded([&] { store->store->compute(worker, seconds); });
}

double baechiStoreSeconds(const BaechiStore *store) {
  return store->store->simulatedSeconds();
}

int baechiSimulateExchange(size_t layers, const char *const *names,
                           const int64_t *parameters, const int64_t *forwardNs,
                           const int64_t *backwardNs,
                           const BaechiExchangeOptions *given,
                           BaechiExchangeResult *result) {
  return guarded([&] {
    std::vector<replicas::Layer> all;
    for (size_t i = 0; i < layers; ++i)
      all.push_back({names[i], parameters[i], forwardNs[i], backwardNs[i]});
    replicas::ExchangeOptions options;
    options.machines = given->machines;
    options.policy = replicas::Policy(std::clamp(given->policy, 0, 3));
    options.servers = replicas::Servers(std::clamp(given->servers, 0, 2));
    options.bytesPerSecond = given->bytesPerSecond;
    options.stored = given->stored != 0;
    options.asked = given->asked != 0;
    options.serverBytesPerSecond = given->serverBytesPerSecond;
    options.latencyNs = given->latencyNs;
    options.messageNs = given->messageNs;
    options.steps = int(given->steps);
    options.slice = given->slice;
    if (given->slice == 0)
      options.slice = replicas::chooseSlice(all, options);
    replicas::ExchangeResult found = replicas::simulateExchange(all, options);
    *result = {found.stepNs, found.computeNs, found.exchangeNs,
               int64_t(found.pieces)};
  });
}
