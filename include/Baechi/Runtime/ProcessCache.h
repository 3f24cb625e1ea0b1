//===- ProcessCache.h - A store's rows in another process -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a worker in a process that has no part of a parameter store keeps of
/// it: the rows that it reads, and its updates until they are sent. Reads see
/// the same as those of a worker beside the store (ParameterStore.h), and need
/// no message while the bound allows it. Nothing is sent here: who has the
/// cache brings its messages to the store, and the store's to it.
///
/// Source: Wei et al., "Managed Communication and Consistency for Fast
/// Data-Parallel Iterative Analytics" (Bösen), SoCC 2015, section 3.1.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_PROCESSCACHE_H
#define BAECHI_RUNTIME_PROCESSCACHE_H

#include "Baechi/Runtime/ParameterStore.h"

namespace baechi::store {

class ProcessCache {
public:
  /// Of \p worker of a store with these tables and options, which is at
  /// \p clock; all updates from before \p fresh are at the server.
  ProcessCache(std::vector<TableShape> tables, StoreOptions options, int worker,
               int64_t clock, int64_t fresh);
  ~ProcessCache();

  const std::vector<TableShape> &tables() const;
  const StoreOptions &options() const;
  /// Numbers of a row that are sent.
  size_t numbersOf(size_t table) const;

  int64_t clock() const;
  /// All updates from before that clock are within the rows.
  int64_t fresh() const;
  /// That before which all updates are needed to read.
  int64_t needed() const { return clock() - options().staleness; }

  bool has(size_t table, size_t row) const;
  /// A row that is read for the first time, as the server has it.
  void put(size_t table, size_t row, const float *numbers);
  /// Copies a row that it has, once `fresh` is as needed. \p counts: where not
  /// null, what a store that is checked counts in the row, one a worker.
  void get(size_t table, size_t row, float *value, float *counts);
  /// Adds to a row, or gives its gradient, for which it must have the row.
  void inc(size_t table, size_t row, const float *update);
  /// Ends the worker's clock and begins the next, which is returned.
  int64_t tick();

  /// A round for the server, of what the budget lets go now; with \p all, of
  /// everything.
  SentRows take(bool all);
  /// All updates from before that clock were taken.
  int64_t sent() const;
  /// Bytes that the budget lets come now.
  size_t room() const;
  /// What others changed, after which all from before \p through is there.
  void add(const SentRows &rows, int64_t through);
  /// Seconds until the budget lets something go or come.
  double pause() const;

  /// Reads by how many clocks their values were behind.
  const std::vector<uint64_t> &readsByStaleness() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_PROCESSCACHE_H
