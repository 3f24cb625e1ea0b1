//===- Replicas.h - Baechi's replicas for C ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The parameter store and the simulated exchange of replicas
/// (docs/replicas.md) as C functions. Those that return an int return 0, or
/// something else after an error that `baechiReplicasError` has the text of.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_C_REPLICAS_H
#define BAECHI_C_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The last error of the calling thread; valid until its next call.
const char *baechiReplicasError(void);

typedef struct BaechiStore BaechiStore;

typedef struct {
  int32_t workers, processes, staleness, tolerance;
  double budget;   ///< bytes per second; 0: at clocks alone
  double patience; ///< seconds
  /// 0 age, 1 random, 2 magnitude, 3 relative magnitude, 4 round robin
  int32_t order;
  int32_t waitForLost, checked;
  uint64_t roundBytes, seed;
  double simulatedBytesPerSecond; ///< of a network; 0: time is not simulated
  int64_t simulatedLatencyNs;
} BaechiStoreOptions;

/// NULL after an error. Tables with a step that is not 0 take gradients and
/// make steps of them by adaptive revision; updates of others add.
BaechiStore *baechiStoreCreate(size_t tables, const char *const *names,
                               const uint64_t *rows, const uint64_t *widths,
                               const double *steps,
                               const BaechiStoreOptions *options);
/// No workers: as many as there were.
BaechiStore *baechiStoreRestore(const char *file,
                                const BaechiStoreOptions *options);
void baechiStoreDestroy(BaechiStore *store);

int32_t baechiStoreWorkers(const BaechiStore *store);
size_t baechiStoreTables(const BaechiStore *store);
/// The name is valid as long as the store is.
const char *baechiStoreTable(const BaechiStore *store, size_t table,
                             uint64_t *rows, uint64_t *width);

/// Values of several rows, one after the other.
int baechiStoreSet(BaechiStore *store, size_t table, const int64_t *rows,
                   size_t count, const float *values);
int baechiStoreRead(BaechiStore *store, size_t table, const int64_t *rows,
                    size_t count, float *values);
int baechiStoreGet(BaechiStore *store, int32_t worker, size_t table,
                   const int64_t *rows, size_t count, float *values);
int baechiStoreInc(BaechiStore *store, int32_t worker, size_t table,
                   const int64_t *rows, size_t count, const float *updates);
int baechiStoreClock(BaechiStore *store, int32_t worker, int64_t *clock);
int baechiStoreFinish(BaechiStore *store, int32_t worker);
int baechiStoreLose(BaechiStore *store, int32_t worker, const char *why);
int baechiStoreDrain(BaechiStore *store);
int baechiStoreSave(BaechiStore *store, const char *file);
/// Bytes sent, received, and received for first reads, by process; clocks and
/// seconds waited by worker; reads by staleness (staleness + 1 numbers).
int baechiStoreReport(BaechiStore *store, uint64_t *sent, uint64_t *received,
                      uint64_t *fetched, int64_t *clocks, double *waited,
                      uint64_t *staleness);
/// In simulated time: whose turn it is (-1: all are finished), what it does
/// with it, and the time.
int baechiStoreNext(BaechiStore *store, int32_t *worker);
int baechiStoreCompute(BaechiStore *store, int32_t worker, double seconds);
double baechiStoreSeconds(const BaechiStore *store);

/// For a worker whose cache is in another process (below): moves it there, if
/// no other worker has the same cache (`elsewhere`), with its clock, and the
/// one that all updates are at the server from before of. Names, rows and bytes
/// are those of a ParameterStore's methods.
int baechiStoreMoveElsewhere(BaechiStore *store, int32_t worker,
                             int32_t *elsewhere, int64_t *clock,
                             int64_t *fresh);
