//===- GroupingSteps.h - Grouping step by step --------------------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SESSION_GROUPINGSTEPS_H
#define BAECHI_LIB_PLACEMENT_SESSION_GROUPINGSTEPS_H

#include "Baechi/Placement/Session/Place.h"
#include "Grouping/Coarsen.h"

namespace baechi::placement::session {

/// What grouping made of a model.
struct Grouping {
  grouping::Coarsening coarsening;
  /// What the steps make of the other levels of `multilevel`.
  std::vector<grouping::Coarsening> levels;
  std::vector<GroupingStep> steps;
  /// What a step could not do.
  std::vector<std::string> notes;
};

/// Applies steps of `groupingNames()` in their order, each to what the ones
/// before it left: they compose in any order. \p problem is the one that
/// \p model stands for.
Grouping applySteps(const Problem &problem, const Model &model,
                    const std::vector<std::string> &names);

} // namespace baechi::placement::session

#endif // BAECHI_LIB_PLACEMENT_SESSION_GROUPINGSTEPS_H
