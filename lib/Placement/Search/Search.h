//===- Search.h - Improvement of an assignment ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Local search over clusters of units. Starts from m-ETF on clusterings of
/// several grains, mutates an elite of these at the level of clusters, then
/// anneals: clusters around critical transfers and operators move, whole or
/// within a window of time, and the list scheduler judges. Problems with few
/// assignments are searched exhaustively.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_H
#define BAECHI_LIB_PLACEMENT_SEARCH_H

#include "Baechi/Placement/Place.h"
#include "Schedule/Schedule.h"

namespace baechi::placement {

struct SearchOptions {
  Objective objective = Objective::Makespan;
  /// Not `None`.
  Budget budget;
  /// Of the objective: nothing better can be found, the search ends there.
  int64_t lowerBound = 0;
};

struct SearchResult {
  /// The best few, best first.
  std::vector<Assignment> best;
  int64_t evaluations = 0;
};

/// \p starts are assignments of \p model to begin with besides its own.
SearchResult search(const Model &model, const std::vector<Assignment> &starts,
                    const SearchOptions &options);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SEARCH_H
