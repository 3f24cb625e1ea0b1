//===- Products.h - Kernels that are products -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_CUDAKERNELS_PRODUCTS_H
#define BAECHI_LIB_CONVERSION_CUDAKERNELS_PRODUCTS_H

#include "../HostKernels/Gemm.h"
#include "LaunchCode.h"

namespace baechi {

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that calls baechi_cuda_sgemm; false, and nothing, where that would take many
/// calls.
bool callProduct(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                 const GemmPlan &plan, Executor executor);

/// The same with launches of tiles, for any product.
void launchProduct(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                   const StridedProduct &product, Executor executor);

/// Writes a launch that makes the result hold what it starts from, unless that
/// is zero or what lies there.
void launchStart(mlir::OpBuilder &builder, mlir::func::FuncOp function,
                 const ProductOperands &operands, mlir::Value result,
                 int64_t elements, Executor executor);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_CUDAKERNELS_PRODUCTS_H
