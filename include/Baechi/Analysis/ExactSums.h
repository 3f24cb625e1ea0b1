//===- ExactSums.h - Sums in one order, whatever computes them --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The order in which sums are added up, on hosts. It is said by fast-math
/// flags of the operation that adds, as bodies keep those however operations
/// are fused, cut and renamed:
///
/// - `contract` on a sum and the product that it adds: one fused multiply-add
///   after the other, in the order of the reduction's loops;
/// - `reassoc` on a sum: in `kSumLanes` partial sums over the innermost
///   reduction loop, lane i of the iterations i, i + kSumLanes, ..., which are
///   then added in pairs, and what they come to is added to all before it;
/// - no flag: one after the other.
///
/// Long sums run so in blocks of their reduction loops
/// (Conversion/Kernels/Common/BlockSums.h).
///
/// None of these depends on the extents of parallel dimensions, so an element
/// has the same bits in a whole and in any piece of it. --baechi-fix-sums says
/// it of a whole step before anything is cut; else the lowering of kernels says
/// it of each operation, as it has been formed by then.
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
/// Fewer terms are as soon added one after the other, in all and of the
/// innermost loop.
inline constexpr int64_t kFewestLaneTerms = kSumLanes / 2,
                         kFewestTogether = kSumLanes / 4;
/// Sums of no more terms stay as they are, those of products in register tiles,
/// too: one after the other they have the bits of the same terms in pieces
/// (docs/memory.md, "Cut into pieces").
inline constexpr int64_t kShortSum = 32768;
/// Products within kernels are register tiles from so many rows and columns on.
inline constexpr int64_t kFewestTiledRows = 4;

/// Whether \p function asks for that implementation.
bool isExact(mlir::func::FuncOp function);

/// Takes the flags off all arithmetic below \p root, so that it is computed as
/// it is written.
void clearFastMath(mlir::Operation *root);

/// The sum and the product of a reduction's body that are one fused
/// multiply-add; null where \p sum is none.
mlir::arith::MulFOp fusedProductOf(mlir::arith::AddFOp sum);
void markFusedProduct(mlir::arith::AddFOp sum, mlir::arith::MulFOp product);
/// Whether the sum that \p op makes asks for fused multiply-adds.
bool addsFused(mlir::linalg::GenericOp op);
/// Whether a sum of \p op was marked as a product's: one chain of additions,
/// also where it is no product any more, as one with a constant, or where the
/// multiplication is gone, as one by 1.
bool isOneChain(mlir::linalg::GenericOp op);

/// What adds up each result of \p op, where all that are sums are computed in
/// lanes; null for what the innermost reduction loop writes element by element.
/// Empty where no sum is computed so.
llvm::SmallVector<mlir::arith::AddFOp> laneSumsOf(mlir::linalg::GenericOp op);

/// How the sums of an operation are added up, as said above.
enum class SumKind { Fused, InLanes, InTurn };
/// That of the sums of \p op, whatever flags it has; nullopt where it has
/// none.
std::optional<SumKind> sumKindOf(mlir::linalg::GenericOp op);
/// Says so by flags of \p op, which has none yet.
void markSums(mlir::linalg::GenericOp op);

/// Whether \p op is a product of which no tiles are made within a kernel, and
/// whose terms lie together in both factors: it is as soon added up in lanes.
bool isLoopOfDots(mlir::linalg::GenericOp op);
void markLoopOfDots(mlir::linalg::GenericOp op);

/// How many terms each of its sums has.
int64_t termsOf(mlir::linalg::LinalgOp op);

/// The innermost reduction loop.
std::optional<unsigned> lastReductionLoop(mlir::linalg::LinalgOp op);

/// \p order, an order of the loops of \p op, with its reductions in the order
/// that they have in \p op.
void keepReductionOrder(mlir::linalg::LinalgOp op,
                        llvm::SmallVectorImpl<unsigned> &order);

} // namespace baechi

#endif // BAECHI_ANALYSIS_EXACTSUMS_H
