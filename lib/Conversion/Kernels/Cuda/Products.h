//===- Products.h - Kernels that are products -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_PRODUCTS_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_PRODUCTS_H

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Common/Gemm.h"
#include "LaunchCode.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

/// A kernel whose GPU code calls baechi_cuda_multiply.
struct LibraryProduct {
  GemmPlan plan;
  /// The loop that the calls do themselves, and those around them.
  ProductLoop batch;
  ProductLoops others;
  /// The argument that is added to each row, if one is.
  std::optional<unsigned> bias;
  /// As the kernel's `baechi.cuda_product` says, or by default.
  CudaProductAttr how;
};

/// A kernel that adds a vector to each row of another kernel's result.
struct BiasedKernel {
  /// What the vector is added to.
  mlir::OwningOpRef<mlir::func::FuncOp> kernel;
  /// Where the vector is among the arguments of both; its elements are those
  /// of the result's last dimensions.
  unsigned argument = 0;
  int64_t elements = 0;
};
std::optional<BiasedKernel> splitBias(mlir::func::FuncOp kernel);

/// Calls of a product and of a kernel that only adds a bias to it become calls
/// of one kernel, where the library computes that.
void joinBiases(mlir::ModuleOp module);

/// Calls of small elementwise kernels that make what the step returns become
/// calls of one kernel for several of them (`baechi.cuda_together`).
void joinUpdates(mlir::ModuleOp module);

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

/// createPointerKernel() of a product or a convolution, which says how many
/// bytes lie behind each pointer: launches in it tell what they touch.
mlir::func::FuncOp createProductFunction(mlir::OpBuilder &builder,
                                         mlir::func::FuncOp kernel,
                                         int64_t scratchBytes);

/// Writes a launch that makes the result hold what it starts from, unless that
/// is zero or what lies there.
void launchStart(mlir::OpBuilder &builder, mlir::func::FuncOp function,
                 const ProductOperands &operands, mlir::Value result,
                 mlir::RankedTensorType resultType, Executor executor);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_PRODUCTS_H
