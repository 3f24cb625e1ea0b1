//===- Internal.h - Steps of lowering kernels to GPU code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_INTERNAL_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_INTERNAL_H

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Common/Lowering.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace baechi {

/// The programs and files of a CUDA Toolkit.
struct CudaToolkit {
  std::string ptxas, fatbinary;
  /// The folder that holds nvvm/libdevice; empty when there is none.
  std::string root;

  /// Looks in `folder`, or where CudaOptions::toolkit says. Fails with what is
  /// missing and how to mend it.
  static mlir::FailureOr<CudaToolkit> find(llvm::StringRef folder,
                                           mlir::Location location);
};

/// Says of a function with launches that they need 64-bit indices.
constexpr llvm::StringLiteral kWideIndices = "wide_indices";

/// Whether a kernel on tensors has, or computes with, indices that may not be
/// within 32 bits.
bool needsWideIndices(mlir::func::FuncOp kernel);

/// A launch on its way to code: `kernel` of the GPU module with these buffers
/// and pointers.
struct OutlinedLaunch {
  mlir::gpu::LaunchOp launch;
  std::string kernel;
  llvm::SmallVector<mlir::Value> operands;
  /// What it does with the memory behind each: the words of a
  /// baechi_cuda_access.
  llvm::SmallVector<int64_t> accesses;
  uint32_t blocks = 1, threads = 1;
};

/// Moves the code of all launches of `functions` into a new GPU module there.
/// The launches stay, empty.
mlir::gpu::GPUModuleOp
outlineLaunches(mlir::ModuleOp functions,
                llvm::SmallVectorImpl<OutlinedLaunch> &launches);

/// Replaces launches by calls of baechi_cuda_launch_accesses on `image`.
void callLaunches(mlir::ModuleOp functions,
                  llvm::ArrayRef<OutlinedLaunch> launches,
                  llvm::StringRef image);

/// Makes the buffers of `kernel` parts of a new last argument, the scratch,
/// whose size `baechi.kernel_scratch` says.
mlir::LogicalResult placeInScratch(mlir::func::FuncOp kernel);

/// Replaces powers whose exponents are constants by products, and narrows other
/// exponents to libdevice's 32 bits. Fails for those that may have more.
mlir::LogicalResult expandIntegerPowers(mlir::gpu::GPUModuleOp module);

/// Compiles a GPU module: a fat binary with code for each chip and PTX.
mlir::FailureOr<std::string> compileImage(mlir::gpu::GPUModuleOp module,
                                          const CudaOptions &options,
                                          const CudaToolkit &toolkit);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_INTERNAL_H
