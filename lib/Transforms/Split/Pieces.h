//===- Pieces.h - Pieces of values and operations ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H

#include "Baechi/Analysis/NamedAfter.h"
#include "SplitPlan.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace baechi::split {

/// The pieces of a step's values, and the wholes of those that are made in
/// pieces. What is asked for the first time is made where the builder stands;
/// later askers stand behind.
class PieceTable {
public:
  /// One way in which a value is there in pieces.
  struct Layout {
    llvm::SmallVector<int64_t> sizes;
    CutPosition position;
    llvm::SmallVector<mlir::Value> pieces;
    /// The value is made so; else the pieces are slices of it.
    bool isMade = false;

    bool isLike(const Layout &other) const {
      return sizes == other.sizes && position == other.position;
    }
  };

  /// Sums of up to \p repeatedBytes that pieces read, and what is computed of
  /// them alone, are computed for each piece.
  explicit PieceTable(mlir::OpBuilder &builder, int64_t repeatedBytes = 0)
      : builder(builder), repeatedBytes(repeatedBytes) {}

  /// The pieces of \p value; where it is not made so slices of it; where that
  /// takes no tensor, computed as it is; of partial results, joined.
  llvm::SmallVector<mlir::Value> pieces(mlir::Value value,
                                        llvm::ArrayRef<int64_t> sizes,
                                        CutPosition position);

  /// Elements of a dimension.
  struct Range {
    int64_t start, size;
    bool operator==(const Range &other) const = default;
  };
  /// Parts of \p value along dimension \p dim, which may overlap.
  llvm::SmallVector<mlir::Value> parts(mlir::Value value, unsigned dim,
                                       llvm::ArrayRef<Range> ranges);
  /// Nothing but parts of \p pad are asked for: each is padded by itself.
  void setPadded(mlir::tensor::PadOp pad) { padded.insert(pad.getResult()); }

  /// \p value itself, or its pieces put together.
  mlir::Value whole(mlir::Value value);

  /// The same for each of \p count pieces: one of its own, or one for all.
  llvm::SmallVector<mlir::Value> wholeForEach(mlir::Value value, size_t count);
  /// \p op, which is not cut, reads wholes.
  void setKept(mlir::Operation *op) { kept.insert(op); }

  /// \p value, a result of an operation that goes, is made in pieces.
  void setPieces(mlir::Value value, llvm::ArrayRef<int64_t> sizes,
                 CutPosition position, llvm::ArrayRef<mlir::Value> pieces);

  /// The partial results of \p value; none where it is not made so.
  llvm::ArrayRef<mlir::Value> partials(mlir::Value value) const;
  /// \p value is made in \p partials, which \p combiner joins; \p chained: in
  /// their order.
  void setPartials(mlir::Value value, llvm::ArrayRef<mlir::Value> partials,
                   mlir::Operation *combiner, bool chained);
  /// The \p sums of the partial results of \p value, a small one, for each
  /// piece.
  void setSums(mlir::Value value, llvm::ArrayRef<mlir::Value> sums) {
    repeated[value].assign(sums.begin(), sums.end());
  }
  /// All that reads \p value reads it in the same pieces.
  void setJoinedInPieces(mlir::Value value) { joinedInPieces.insert(value); }
  /// \p value is \p whole, as pieces that follow each other made it.
  void setWhole(mlir::Value value, mlir::Value whole) { wholes[value] = whole; }

  /// All pieces of \p value that were asked for, or that it is made in.
  llvm::ArrayRef<Layout> layouts(mlir::Value value) const;
  /// The pieces that \p value is made in; null where it is not made so.
  const Layout *madeIn(mlir::Value value) const;
  /// Whether somebody has asked for the whole of what is made in pieces.
  bool isPutTogether(mlir::Value value) const {
    return wholes.lookup(value) != nullptr;
  }

private:
  bool isSmallSum(mlir::Value value) const;
  bool isRepeated(mlir::Value value, unsigned depth = 0) const;
  llvm::SmallVector<mlir::Value> joinPieces(mlir::Value value,
                                            llvm::ArrayRef<int64_t> sizes,
                                            CutPosition position);
  const llvm::SmallVector<mlir::Value> &repeatSum(mlir::Value value);
  llvm::SmallVector<mlir::Value> repeat(mlir::Value value, size_t count);
  mlir::Value part(mlir::Value value, unsigned dim, Range range);
  mlir::Value padPart(mlir::tensor::PadOp pad, unsigned dim, Range range);
  mlir::Value joinPart(mlir::Value value, const Layout &made, Range range);

  struct Parts {
    unsigned dim;
    llvm::SmallVector<Range> ranges;
    llvm::SmallVector<mlir::Value> values;
  };
  struct Partials {
    llvm::SmallVector<mlir::Value> values;
    mlir::Operation *combiner;
    bool chained;
  };
  mlir::OpBuilder &builder;
  int64_t repeatedBytes;
  size_t turn = 0;
  /// What is computed for each piece, and of a sum that others read, too, what
  /// it is the sum of.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> repeated;
  llvm::DenseMap<mlir::Value, mlir::Value> sumOf;
  llvm::DenseSet<mlir::Operation *> kept;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Layout, 1>> held;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Parts, 1>> read;
  llvm::DenseSet<mlir::Value> padded;
  llvm::DenseMap<mlir::Value, Partials> partial;
  llvm::DenseSet<mlir::Value> joinedInPieces;
  llvm::DenseMap<mlir::Value, mlir::Value> wholes;
};

/// Makes the pieces of \p op, which \p cut has, where the builder stands and
/// enters its results.
void makePieces(mlir::OpBuilder &builder, mlir::Operation *op, const Cut &cut,
                PieceTable &table);

/// Pieces of \p value beside itself, where the builder stands: its operation,
/// once for each. Nothing where it cannot be cut so.
llvm::SmallVector<mlir::Value> computePieces(mlir::OpBuilder &builder,
                                             mlir::OpResult value,
                                             llvm::ArrayRef<int64_t> sizes,
                                             CutPosition position,
                                             PieceTable &table);

/// A tensor that changes nothing in what \p combiner joins it with.
mlir::Value neutralTensor(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Type type, mlir::Operation *combiner);

/// Joins neighbours in pairs, then the pairs: one order for any number of
/// devices.
mlir::Value joinInPairs(mlir::OpBuilder &builder, mlir::Location loc,
                        llvm::ArrayRef<mlir::Value> partials,
                        mlir::Operation *combiner);

/// The same sum for each of the partial results, where that one is: at every
/// level each exchanges its own with one other (recursive doubling; Thakur,
/// Rabenseifner, Gropp 2005). Of a number that is no power of two each joins
/// all. The order of additions is that of joinInPairs.
llvm::SmallVector<mlir::Value>
joinForEach(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
            llvm::ArrayRef<mlir::Value> partials, mlir::Operation *combiner);

/// Joins each with what those before it make: only that and one more are alive
/// where each is made when its turn comes.
mlir::Value joinInOrder(mlir::OpBuilder &builder, mlir::Location loc,
                        llvm::ArrayRef<mlir::Value> partials,
                        mlir::Operation *combiner);

/// \p pieces put together, in the place of \p value.
mlir::Value assemble(mlir::OpBuilder &builder, mlir::Value value,
                     llvm::ArrayRef<mlir::Value> pieces,
                     llvm::ArrayRef<int64_t> sizes, CutPosition position);

/// The type of one piece of a tensor.
mlir::RankedTensorType pieceType(mlir::Type whole, CutPosition position,
                                 int64_t size);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_PIECES_H
