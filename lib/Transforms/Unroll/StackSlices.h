//===- StackSlices.h - Slices of stacks at known places ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_UNROLL_STACKSLICES_H
#define BAECHI_LIB_TRANSFORMS_UNROLL_STACKSLICES_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace baechi::unroll {

/// Whether the place of \p slice is known and it is in one piece along each
/// dimension.
bool isAtKnownPlace(mlir::OffsetSizeAndStrideOpInterface slice);

/// What was written where \p read reads; null: that is no one tensor, and
/// \p read reads what was there before where that is another than its operand.
mlir::Value writtenBefore(mlir::tensor::ExtractSliceOp read);

} // namespace baechi::unroll

#endif // BAECHI_LIB_TRANSFORMS_UNROLL_STACKSLICES_H
