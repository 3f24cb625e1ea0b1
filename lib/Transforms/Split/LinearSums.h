//===- LinearSums.h - Sums that need not wait for others --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_LINEARSUMS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_LINEARSUMS_H

#include "SplitPlan.h"

namespace baechi::split {

class PieceTable;

/// The sum of a(x) + f b(x) + ..., where each factor f is the same in all that
/// are summed up with each other, and waits for another sum over the pieces:
/// the gradient of a mean, whose terms hold that of the variance. As the sum of
/// a, and f times that of b, it waits for nothing: pieces exchange both with
/// what f waits for.
struct LinearSum {
  mlir::Operation *sum;
  llvm::SmallVector<mlir::Value> factors; ///< of the sum's type
  llvm::SetVector<mlir::Value> terms;     ///< tensors that a and b read
  bool hasRest;                           ///< there is an a
};

/// What ends in \p sum, if it is such a sum; \p waits says of a tensor whether
/// it waits for the last sum that \p sum waits for.
std::optional<LinearSum>
linearSumOf(mlir::Operation *sum, llvm::function_ref<bool(mlir::Value)> waits);

/// The sums of a and of each b for each piece, and of them \p linear's, where
/// the builder stands.
void makeLinearSum(mlir::OpBuilder &builder, const LinearSum &linear,
                   const Cut &cut, PieceTable &table);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_LINEARSUMS_H
