//===- Convolution.h - Kernels that cuDNN may compute -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTION_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTION_H

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Common/StridedProduct.h"
#include "LaunchCode.h"

namespace baechi {

/// A convolution, or the gradient of one's filters, that cuDNN can be asked
/// for.
struct LibraryConvolution {
  /// With the filters as the library takes them: with channels innermost where
  /// the images have them so, else with the window innermost.
  baechi_cuda_convolution description{};
  /// The images, and the filters or the results' gradient: in which arguments
  /// and where there, in elements.
  ProductFactors operands;
  mlir::Type type;
  /// How far apart the filters' elements lie in the program, where that is not
  /// how the library takes them: they are moved by a launch of their own,
  /// before the call or, with `of_filters`, after it.
  std::optional<std::array<int64_t, 2 + BAECHI_CUDA_MOST_SPACES>> movedFrom;

  /// Of the filters as the library takes them.
  int64_t filterElements() const;
};

/// Nothing for other kernels. A kernel that is a matrix product, too, is one:
/// ask for that first.
std::optional<LibraryConvolution> matchConvolution(mlir::func::FuncOp kernel);

/// How a convolution may be computed unless the kernel says it.
CudaConvolutionAttr defaultHow(const LibraryConvolution &convolution,
                               const CudaProductOptions &options,
                               mlir::MLIRContext *context);

/// What the kernel's code asks for as `how` says.
baechi_cuda_convolution describe(const LibraryConvolution &convolution,
                                 CudaConvolutionAttr how);

/// The convolution that `kernel` asks cuDNN for, as its attribute says; nothing
/// where generated code computes it.
std::optional<LibraryConvolution>
matchLibraryConvolution(mlir::func::FuncOp kernel);

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that calls baechi_cuda_convolve. The scratch is its workspace and, behind
/// it, the filters that are moved.
void callConvolution(mlir::OpBuilder &builder, mlir::func::FuncOp kernel,
                     const LibraryConvolution &convolution, Executor executor);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_CONVOLUTION_H
