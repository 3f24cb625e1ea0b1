//===- Exhaustive.h - All assignments of a small problem --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_EXHAUSTIVE_H
#define BAECHI_LIB_PLACEMENT_SEARCH_EXHAUSTIVE_H

#include "Search/MeteredEvaluator.h"

#include <optional>

namespace baechi::placement::search {

/// How many assignments a model has; none: too many to try them all.
std::optional<int64_t> fewAssignments(const Model &model);

/// The best \p count of all assignments, best first; ends with the budget.
std::vector<Solution> tryAll(MeteredEvaluator &evaluator, size_t count);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_EXHAUSTIVE_H
