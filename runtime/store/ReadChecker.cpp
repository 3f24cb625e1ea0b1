//===- ReadChecker.cpp - Counts the updates within what is read -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "store/ReadChecker.h"

using namespace baechi::store;

void ReadChecker::updated(int worker, size_t table, size_t row, int64_t clock) {
  std::lock_guard lock(mutex);
  std::vector<Updates> &updates = rows[{table, row}];
  updates.resize(size_t(workers));
  ++updates[size_t(worker)][clock];
}

std::string ReadChecker::missing(int worker, size_t table, size_t row,
                                 int64_t clock, const float *counts) {
  std::lock_guard lock(mutex);
  auto found = rows.find({table, row});
  if (found == rows.end())
    return "";
  for (int other = 0; other < workers; ++other) {
    // All of its own, and of the others' what the bound promises.
    int64_t before = other == worker ? clock + 1 : clock - staleness;
    int64_t promised = 0;
    for (auto [at, count] : found->second[size_t(other)])
      promised += at < before ? count : 0;
    auto seen = int64_t(counts[other]);
    if (seen < promised)
      return std::to_string(promised - seen) + " of " +
             std::to_string(promised) + " updates of worker " +
             std::to_string(other);
  }
  return "";
}
