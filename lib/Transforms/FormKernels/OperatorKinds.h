//===- OperatorKinds.h - Which operations become kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORKINDS_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORKINDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi::formkernels {

enum class OperatorKind {
  /// Becomes (part of) a kernel.
  Operator,
  /// Costs next to nothing and is cloned into each kernel that uses it: views,
  /// small constants, fills, scalar arithmetic. Scalars thus never cross
  /// kernels.
  Cloned,
  /// Stays in the step: a large constant.
  Kept,
};

OperatorKind kindOf(mlir::Operation *op);

inline bool isOperator(mlir::Operation *op) {
  return kindOf(op) == OperatorKind::Operator;
}
inline bool isCloned(mlir::Operation *op) {
  return kindOf(op) == OperatorKind::Cloned;
}

/// The declared function that a call asks the host program for; null when \p op
/// is no such call.
mlir::func::FuncOp hostCallOf(mlir::Operation *op);

/// Whether nothing may run out of order with it: it is an ordered host call.
bool isOrdered(mlir::Operation *op);

/// extract_slice, expand_shape, collapse_shape.
bool isView(mlir::Operation *op);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_OPERATORKINDS_H
