//===- Pieces.h - Pieces of values and operations ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H

#include "SplitPlan.h"
#include "mlir/IR/Builders.h"

namespace baechi::split {

/// The pieces of a step's values, and the wholes of those that are made in
/// pieces. What is asked for the first time is made where the builder stands;
/// later askers stand behind.
class PieceTable {
public:
  explicit PieceTable(mlir::OpBuilder &builder) : builder(builder) {}

  /// The pieces of \p value, slices of it where it is not made so.
  llvm::SmallVector<mlir::Value> pieces(mlir::Value value,
                                        llvm::ArrayRef<int64_t> sizes,
                                        CutPosition position);

  /// \p value itself, or its pieces put together.
  mlir::Value whole(mlir::Value value);

  /// \p value, a result of an operation that goes, is made in pieces.
  void setPieces(mlir::Value value, llvm::ArrayRef<int64_t> sizes,
                 CutPosition position, llvm::ArrayRef<mlir::Value> pieces);
  /// It is now \p whole.
  void setWhole(mlir::Value value, mlir::Value whole) { wholes[value] = whole; }

private:
  struct Held {
    llvm::SmallVector<int64_t> sizes;
    CutPosition position;
    llvm::SmallVector<mlir::Value> pieces;
  };

  mlir::OpBuilder &builder;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Held, 1>> held;
  llvm::DenseMap<mlir::Value, mlir::Value> wholes;
};

/// Makes the pieces of \p op where the builder stands and enters its results.
/// Partial results are moved before they are joined: a transposition or reshape
/// that alone reads such a result, and is not cut, is done for each (a product
/// writes its result transposed for nothing, a sum does not).
/// \return these operations, which go, too.
llvm::SmallVector<mlir::Operation *>
makePieces(mlir::OpBuilder &builder, mlir::Operation *op,
           const OperationCut &cut, llvm::ArrayRef<int64_t> sizes,
           const SplitPlan &plan, PieceTable &table);

/// The type of one piece of a tensor.
mlir::RankedTensorType pieceType(mlir::Type whole, CutPosition position,
                                 int64_t size);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H
