//===- Contraction.h - Recognition of products of tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_CONTRACTION_H
#define BAECHI_ANALYSIS_CONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace baechi {

/// A tensor as a strided window on another one: element (i0, i1, ...) lies
/// `offset + i0 * strides[0] + i1 * strides[1] + ...` elements into `root`,
/// whose own layout is dense and row-major.
struct StridedView {
  mlir::Value root;
  int64_t offset = 0;
  llvm::SmallVector<int64_t> strides;
};

/// Follows `tensor` through extract_slice, expand_shape and collapse_shape to
/// the first value that is none of these. Nothing, when a view has dynamic
/// offsets or collapses dimensions that do not lie densely in each other.
std::optional<StridedView> traceView(mlir::Value tensor);

/// What a loop of a contraction runs over: the dimensions of both operands and
/// the result (batch), of the left operand and the result (M), of the right
/// operand and the result (N), of both operands but not the result (K).
enum class LoopClass { Batch, M, N, K };

/// A sum of products: result[...] += lhs[...] * rhs[...]. Matrix products in
/// every transposition, batched or not, and convolutions with their gradients:
/// there the maps are sums of loops, and a loop has the class of the operands
/// that it moves through.
struct Contraction {
  mlir::linalg::GenericOp op;
  /// The class of each loop of `op`.
  llvm::SmallVector<LoopClass> classes;

  mlir::OpOperand &lhs() const { return op->getOpOperand(0); }
  mlir::OpOperand &rhs() const { return op->getOpOperand(1); }
  /// The value that the products are added to.
  mlir::OpOperand &init() const { return op->getOpOperand(2); }
  /// The loops of one class, outermost first.
  llvm::SmallVector<unsigned> loops(LoopClass which) const;
  /// The iterations of all loops of one class together.
  int64_t size(LoopClass which) const;
};

/// Matches a linalg.generic that multiplies its two inputs (possibly extended
/// to a wider type first), adds to its init, and has loops of classes M, N and
/// K. A product with a vector has no M or no N and is no contraction: it is
/// bound by memory, and its operands may well be computed on the fly. On
/// buffers it is the same operation without a result.
std::optional<Contraction> matchContraction(mlir::Operation *op);

/// True when `op` starts from zero: its init is a fill with zero.
bool startsFromZero(const Contraction &contraction);

/// How an operand of a structured operation moves through memory: iteration
/// (i0, i1, ...) touches element `offset + i0 * strides[0] + ...` of `root`.
/// `strides` has an entry per loop. Nothing, when the operand is no strided
/// view or its map is not affine in the loops.
std::optional<StridedView> traceOperand(mlir::linalg::LinalgOp op,
                                        mlir::OpOperand &operand);

/// The same of an operand that is a buffer, as a window on that buffer: its
/// first element has offset 0. Nothing where the buffer's strides are unknown.
std::optional<StridedView> traceBuffer(mlir::linalg::LinalgOp op,
                                       mlir::OpOperand &operand);

} // namespace baechi

#endif // BAECHI_ANALYSIS_CONTRACTION_H
