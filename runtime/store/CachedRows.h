//===- CachedRows.h - A process's rows, and what it may send ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the caches of a store's process and of one elsewhere have in common.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_CACHEDROWS_H
#define BAECHI_RUNTIME_STORE_CACHEDROWS_H

#include "Baechi/Runtime/ParameterStore.h"

#include <algorithm>
#include <mutex>

namespace baechi::store {

/// Rows of a table at a process: what its workers read.
struct CacheStripe {
  CacheStripe(size_t rows, size_t width, size_t weighed,
              std::atomic<uint64_t> &ages)
      : values(rows, width, weighed), log(rows, width, ages), cached(rows, 0) {}
  std::mutex mutex;
  RowValues values;
  UpdateLog log; ///< own updates, for the server
  std::vector<uint8_t> cached;
};

/// A round's rows, and how many a clock needs, in it or not.
struct Round {
  std::vector<Candidate> rows;
  size_t needed = 0;
  size_t bytes() const;
};

/// Of a row's numbers, those that are sent: gradients go with what they knew.
inline size_t numbersOfRow(const TableShape &table) {
  return table.width * (table.rule == UpdateRule::AdaptiveRevision ? 2 : 1);
}
/// With what the checker counts.
inline size_t widthOf(const TableShape &table, const StoreOptions &options) {
  return numbersOfRow(table) + (options.checked ? size_t(options.workers) : 0);
}
inline uint32_t bytesOfRow(const TableShape &table) {
  return uint32_t(numbersOfRow(table) * sizeof(float)) + bytesOfRowHeader;
}

/// Before which clock a process at \p clock must have sent its updates; without
/// a budget a clock takes along all that waits.
inline int64_t mustSend(const StoreOptions &options, int64_t clock) {
  if (!options.budget)
    return clock;
  return std::min(clock, clock - options.staleness + options.tolerance);
}

/// Fails where there is none.
void checkRow(const std::vector<TableShape> &tables, size_t table, size_t row);

/// Whose update it is, of which row.
struct Update {
  const TableShape &shape;
  size_t width; ///< with what the checker counts
  SendOrder order;
  bool checked;
  int worker;
  int64_t clock;
  size_t row;
};

/// Adds a worker's update to its cache, or gives a gradient to a row that it
/// has; \p stripe is locked. Fails where it is not finite.
void addUpdate(CacheStripe &stripe, size_t at, const Update &update,
               const float *numbers);

/// What is told of a read that misses updates.
std::string textOfMissing(int worker, int64_t clock, size_t row,
                          const TableShape &table, const std::string &missing);

/// The rows that wait, of \p stripes each table is dealt to; those needed
/// before clock \p must alone where \p neededOnly.
template <typename Lock, typename Log>
Round collect(const std::vector<TableShape> &shapes, int64_t must,
              bool neededOnly, size_t stripes, Lock lockOf, Log logOf) {
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
        round.rows.push_back({uint32_t(table), uint32_t(at * stripes + stripe),
                              log.clock(at), log.age(at), log.importance(at),
                              bytesOfRow(shapes[table])});
      }
    }
  return round;
}

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_CACHEDROWS_H
