//===- CacheC.cpp - Caches of stores elsewhere for C ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ProcessCache.h"
#include "ReplicasC.h"

#include <algorithm>

using namespace baechi;
using namespace baechi::replicas;

struct BaechiMessage {
  std::string text;
};

struct BaechiCache {
  store::ProcessCache cache;
};

namespace {

/// Calls \p row with each row and where its numbers are, of \p width each.
template <typename Float, typename Row>
int forRows(const int64_t *rows, size_t count, Float *numbers, size_t width,
            Row &&row) {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i)
      row(size_t(rows[i]), numbers + i * width);
  });
}

template <typename Make> BaechiMessage *message(Make &&make) {
  store::SentRows rows;
  return guarded([&] { rows = make(); }) ? nullptr
                                         : new BaechiMessage{rows.text()};
}

size_t widthOf(const BaechiCache *cache, size_t table) {
  const auto &tables = cache->cache.tables();
  return table < tables.size() ? tables[table].width : 0;
}

} // namespace

int baechiStoreMoveElsewhere(BaechiStore *store, int32_t worker,
                             int32_t *elsewhere, int64_t *clock,
                             int64_t *fresh) {
  return guarded([&] {
    *elsewhere = store->store->moveElsewhere(worker, *clock, *fresh);
  });
}

int baechiStoreMoveBack(BaechiStore *store, int32_t worker) {
  return guarded([&] { store->store->moveBack(worker); });
}

int32_t baechiStoreRevises(const BaechiStore *store, size_t table) {
  return store->store->tables()[table].rule ==
         store::UpdateRule::AdaptiveRevision;
}

size_t baechiStoreNumbers(const BaechiStore *store, size_t table) {
  return store->store->numbersOf(table);
}

int baechiStoreFetch(BaechiStore *store, int32_t worker, size_t table,
                     const int64_t *rows, size_t count, float *numbers) {
  return forRows(rows, count, numbers, store->store->numbersOf(table),
                 [&](size_t row, float *to) {
                   store->store->fetch(worker, table, row, to);
                 });
}

int baechiStoreReceive(BaechiStore *store, int32_t worker, const char *message,
                       size_t bytes, int64_t sent, int64_t clock) {
  return guarded([&] {
    store->store->receive(worker, store::SentRows::parse({message, bytes}),
                          sent, clock);
  });
}

int baechiStoreAwait(BaechiStore *store, int32_t worker, int64_t clock,
                     double limit, double waited, int32_t *there) {
  return guarded(
      [&] { *there = store->store->await(worker, clock, limit, waited); });
}

int baechiStoreCheck(BaechiStore *store, int32_t worker, size_t table,
                     const int64_t *rows, size_t count, int64_t clock,
                     const float *counts) {
  return forRows(rows, count, counts, size_t(store->store->options().workers),
                 [&](size_t row, const float *counted) {
                   store->store->checkRead(worker, table, row, clock, counted);
                 });
}

int baechiStoreCountReads(BaechiStore *store, int32_t worker,
                          const uint64_t *byStaleness, size_t count) {
  return guarded([&] {
    store->store->countReads(worker, {byStaleness, byStaleness + count});
  });
}

BaechiMessage *baechiStoreSend(BaechiStore *store, int32_t worker,
                               uint64_t bytes, int64_t *through) {
  return message(
      [&] { return store->store->send(worker, size_t(bytes), *through); });
}

const char *baechiMessageBytes(const BaechiMessage *message, size_t *bytes) {
  *bytes = message->text.size();
  return message->text.data();
}

void baechiMessageDestroy(BaechiMessage *message) { delete message; }

BaechiCache *baechiCacheCreate(size_t tables, const char *const *names,
                               const uint64_t *rows, const uint64_t *widths,
                               const double *steps,
                               const BaechiStoreOptions *options,
                               int32_t worker, int64_t clock, int64_t fresh) {
  BaechiCache *made = nullptr;
  guarded([&] {
    made = new BaechiCache{
        store::ProcessCache(shapesOf(tables, names, rows, widths, steps),
                            optionsOf(*options), worker, clock, fresh)};
  });
  return made;
}

void baechiCacheDestroy(BaechiCache *cache) { delete cache; }

size_t baechiCacheNumbers(const BaechiCache *cache, size_t table) {
  return table < cache->cache.tables().size() ? cache->cache.numbersOf(table)
                                              : 0;
}

int64_t baechiCacheClock(const BaechiCache *cache) {
  return cache->cache.clock();
}
int64_t baechiCacheFresh(const BaechiCache *cache) {
  return cache->cache.fresh();
}
int64_t baechiCacheSent(const BaechiCache *cache) {
  return cache->cache.sent();
}

int baechiCacheMissing(BaechiCache *cache, size_t table, const int64_t *rows,
                       size_t count, int64_t *missing, size_t *found) {
  return guarded([&] {
    *found = 0;
    for (size_t i = 0; i < count; ++i)
      if (!cache->cache.has(table, size_t(rows[i])))
        missing[(*found)++] = rows[i];
  });
}

int baechiCachePut(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, const float *numbers) {
  return forRows(rows, count, numbers, baechiCacheNumbers(cache, table),
                 [&](size_t row, const float *from) {
                   cache->cache.put(table, row, from);
                 });
}

int baechiCacheGet(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, float *values, float *counts) {
  size_t place = 0;
  auto workers = size_t(cache->cache.options().workers);
  return forRows(
      rows, count, values, widthOf(cache, table), [&](size_t row, float *to) {
        cache->cache.get(table, row, to,
                         counts ? counts + workers * place++ : nullptr);
      });
}

int baechiCacheInc(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, const float *updates) {
  return forRows(rows, count, updates, widthOf(cache, table),
                 [&](size_t row, const float *update) {
                   cache->cache.inc(table, row, update);
                 });
}

int64_t baechiCacheTick(BaechiCache *cache) { return cache->cache.tick(); }

BaechiMessage *baechiCacheTake(BaechiCache *cache, int32_t all) {
  return message([&] { return cache->cache.take(all != 0); });
}

uint64_t baechiCacheRoom(const BaechiCache *cache) {
  return cache->cache.room();
}

int baechiCacheAdd(BaechiCache *cache, const char *message, size_t bytes,
                   int64_t through) {
  return guarded([&] {
    cache->cache.add(store::SentRows::parse({message, bytes}), through);
  });
}

double baechiCachePause(const BaechiCache *cache) {
  return cache->cache.pause();
}

void baechiCacheReads(const BaechiCache *cache, uint64_t *byStaleness) {
  std::ranges::copy(cache->cache.readsByStaleness(), byStaleness);
}
