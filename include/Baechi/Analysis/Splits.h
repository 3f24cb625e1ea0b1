//===- Splits.h - How an operation can be cut into pieces -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Legal splits of one operation on tensors. A dimension that is cut is one
/// *class* in all tensors that it runs through: cutting one operand or result
/// along it says how all others are cut, as Shardy's factors and CFP's groups
/// do (Shardy's sharding rules; arXiv 2504.00598, section 4).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_SPLITS_H
#define BAECHI_ANALYSIS_SPLITS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace baechi {

/// Where the cut extent lies within a tensor: dimension `dim` has `outer` times
/// the extent times `inner` elements, in this order. Both are 1 but where a
/// reshape has joined the extent with other dimensions.
struct CutPosition {
  unsigned dim = 0;
  int64_t outer = 1, inner = 1;

  bool operator==(const CutPosition &other) const = default;
};

/// What a loop reads of one dimension of an operand: for index `i` the `reach`
/// elements from `stride * i` on. The parts that pieces read overlap (halo).
struct CutWindow {
  unsigned dim = 0;
  int64_t stride = 1, reach = 1;

  /// The elements that indices \p start to \p start + \p size read.
  int64_t first(int64_t start) const { return stride * start; }
  int64_t length(int64_t size) const { return stride * (size - 1) + reach; }
};

/// How one operation is cut into pieces that compute parts of its results.
struct OperationCut {
  enum class Kind {
    Parallel,  ///< A piece computes its part of every result.
    Reduction, ///< A piece computes a partial result; a combiner joins them.
    Partial,   ///< A piece computes a partial result from a partial operand.
  };
  Kind kind = Kind::Parallel;
  /// Elements that are cut.
  int64_t extent = 0;
  /// The loop of a structured operation.
  std::optional<unsigned> loop;
  /// Where operands and results are cut. Pieces read operands without a
  /// position as a whole; results without one are partial.
  llvm::SmallVector<std::optional<CutPosition>> operands, results;
  /// Operands that have no position, but of which a piece reads what its
  /// windows reach.
  llvm::SmallVector<std::pair<unsigned, CutWindow>, 1> windows;
  /// Of a kind Partial: the operands that pieces read one partial result of.
  llvm::SmallVector<unsigned> partialOperands;
  /// Tensors that the regions read in pieces only, from outside.
  llvm::MapVector<mlir::Value, CutPosition> captures;
  /// Of partial results, each: the operation of a body that joins them. All are
  /// associative and commutative.
  llvm::SmallVector<mlir::Operation *> combiners;

  /// The window that operand \p number is read in; null where it is not.
  const CutWindow *windowOf(unsigned number) const {
    for (const auto &[operand, window] : windows)
      if (operand == number)
        return &window;
    return nullptr;
  }
};

/// The cut of \p op where \p use, an operand or a use by an operation within
/// its regions, is cut at \p position with \p extent elements. Nothing where
/// that is not legal; \p why then says what forbids it, as the end of a
/// sentence ("it reads windows along the dimension").
std::optional<OperationCut> cutAlongUse(mlir::Operation *op,
                                        mlir::OpOperand &use,
                                        CutPosition position, int64_t extent,
                                        std::string &why);

/// The same where a result is cut.
std::optional<OperationCut> cutAlongResult(mlir::OpResult result,
                                           CutPosition position, int64_t extent,
                                           std::string &why);

/// The same where a loop of a structured operation (linalg) is cut into parts
/// of its whole range; nothing where that is not legal, or for other
/// operations.
std::optional<OperationCut> cutAlongLoop(mlir::Operation *op, unsigned loop);

/// Sizes of \p pieces of \p extent; the first ones take what is left over.
llvm::SmallVector<int64_t> evenPieces(int64_t extent, int64_t pieces);

/// What reduces a result of \p op, if that is one operation whose terms may be
/// joined in any order, but for rounding; else null.
mlir::Operation *associativeCombinerOf(mlir::linalg::LinalgOp op,
                                       unsigned result);

} // namespace baechi

#endif // BAECHI_ANALYSIS_SPLITS_H
