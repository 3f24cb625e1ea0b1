//===- MemoryFitter.h - Rewrites that take less memory ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FITMEMORY_MEMORYFITTER_H
#define BAECHI_LIB_TRANSFORMS_FITMEMORY_MEMORYFITTER_H

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Recompute/Chains.h"
#include "Baechi/Transforms/MemoryFit.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

/// A rewrite of a step that holds fewer bytes at once for some time.
struct FitProposal {
  placement::RepeatedOrder order;
};

/// Proposes rewrites of a step. Whether a plan of one fits, its user finds out.
class MemoryFitter {
public:
  /// \p module, whose step has costs, outlives the fitter. Fails after an
  /// error.
  static mlir::FailureOr<MemoryFitter> create(mlir::ModuleOp module,
                                              const placement::Machine &target);

  /// What the step as it is holds at least, as far as is known, with each
  /// result beside its operands.
  int64_t peakBytes() const { return lean.front().peakBytes; }
  /// What no plan of a rewrite goes under, and, with each result beside its
  /// operands, no rewrite.
  placement::MemoryFloor floor() const { return least; }
  placement::MemoryFloor floorOfOrders() const { return leastOfOrders; }
  /// What no plan of several devices goes under on the one that runs the
  /// operator which needs most: other arguments are elsewhere.
  placement::MemoryFloor floorAlone() const { return leastAlone; }
  llvm::StringRef nameOf(int32_t op) const { return graph.graph.ops[op].name; }
  mlir::Operation *operationOf(int32_t op) const { return graph.operation(op); }
  int64_t residentBytes() const;
  /// The time of all operators.
  int64_t workNs() const;

  /// The rewrite that takes least time of those within \p bytes.
  std::optional<FitProposal> within(int64_t bytes) const;

  /// Rewrites within ever fewer bytes, from just below peakBytes() to
  /// floorOfOrders(), those that take least time first. The same whatever \p
  /// most is: those that hold more are left out. \p goesOn: told how much of
  /// the search is done; false: it ends.
  std::vector<FitProposal>
  proposals(int64_t most,
            llvm::function_ref<bool(size_t done, size_t total)> goesOn) const;

  /// The module with its step rewritten.
  mlir::OwningOpRef<mlir::ModuleOp> rewrite(const FitProposal &proposal) const;
  /// The same, placed on the one device of \p machine that computes, in its own
  /// order. Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp>
  placeAlone(const FitProposal &proposal,
             const placement::Machine &machine) const;
  MemoryFit describe(const FitProposal &proposal) const;

private:
  MemoryFitter(mlir::ModuleOp module, StepGraph graph,
               const placement::Machine &target);

  mlir::ModuleOp module;
  StepGraph graph;
  placement::RecomputeOptions options;
  std::vector<placement::RepeatedOrder> lean; ///< nothing runs again
  std::optional<placement::ChainRewrites> chains;
  placement::MemoryFloor least, leastOfOrders, leastAlone;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_MEMORYFITTER_H
