//===- MaxLoadSearch.h - Search for the smallest largest load ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search of `search` for the objective max-load. Loads do not depend on
/// when things run, so a move is judged by the change of a few sums and
/// millions of moves are tried a second. Starts are contiguous splits
/// (Splits.h), what the placers found, and random ones. Every round clusters
/// the units anew, by the tensors that are too dear to cut or by traffic,
/// without joining what the assignment keeps apart, and anneals first the
/// clusters and then the units: the iterated multilevel scheme of Walshaw
/// ("Multilevel refinement for combinatorial optimisation problems", 2004).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MAXLOADSEARCH_H
#define BAECHI_LIB_PLACEMENT_MAXLOADSEARCH_H

#include "Search/Search.h"

namespace baechi::placement::search {

/// As `search`, which calls it. Every assignment in the result has a schedule
/// within the memories; there may be none.
/// The evaluations of an automatic budget.
int64_t automaticLoadEvaluations(const Model &model);

SearchResult searchMaxLoad(const Model &model,
                           const std::vector<Assignment> &starts,
                           const SearchOptions &options);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_MAXLOADSEARCH_H
