//===- Gemm.h - Kernels as strided products of matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_HOSTKERNELS_GEMM_H
#define BAECHI_LIB_CONVERSION_HOSTKERNELS_GEMM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace baechi {

/// A kernel as loops around row-major products C += A * B in single precision.
struct GemmPlan {
  /// A loop around the products: how far it moves in each matrix, in elements.
  struct Loop {
    int64_t size = 1, a = 0, b = 0, c = 0;
  };
  /// What the result starts from.
  enum class Start { Value, Argument };

  /// The kernel's arguments that hold A and B, and where they start in them.
  unsigned argumentA = 0, argumentB = 0;
  int64_t offsetA = 0, offsetB = 0;
  bool transposeA = false, transposeB = false;
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 1, ldb = 1, ldc = 1;
  /// Loops over disjoint parts of the result, and loops that add to one part.
  llvm::SmallVector<Loop> outer, sums;

  Start start = Start::Value;
  float startValue = 0;
  unsigned startArgument = 0;
  int64_t startOffset = 0;
};

/// The plan for a kernel that is one contraction of views of its arguments, in
/// single precision; nothing for other kernels, and where no choice of loops
/// gives matrices with a contiguous dimension.
std::optional<GemmPlan> planGemm(mlir::func::FuncOp kernel);

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that executes `plan` by calls of cblas_sgemm.
mlir::func::FuncOp emitGemm(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                            const GemmPlan &plan);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_HOSTKERNELS_GEMM_H
