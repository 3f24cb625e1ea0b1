//===- SumMessages.h - Which sums pieces exchange together ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_SUMMESSAGES_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_SUMMESSAGES_H

#include "LinearSums.h"
#include "Moments.h"
#include "Pieces.h"

namespace baechi::split {

/// Small sums over pieces, by how many exchanges come before each: those of one
/// depth and of the same tensors travel together, as both sums of the gradient
/// of a normalisation do. A sum of squares (Moments.h) and a linear sum
/// (LinearSums.h) wait for no other.
class SumMessages {
public:
  /// \p plan says what pieces make partial results of. \p moments, by their
  /// sum, are merged. \p linear: linear sums are taken apart. \p branches:
  /// those of one depth travel together whatever they are the sums of.
  SumMessages(mlir::Block &block, int64_t mostBytes, const SplitPlan &plan,
              const llvm::DenseMap<mlir::Operation *, Moments> &moments,
              bool linear, bool branches);

  /// \p op as it is taken apart, if it is.
  const LinearSum *linearSum(mlir::Operation *op) const {
    auto found = linear.find(op);
    return found == linear.end() ? nullptr : &found->second;
  }
  /// \p op was to be done with the partial results of such a sum.
  bool followsLinearSum(mlir::Operation *op) const {
    return followers.contains(op);
  }
  /// The first sum that \p sum is sent with; it may be that itself.
  mlir::Operation *firstOf(mlir::Operation *sum) const {
    while (mlir::Operation *next = sentWith.lookup(sum))
      sum = next;
    return sum;
  }

private:
  void visit(mlir::Operation *op);
  bool isSum(mlir::Operation *op) const;
  std::optional<LinearSum> takenApart(mlir::Operation *op, unsigned depth);
  unsigned depthOf(mlir::Value value) const {
    return depths.lookup(value.getDefiningOp());
  }
  void addToGroup(mlir::Operation *sum, mlir::Value input, unsigned depth);

  int64_t mostBytes;
  const SplitPlan &plan;
  bool takesApart, joinsBranches;
  /// By operation: the exchanges that its results wait for.
  llvm::DenseMap<mlir::Operation *, unsigned> depths;
  /// Of the squares of moments, their sum.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> sumOf;
  llvm::DenseMap<mlir::Operation *, LinearSum> linear;
  llvm::DenseSet<mlir::Operation *> followers;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> sentWith;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Operation *> firstUse;
};

/// The sum whose partial results \p op of \p cut is done with; \p op itself
/// where it is one.
mlir::Operation *sumBehind(mlir::Operation *op, const Cut &cut);

/// Puts what pieces send in \p table's exchanges that \p messages has together
/// into one tensor a piece. Each sum is made of the same additions as without.
void joinMessages(const PieceTable &table, const SplitPlan &plan,
                  const SumMessages &messages);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_SUMMESSAGES_H
