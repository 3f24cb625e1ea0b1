//===- Stashing.h - What a step keeps in a pool -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_STASHING_H
#define BAECHI_ANALYSIS_STASHING_H

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Recompute/Spill.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// Fills in what of \p graph may go to a pool: `mayMove`, `nextValue`,
/// `staysHere`, and what may be in an operand's room: `takeOvers`. Arguments
/// may whose next value, if they have one, one operator computes for them
/// alone.
void findMovable(const StepGraph &graph, placement::SpillOptions &options);

/// Whether \p op calls a kernel without a body that is marked `baechi.stash`.
/// Its result is its first operand, in a pool: its operand's transfer there is
/// the spill, its result's transfer back the fetch. The result may take the
/// place of any operand; a second one is the argument whose next value it then
/// is.
bool isStash(mlir::Operation *op);

/// Makes \p graph's step, of which \p module has the kernels, keep tensors by
/// calls of such kernels, which later operators read: one for each stay of
/// \p plan whose tensor the pool makes, null for the others. \p kind: of the
/// pool.
llvm::SmallVector<mlir::func::CallOp>
stashTensors(mlir::ModuleOp module, const StepGraph &graph,
             const placement::SpillPlan &plan, llvm::StringRef kind);

/// The same for a placer that has yet to say where and when all runs: the step
/// is in \p plan's order, what is in the pool is pinned to \p pool, and what
/// comes back is a call of its own, which waits for the operator before it as
/// clones do (lateClones). \p in: from the pool.
void stashTensorsLate(mlir::ModuleOp module, const StepGraph &graph,
                      const placement::SpillPlan &plan,
                      const placement::Device &pool, const placement::Link &in);

} // namespace baechi

#endif // BAECHI_ANALYSIS_STASHING_H
