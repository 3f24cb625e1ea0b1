//===- ReadChecker.cpp - Counts the updates within what is read -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "store/ReadChecker.h"

#include <algorithm>
#include <iterator>

using namespace baechi::store;

static uint64_t keyOf(size_t table, size_t row) {
  return (uint64_t(table) << 32) + row;
}

void ReadChecker::updated(int worker, size_t table, size_t row, int64_t clock) {
  std::lock_guard lock(mutex);
  std::vector<Updates> &all = rows[keyOf(table, row)];
  all.resize(size_t(workers));
  Updates &updates = all[size_t(worker)];
  if (updates.empty() || updates.back().first != clock)
    updates.emplace_back(clock, updates.empty() ? 0 : updates.back().second);
  ++updates.back().second;
}

std::string ReadChecker::missing(int worker, size_t table, size_t row,
                                 int64_t clock, const float *counts,
                                 bool seesItsOwn) {
  std::lock_guard lock(mutex);
  auto found = rows.find(keyOf(table, row));
  if (found == rows.end())
    return "";
  for (int other = 0; other < workers; ++other) {
    // All of its own, and of the others' what the bound promises.
    int64_t before =
        other == worker && seesItsOwn ? clock + 1 : clock - staleness;
    const Updates &updates = found->second[size_t(other)];
    auto after = std::ranges::lower_bound(updates, before, {},
                                          &Updates::value_type::first);
    int64_t promised = after == updates.begin() ? 0 : std::prev(after)->second;
    auto seen = int64_t(counts[other]);
    if (seen < promised)
      return std::to_string(promised - seen) + " of " +
             std::to_string(promised) + " updates of worker " +
             std::to_string(other);
  }
  return "";
}
