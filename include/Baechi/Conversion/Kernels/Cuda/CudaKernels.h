//===- CudaKernels.h - Kernels to GPU code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_KERNELS_CUDA_CUDAKERNELS_H
#define BAECHI_CONVERSION_KERNELS_CUDA_CUDAKERNELS_H

#include "Baechi/Runtime/CudaAbi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// Grows with every change of the code that kernels become.
constexpr int kCudaCodeVersion = 9;

/// What the host function of kernel NAME is called, after NAME.
constexpr llvm::StringLiteral kCudaKernelSuffix = "__cuda";

struct CudaOptions {
  /// What the code must run on: compute capabilities that ptxas knows. The PTX
  /// of the first is embedded, too, for newer devices.
  std::vector<std::string> chips = {"sm_80", "sm_90", "sm_100"};
  /// The CUDA Toolkit's folder. Empty: CUDA_HOME, CUDA_PATH, CUDA_ROOT, the
  /// folder above a ptxas on PATH, or /usr/local/cuda.
  std::string toolkit;
  /// Leave the kernels on tensors in the module, for devices of other kinds.
  bool keepKernels = false;
};

/// How kernels that are products are computed (#baechi.cuda_product).
struct CudaProductOptions {
  /// fp32, tf32, bf16 or fp16: what single-precision factors may be rounded to.
  std::string math = "fp32";
  /// The most that the library may use beside the operands, a product.
  int64_t workspaceBytes = int64_t(32) << 20;
  /// Let a product add the bias that is all that is done to its result. Host
  /// devices have no good code for that.
  bool biases = false;
  /// Compute small updates of parameters several at once. They become one
  /// operator, which lies on one device.
  bool updates = false;
  /// measured (cuDNN where a profile says that it is faster), generated, cudnn.
  std::string convolutions = "measured";
};

/// What is wrong with that name of a math; "" if nothing is.
std::string wrongCudaMath(llvm::StringRef math);
/// The same of CudaProductOptions::convolutions.
std::string wrongCudaConvolutions(llvm::StringRef how);

/// Writes `baechi.cuda_product` on every kernel of `module` that GPUs compute
/// by cuBLASLt, and `baechi.cuda_convolution` on those that cuDNN may compute,
/// anew where it is there. With `biases` before that, kernels and calls are
/// joined; with `updates` those of updates.
void chooseCudaProducts(mlir::ModuleOp module,
                        const CudaProductOptions &options);

/// What the GPU code of `kernel` asks of cuBLASLt, and how often; none for
/// kernels that are no `baechi.cuda_product`.
struct CudaProductCalls {
  baechi_cuda_product product;
  int64_t calls = 0;
};
std::optional<CudaProductCalls> cudaProductOf(mlir::func::FuncOp kernel);

/// What the GPU code of `kernel` asks of cuDNN, where that computes it, and
/// which arguments A and B lie in; none for kernels that are no
/// `baechi.cuda_convolution`.
struct CudaConvolutionCall {
  baechi_cuda_convolution convolution;
  unsigned a = 0, b = 0;
};
std::optional<CudaConvolutionCall> cudaConvolutionOf(mlir::func::FuncOp kernel);

/// Registers the dialects and interface implementations that lowering kernels
/// to GPU code needs.
void registerCudaKernelDialects(mlir::DialectRegistry &registry);

/// What the GPU code of a kernel needs.
struct CudaNeed {
  /// Bytes of device memory while it runs.
  int64_t scratchBytes = 0;
  /// Blocks of its largest launch; of a library's calls, as if their tiles had
  /// 32 rows and columns.
  int64_t blocks = 0;
  /// Launches, and calls of libraries.
  int64_t commands = 0;
};
/// By the kernels' names.
using CudaNeeds = llvm::StringMap<CudaNeed>;

/// What every kernel of `module` needs. Copies of the kernels are mapped to the
/// device to find out: ask once.
mlir::FailureOr<CudaNeeds> cudaNeedsOf(mlir::ModuleOp module);

/// Writes `baechi.kernel_scratch`, `baechi.cuda_blocks` and
/// `baechi.cuda_commands` on every kernel of `module`, all of them in `needs`.
/// Scratch is that, or what stands there if it is more: code for another kind
/// of device may need it. Costs of operators that call it count no less.
void annotateCudaNeeds(mlir::ModuleOp module, const CudaNeeds &needs);

/// Replaces every kernel of `module` by an `llvm.func`
///
///     void NAME__cuda(ptr argument…, ptr result…, ptr scratch)
///
/// on device pointers, under the rules of lowerKernels (HostKernels.h), with
/// its scratch in `baechi.kernel_scratch`. It enqueues the kernel on the
/// calling thread's current stream by the functions of
/// Baechi/Runtime/CudaAbi.h. Their GPU code, one fat binary, is a constant of
/// the module. On failure the error names the kernel.
mlir::LogicalResult lowerKernelsToCuda(mlir::ModuleOp module,
                                       const CudaOptions &options);

/// Replaces every kernel of `module` by a function with lowerKernels' interface
/// that runs the blocks and threads of its GPU code one after the other on the
/// host, in ascending or descending order: results that differ tell of threads
/// that do not keep to their own data. Products call baechi_cuda_multiply,
/// which must be given.
mlir::LogicalResult emulateCudaKernels(mlir::ModuleOp module, bool descending);

/// Replaces every kernel of `module` by a function on buffers that launches its
/// GPU code as gpu.launch, for a look at it.
mlir::LogicalResult mapKernelsToCuda(mlir::ModuleOp module);

} // namespace baechi

#endif // BAECHI_CONVERSION_KERNELS_CUDA_CUDAKERNELS_H
