//===- OrderAnnealing.h - Better orders, and devices for them ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_ORDERANNEALING_H
#define BAECHI_LIB_PLACEMENT_SEARCH_ORDERANNEALING_H

#include "Search/Search.h"

#include <optional>

namespace baechi::placement::search {

struct OrderResult {
  /// The best within the memories; none: there was none.
  std::optional<Placement> best;
  int64_t evaluations = 0;
};

/// Simulated annealing (Kirkpatrick et al. 1983) of start orders
/// (StartOrder.h): a node or transfer comes earlier or later, a copy takes
/// another way, a unit goes to another device. Missing memory costs as much as
/// being late, so that the way to what fits is found. Short runs begin from
/// \p starts, then by turns from the best so far and from devices drawn by
/// chance, each a little longer than those before.
///
/// An evaluation of \p options.budget is a schedule, which looks at every node
/// and tensor: this is for small graphs. An automatic budget is that of
/// Meter.h.
OrderResult annealOrders(const Model &model,
                         const std::vector<Assignment> &starts,
                         const SearchOptions &options);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_ORDERANNEALING_H
