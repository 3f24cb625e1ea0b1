//===- ExactSums.h - Sums in one order, whatever computes them --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What --baechi-fix-sums says of a step's sums and the lowering of kernels
/// does. It is said by fast-math flags of the operation that adds, as bodies
/// keep those however operations are fused, cut and renamed:
///
/// - `contract` on a sum and the product that it adds: one fused multiply-add
///   after the other, in the order of the reduction's loops;
/// - `reassoc` on a sum: in `kSumLanes` partial sums over the innermost
///   reduction loop, lane i of the iterations i, i + kSumLanes, ..., which are
///   then added in pairs;
/// - no flag: one after the other.
///
/// Long sums of the last two kinds run so in blocks of their reduction loops
/// (Conversion/Kernels/Common/BlockSums.h).
///
/// None of these depends on the extents of parallel dimensions, so an element
/// has the same bits in a whole and in any piece of it.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_EXACTSUMS_H
#define BAECHI_ANALYSIS_EXACTSUMS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// The implementation of kernels, and of steps before kernels are formed, that
/// keeps to the order of sums.
inline constexpr llvm::StringLiteral kExact = "exact";
inline constexpr int64_t kSumLanes = 16;

/// Whether \p function asks for that implementation.
bool isExact(mlir::func::FuncOp function);

/// Takes the flags off all arithmetic below \p root, so that it is computed as
/// it is written.
void clearFastMath(mlir::Operation *root);

/// The sum and the product of a reduction's body that are one fused
/// multiply-add; null where \p sum is none.
mlir::arith::MulFOp fusedProductOf(mlir::arith::AddFOp sum);
void markFusedProduct(mlir::arith::AddFOp sum, mlir::arith::MulFOp product);

/// The sum of \p op that is computed in lanes; null where there is none.
mlir::arith::AddFOp laneSumOf(mlir::linalg::GenericOp op);
void markLaneSum(mlir::arith::AddFOp sum);

/// The innermost reduction loop.
std::optional<unsigned> lastReductionLoop(mlir::linalg::LinalgOp op);

/// \p order, an order of the loops of \p op, with its reductions in the order
/// that they have in \p op.
void keepReductionOrder(mlir::linalg::LinalgOp op,
                        llvm::SmallVectorImpl<unsigned> &order);

} // namespace baechi

#endif // BAECHI_ANALYSIS_EXACTSUMS_H
