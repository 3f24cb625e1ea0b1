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
#include "Baechi/Conversion/CudaKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "LaunchCode.h"

namespace baechi {

/// A kernel whose GPU code calls baechi_cuda_multiply.
struct LibraryProduct {
  GemmPlan plan;
  /// The loop that the calls do themselves, and those around them.
  ProductLoop batch;
  ProductLoops others;
  /// As the kernel's `baechi.cuda_product` says, or by default.
  CudaProductAttr how;
};

/// Nothing for other kernels, and where that would take many calls.
std::optional<LibraryProduct> matchLibraryProduct(mlir::func::FuncOp kernel);

/// How `plan` is computed unless the kernel says it: the library's workspace is
/// as large as the operands at most.
CudaProductAttr defaultHow(const GemmPlan &plan, int64_t batch,
                           const CudaProductOptions &options,
                           mlir::MLIRContext *context);

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that calls baechi_cuda_multiply. The scratch is its workspace.
void callProduct(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                 const LibraryProduct &product, Executor executor);

/// The same with launches of tiles, for any product in single precision.
void launchProduct(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                   const StridedProduct &product, Executor executor);

/// Writes a launch that makes the result hold what it starts from, unless that
/// is zero or what lies there.
void launchStart(mlir::OpBuilder &builder, mlir::func::FuncOp function,
                 const ProductOperands &operands, mlir::Value result,
                 mlir::RankedTensorType resultType, Executor executor);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_CUDAKERNELS_PRODUCTS_H
