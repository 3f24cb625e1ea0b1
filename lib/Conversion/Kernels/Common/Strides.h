//===- Strides.h - How operands move through memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDES_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// By how many elements \p operand, a buffer, moves along loop \p dim; 0 where
/// it does not, or is none.
int64_t strideAlong(mlir::linalg::LinalgOp op, mlir::OpOperand &operand,
                    unsigned dim);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_STRIDES_H
