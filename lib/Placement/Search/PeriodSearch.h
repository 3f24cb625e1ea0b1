//===- PeriodSearch.h - Search for steps that follow soonest ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_PERIODSEARCH_H
#define BAECHI_LIB_PLACEMENT_SEARCH_PERIODSEARCH_H

#include "Search/Search.h"

#include <optional>

namespace baechi::placement::search {

struct PeriodResult {
  /// The best within the memories; none: there was none.
  std::optional<Placement> best;
  int64_t evaluations = 0;
};

/// Simulated annealing (Kirkpatrick et al. 1983) of devices and urgencies, by
/// the replay of steps that overlap (Schedule/Period.h): a unit, or what is on
/// one side of a transfer, goes to another device; a unit becomes more or less
/// urgent, by which its device's order changes. Runs begin from \p starts and
/// from the best so far. Assignments that exceed a memory are left out.
///
/// An evaluation is one schedule or one replayed step.
PeriodResult searchPeriod(const Model &model,
                          const std::vector<Assignment> &starts,
                          const SearchOptions &options);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_PERIODSEARCH_H
