//===- SmallSearch.h - More effort where a graph is small -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// On a small graph there is time for what a list scheduler cannot find: orders
/// of starts (OrderAnnealing.h), and from there the exact search
/// (Exact/BranchAndBound.h), which often comes to its end and proves the
/// optimum, or that nothing fits.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_SMALLSEARCH_H
#define BAECHI_LIB_PLACEMENT_SEARCH_SMALLSEARCH_H

#include "Search/Search.h"

#include <optional>

namespace baechi::placement::search {

struct SmallResult {
  /// Better than what there was; none: nothing better was found.
  std::optional<Placement> placement;
  std::string name; ///< of what found it
  /// Of the objective, in ns. What the exact search has proven; 0: nothing.
  int64_t lowerBound = 0;
  /// True when nothing is better. Without any placement none is valid.
  bool isComplete = false;
  int64_t evaluations = 0; ///< orders that were scheduled
  int64_t nodes = 0;       ///< of the exact search
};

/// True when `searchSmall` is worth its time.
bool isSmall(const Model &model);

/// The evaluations of an automatic budget: a few tenths of a second.
constexpr int64_t smallEvaluations = 320'000;

/// The part of a round's evaluations that is left to the search on clusters.
int64_t shareOfSearch(const Model &model, int64_t evaluations);

/// Looks for a placement that is better than \p best, which may be null, by
/// annealing orders and by the exact search, a quarter of the evaluations of
/// \p options.budget each, where a node of the exact search counts as one.
SmallResult searchSmall(const Model &model, const Placement *best,
                        const SearchOptions &options);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_SMALLSEARCH_H
