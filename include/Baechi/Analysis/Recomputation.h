//===- Recomputation.h - What a step computes again -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_RECOMPUTATION_H
#define BAECHI_ANALYSIS_RECOMPUTATION_H

#include "Baechi/Analysis/PlacementProblem.h"

namespace baechi {

/// A clone of a kernel's call (`baechi.recompute`), which must not run before
/// the operator that stands before it: it would hold its results from then on.
struct LateClone {
  mlir::Operation *before;
  mlir::Operation *clone;
};
llvm::SmallVector<LateClone> lateClones(mlir::FunctionOpInterface step);

/// Per operator of \p graph whether a clone computes the same bits and nobody
/// notices: calls of kernels with a body, without effects, that are no updates
/// in place.
std::vector<uint8_t> operatorsToRepeat(const StepGraph &graph);

/// Makes \p graph's step, a func.func, run its operators in the order of
/// \p runs (Baechi/Placement/Recompute/Recompute.h): clones where one runs
/// again, which later operators read. \p graph is of the step before.
void repeatOperators(const StepGraph &graph, llvm::ArrayRef<int32_t> runs);

} // namespace baechi

#endif // BAECHI_ANALYSIS_RECOMPUTATION_H
