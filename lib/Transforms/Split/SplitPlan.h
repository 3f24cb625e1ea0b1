//===- SplitPlan.h - Which operations are cut, and how ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_SPLITPLAN_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_SPLITPLAN_H

#include "Baechi/Analysis/Splits.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include <vector>

namespace baechi::split {

/// An operation that stays whole although a tensor that it reads or makes is
/// cut.
struct Whole {
  mlir::Operation *op;
  std::string why;
};

/// What a class is estimated to save and to cost by itself, in nanoseconds.
struct Worth {
  double savedNs = 0;  ///< where its pieces run at once
  double copiedNs = 0; ///< packed, copied and summed up for it
  double sentNs = 0;   ///< between devices that share no memory
  double gainNs() const { return savedNs - copiedNs - sentNs; }
};

/// One class of dimensions that is cut, and all that follows it.
struct Cut {
  /// Units a piece.
  llvm::SmallVector<int64_t> sizes;
  /// Elements a unit, where the cut begins.
  int64_t unit = 1;
  llvm::MapVector<mlir::Operation *, OperationCut> operations;
  llvm::MapVector<mlir::Value, CutPosition> values;
  std::vector<Whole> whole;
  /// Partial results follow each other: each piece starts from the one before.
  bool chained = false;
  /// It is no part of the batch that `PlanOptions::chained` cuts.
  bool isApart = false;
  /// Where pieces wait for each other (`chained`): whole results that pieces
  /// are made into, and that pieces read.
  llvm::SetVector<mlir::Operation *> meetings;
  /// Why it is cut; of a literal.
  llvm::StringRef why;
  /// Beside all other classes of its plan.
  Worth worth;

  int64_t extent() const;
  /// Elements a piece at \p position, in one of its outer parts.
  llvm::SmallVector<int64_t> sizesAt(CutPosition position) const;
  /// Whether \p value is cut, and not \p at: it meets itself in another
  /// dimension.
  bool isCutElsewhere(mlir::Value value, CutPosition at) const;
  /// Whether all that reads \p value is cut, and reads pieces of it.
  bool isReadInPieces(mlir::Value value) const;
  /// Whether only what adds up partial results reads \p partial.
  bool staysPartial(mlir::Value partial) const;
};

/// No operation is cut twice.
struct SplitPlan {
  std::vector<Cut> cuts;
  llvm::DenseMap<mlir::Operation *, unsigned> cutOf;
  /// A person wants them whole.
  llvm::DenseSet<mlir::Operation *> kept;
  /// Means and variances are sent in one message (Moments.h).
  bool mergeMoments = false;
  /// All operations, as classes' worth is estimated.
  double totalNs = 0;
  /// The first class that was chosen is the one that saves the most, alone.
  bool isLargestFirst = true;

  /// Whether \p op pads what nothing but pieces of others read, in windows:
  /// each then pads its own part.
  bool isPaddedInParts(mlir::Operation *op) const;

  /// Whether \p value is made in partial results, which are joined for those
  /// that read it.
  bool isJoined(mlir::Value value) const;
  /// Whether they are joined piece by piece: all that reads it reads it so.
  bool isJoinedInPieces(mlir::Value value) const;

  /// No further cut may have it.
  bool isTaken(mlir::Operation *op) const {
    return cutOf.contains(op) || kept.contains(op);
  }
};

/// The step of \p module, where it is one block; an error where it is not.
mlir::FailureOr<mlir::func::FuncOp> findStepToCut(mlir::ModuleOp module);

/// The same where arguments and results become others: an error if something in
/// the module calls the step.
mlir::FailureOr<mlir::func::FuncOp> findStepToStore(mlir::ModuleOp module);

struct PlanOptions {
  /// Pieces of what is chosen; below 2, only what a person asks for is cut.
  unsigned pieces = 0;
  /// Reductions are cut, too: sums are rounded in another order.
  bool reductions = false;
  /// Whatever can be cut is, whether it saves time or not.
  bool forced = false;
  /// Arguments and results are stored in pieces where that is possible.
  bool stored = false;
  /// What saves the most is cut first, and no other plan is looked at.
  bool largestFirst = false;
  /// Of the time that pieces send each other something, what counts.
  double sentShare = 1;
  /// Means and variances are sent in one message (Moments.h).
  bool mergeMoments = false;
  /// 2 and more: what no class of `pieces` takes is cut in so many, and of the
  /// time that these send, what counts.
  unsigned restPieces = 0;
  double restSentShare = 1;
  /// What is chosen divides into equal pieces.
  bool even = false;
  /// Pieces follow each other (`Cut::chained`), and what is chosen is one
  /// extent: the batch, if the step has one.
  bool chained = false;
  /// Chained pieces were asked for, and have to be of a batch.
  bool needsBatch = false;
  /// What persons ask for is cut where no sum is, and beside the batch; of the
  /// batch's sums only those are whose terms are added one after the other.
  bool ordered = false;
  /// What is chosen is the batch, of replicas: one extent, of arguments that
  /// the step does not update.
  bool batch = false;
  /// Pieces of the batch are `parts` of it, not replicas: errors say so.
  bool inParts = false;
  /// A step without a batch is no error.
  bool batchIsOptional = false;
};

/// What is cut along one dimension of a value, and all that follows it; \p
/// taken is not cut again.
Cut followCut(mlir::Value value, CutPosition position,
              llvm::ArrayRef<int64_t> sizes, const PlanOptions &options,
              const SplitPlan &taken);

/// Whether all that is cut so far, but what is apart, has this extent: pieces
/// that follow each other are those of one batch.
bool isExtentOf(const SplitPlan &plan, int64_t extent);

/// First what persons ask for (`baechi.split`, which it takes off), then
/// classes as long as one saves time by the default roofline (chooseCuts).
/// Emits an error where a wish is not legal, or where
/// there is nothing for pieces that follow each other.
mlir::FailureOr<SplitPlan> planSplits(mlir::func::FuncOp step,
                                      const PlanOptions &options);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_SPLITPLAN_H
