//===- ReadChecker.h - Counts the updates within what is read ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds reads that are staler than promised, from the values alone: each row
/// has a number a worker behind its own numbers, to which every update of that
/// worker adds one. Those counts travel as the row does. The checker remembers
/// how many updates there were by clock, and knows nothing of how rows travel.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_READCHECKER_H
#define BAECHI_RUNTIME_STORE_READCHECKER_H

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baechi::store {

class ReadChecker {
public:
  ReadChecker(int workers, int staleness)
      : workers(workers), staleness(staleness) {}

  void updated(int worker, size_t table, size_t row, int64_t clock);
  /// What \p counts, those of a row that \p worker read at its clock, miss; ""
  /// if nothing. Where it \p seesItsOwn, all of these must be within.
  std::string missing(int worker, size_t table, size_t row, int64_t clock,
                      const float *counts, bool seesItsOwn);

private:
  /// Of one worker to one row: a clock, and the updates up to its end.
  using Updates = std::vector<std::pair<int64_t, int64_t>>;
  int workers, staleness;
  std::mutex mutex;
  std::unordered_map<uint64_t, std::vector<Updates>> rows; ///< by table and row
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_READCHECKER_H