int baechiStoreMoveBack(BaechiStore *store, int32_t worker);
/// Whether a table takes gradients, and the numbers of a row that is fetched.
int32_t baechiStoreRevises(const BaechiStore *store, size_t table);
size_t baechiStoreNumbers(const BaechiStore *store, size_t table);
int baechiStoreFetch(BaechiStore *store, int32_t worker, size_t table,
                     const int64_t *rows, size_t count, float *numbers);
int baechiStoreReceive(BaechiStore *store, int32_t worker, const char *message,
                       size_t bytes, int64_t sent, int64_t clock);
int baechiStoreAwait(BaechiStore *store, int32_t worker, int64_t clock,
                     double limit, double waited, int32_t *there);
int baechiStoreCheck(BaechiStore *store, int32_t worker, size_t table,
                     const int64_t *rows, size_t count, int64_t clock,
                     const float *counts);
int baechiStoreCountReads(BaechiStore *store, int32_t worker,
                          const uint64_t *byStaleness, size_t count);
/// A message for the worker, NULL after an error; the caller destroys it.
typedef struct BaechiMessage BaechiMessage;
BaechiMessage *baechiStoreSend(BaechiStore *store, int32_t worker,
                               uint64_t bytes, int64_t *through);
const char *baechiMessageBytes(const BaechiMessage *message, size_t *bytes);
void baechiMessageDestroy(BaechiMessage *message);

/// A worker's rows in a process that has not the store (ProcessCache.h). NULL
/// after an error. The shapes and options are the store's.
typedef struct BaechiCache BaechiCache;
BaechiCache *baechiCacheCreate(size_t tables, const char *const *names,
                               const uint64_t *rows, const uint64_t *widths,
                               const double *steps,
                               const BaechiStoreOptions *options,
                               int32_t worker, int64_t clock, int64_t fresh);
void baechiCacheDestroy(BaechiCache *cache);
size_t baechiCacheNumbers(const BaechiCache *cache, size_t table);
int64_t baechiCacheClock(const BaechiCache *cache);
int64_t baechiCacheFresh(const BaechiCache *cache);
int64_t baechiCacheSent(const BaechiCache *cache);
/// How many of the rows it lacks, the first ones in `missing`.
int baechiCacheMissing(BaechiCache *cache, size_t table, const int64_t *rows,
                       size_t count, int64_t *missing, size_t *found);
int baechiCachePut(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, const float *numbers);
/// `counts` may be NULL.
int baechiCacheGet(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, float *values, float *counts);
int baechiCacheInc(BaechiCache *cache, size_t table, const int64_t *rows,
                   size_t count, const float *updates);
int64_t baechiCacheTick(BaechiCache *cache);
BaechiMessage *baechiCacheTake(BaechiCache *cache, int32_t all);
uint64_t baechiCacheRoom(const BaechiCache *cache);
int baechiCacheAdd(BaechiCache *cache, const char *message, size_t bytes,
                   int64_t through);
double baechiCachePause(const BaechiCache *cache);
void baechiCacheReads(const BaechiCache *cache, uint64_t *byStaleness);

typedef struct {
  int32_t machines, policy; ///< 0 fifo, 1 slices, 2 p3, 3 tictac
  int32_t servers;          ///< 0 first, 1 in turn, 2 the better of both
  int32_t stored;           ///< messages are received once they are sent
  int32_t asked;            ///< workers ask for values that they are told of
  double bytesPerSecond;
  double serverBytesPerSecond; ///< of gradients that it adds; 0: at once
  int64_t latencyNs, messageNs, slice, steps;
} BaechiExchangeOptions;

typedef struct {
  int64_t stepNs, computeNs, exchangeNs, pieces;
} BaechiExchangeResult;

int baechiSimulateExchange(size_t layers, const char *const *names,
                           const int64_t *parameters, const int64_t *forwardNs,
                           const int64_t *backwardNs,
                           const BaechiExchangeOptions *options,
                           BaechiExchangeResult *result);

#ifdef __cplusplus
}
#endif

#endif // BAECHI_C_REPLICAS_H
