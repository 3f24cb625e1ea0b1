//===- VariedStarts.h - m-ETF under varied urgencies ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_VARIEDSTARTS_H
#define BAECHI_LIB_PLACEMENT_SEARCH_VARIEDSTARTS_H

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Placers/Placers.h"

namespace baechi::placement::search {

/// Placements by m-ETF whose urgencies are multiplied by random keys, which a
/// local search betters (random keys: Bean 1994, "Genetic algorithms and random
/// keys for sequencing and optimization"). A list schedule never waits for what
/// is more urgent; where few operators do most of the work it is this that
/// costs, and which of them comes first decides more than any move of an
/// operator does. Returns the best \p count that differ in their makespans as
/// m-ETF has them, best first; none when the graph is so large that only few
/// runs are affordable. Some may exceed the memories.
std::vector<placers::EarliestStart> variedStarts(const Model &model,
                                                 size_t count, uint64_t seed);

/// The evaluations that take as long.
int64_t variedEvaluations(const Model &model);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_VARIEDSTARTS_H
