//===- Gemm.h - Kernels as strided products of matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_GEMM_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_GEMM_H

#include "Common/StridedProduct.h"

namespace baechi {

/// A kernel as loops around row-major products C += A * B.
struct GemmPlan {
  ProductOperands operands;
  /// Of A and B, and of C.
  mlir::Type factorType, resultType;
  bool transposeA = false, transposeB = false;
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 1, ldb = 1, ldc = 1;
  /// Loops over disjoint parts of the result, and loops that add to one part.
  ProductLoops outer, sums;
};

/// The plan for a kernel that is one contraction of views of its arguments;
/// nothing for other kernels, and where no choice of loops gives matrices with
/// a contiguous dimension.
std::optional<GemmPlan> planGemm(mlir::func::FuncOp kernel,
                                 ProductTypes types = ProductTypes::Single);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_GEMM_H
