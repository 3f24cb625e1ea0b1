//===- FixedPlacement.h - Placements that need no placer --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FITMEMORY_FIXEDPLACEMENT_H
#define BAECHI_LIB_TRANSFORMS_FITMEMORY_FIXEDPLACEMENT_H

#include "Baechi/Analysis/PlacementProblem.h"

namespace baechi {

/// Writes \p placement on the step of \p graph, as a placer called \p winner
/// would; whether it fits the memories, the plan of the arenas tells. Emits an
/// error where it breaks the other rules.
void writeFixedPlacement(const StepGraph &graph,
                         const placement::Machine &machine,
                         placement::Placement placement,
                         llvm::StringRef winner);

/// Writes that \p device computes all, in the order of the program.
void writeInProgramOrder(const StepGraph &graph,
                         const placement::Machine &machine, int32_t device);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_FIXEDPLACEMENT_H
