//===- SumForms.h - What is summed up, by its form --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_SUMFORMS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_SUMFORMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi::split {

/// One operation on elements that lie at the same place.
struct ElementOf {
  mlir::Operation *op; ///< on tensors, or on the scalars of a body
  /// Tensors; those of a body may be scalars from outside.
  llvm::SmallVector<mlir::Value, 3> operands;
};
std::optional<ElementOf> elementOf(mlir::Value value);

/// Follows \p value back through what repeats and reshapes it, and \p where,
/// where its elements are read, with it.
mlir::Value repeatedSource(mlir::Value value, mlir::AffineMap &where);

/// What all elements of \p value are, if that is known.
std::optional<double> constantOf(mlir::Value value);

/// A sum of one tensor from zero on: no product, and no other combiner.
mlir::linalg::LinalgOp sumFromZero(mlir::Operation *op);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_SUMFORMS_H
