//===- Spmd.h - A plan for devices that all run one program -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_SPMD_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_SPMD_H

#include "SplitPlan.h"

namespace baechi::split {

/// What each device has of a tensor.
struct Share {
  enum class Kind {
    Whole,
    Part,   ///< its piece along a dimension
    Partial ///< a summand, or whatever a combiner joins
  };
  Kind kind = Kind::Whole;
  CutPosition position; ///< of a part

  bool operator==(const Share &) const = default;
};

/// What devices must tell each other where a tensor is made in one way and read
/// in another.
struct Collective {
  llvm::StringRef kind;
  mlir::Value value;
};

/// A plan where piece i of everything is device i's, and what is not cut is
/// computed by every device.
class SpmdPlan {
public:
  SpmdPlan(mlir::func::FuncOp step, const SplitPlan &plan);

  /// What is there once \p value is computed, or given.
  Share shareOf(mlir::Value value) const { return shares.lookup(value); }
  /// Results as they are returned. What takes an argument's place is shared as
  /// that.
  Share resultShare(unsigned number) const { return results[number]; }
  /// Computed without arguments: every device has what it wants of it.
  bool isFree(mlir::Value value) const { return !dependent.contains(value); }
  /// A partial result that adding joins.
  bool isSum(mlir::Value value) const { return sums.contains(value); }
  /// In the order of what makes the tensors.
  llvm::ArrayRef<Collective> collectives() const { return messages; }

private:
  void shareArguments();
  void shareResults();
  void shareReturned();
  void findCollectives();
  void read(mlir::Value value, const Share &wanted,
            llvm::SmallVectorImpl<Share> &seen);
  Share wantedBy(mlir::OpOperand &use) const;

  mlir::func::FuncOp step;
  mlir::Block *body;
  const SplitPlan &plan;
  llvm::DenseMap<mlir::Value, Share> shares;
  llvm::DenseSet<mlir::Value> dependent, sums;
  llvm::SmallVector<Share> results;
  llvm::SmallVector<Collective> messages;
};

/// Emits an error unless every cut is in \p devices equal pieces.
llvm::LogicalResult checkEven(const SplitPlan &plan, int64_t devices);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_SPMD_H
