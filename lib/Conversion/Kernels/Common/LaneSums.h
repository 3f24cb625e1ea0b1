//===- LaneSums.h - Sums in one order, as loops -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_LANESUMS_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_LANESUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// Makes fused multiply-adds of the sums of \p kernel that ask for them, and
/// computes all else of it as it is written (Analysis/ExactSums.h).
void fixFloatingPoint(mlir::func::FuncOp kernel);

/// Lowers a reduction that is summed in lanes to loops.
void lowerLaneSum(mlir::RewriterBase &rewriter, mlir::linalg::GenericOp op);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_LANESUMS_H
