//===- Moments.h - Mean and variance in one message -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_MOMENTS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_MOMENTS_H

#include "SplitPlan.h"
#include "mlir/IR/Builders.h"

namespace baechi::split {

class PieceTable;

/// What a mean and a variance are computed of: the sum of x, and the sum of the
/// squares of x less that mean. The second waits for the first; pieces would
/// send each other both, one after the other.
struct Moments {
  mlir::Operation *sum, *squares;
  mlir::Value data; ///< x
  int64_t terms;    ///< of each element of a sum
};

/// Those that end in \p squares, if it is such a sum.
std::optional<Moments> momentsOf(mlir::Operation *squares);

/// By their first sum, the moments of \p plan whose sums are in the same pieces
/// and of up to \p mostBytes each; none where it does not merge them.
llvm::DenseMap<mlir::Operation *, Moments> mergedMoments(const SplitPlan &plan,
                                                         int64_t mostBytes);

/// The partial results of both sums of \p moments, each piece's of its own mean
/// alone, and the sums for each piece, where the builder stands. A piece sends
/// both in one tensor, and pairs are merged as Chan, Golub and LeVeque merge
/// them ("Updating Formulae and a Pairwise Algorithm for Computing Sample
/// Variances", 1979), in the order of joinForEach.
void makeMoments(mlir::OpBuilder &builder, const Moments &moments,
                 const Cut &cut, PieceTable &table);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_MOMENTS_H
