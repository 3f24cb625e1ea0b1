//===- PlanPasses.h - Passes for plans that are compared --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLANPASSES_H
#define BAECHI_LIB_TRANSFORMS_PLANPASSES_H

#include "Baechi/Transforms/Passes.h"

namespace baechi {

/// --baechi-place. \p stopped, asked often from the pass's thread: once it says
/// true, the search ends with an error. \p explains: an error says what would
/// help. \p inTurn: what is placed runs one after the other.
std::unique_ptr<mlir::Pass> createPlace(const PlaceOptions &options,
                                        std::function<bool()> stopped,
                                        bool explains, bool inTurn = false);

/// --baechi-plan-memory that also fills in \p arenas. \p onlyFits: an arena
/// that is within its limit is small enough.
std::unique_ptr<mlir::Pass> createPlanMemory(std::vector<ArenaReport> *arenas,
                                             bool onlyFits);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLANPASSES_H
