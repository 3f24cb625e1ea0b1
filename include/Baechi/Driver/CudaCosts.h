//===- CudaCosts.h - What kernels take on GPUs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUDACOSTS_H
#define BAECHI_DRIVER_CUDACOSTS_H

#include "Baechi/Analysis/Profile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace baechi {

/// What a profile calls the GPU code of \p kernel.
std::string cudaImplementationOf(mlir::func::FuncOp kernel);

/// Makes the first GPU the one that rows of kind "cuda" are of: those of
/// another one go, with a warning. Fails, and does nothing, without a GPU.
llvm::Error takeGpu(mlir::ModuleOp module, Profile &profile);

/// Searches the fastest algorithm of every product of \p module that has no
/// row, on that GPU, and adds the rows; gives their number.
llvm::Expected<size_t> measureCudaProducts(
    mlir::ModuleOp module, Profile &profile,
    llvm::function_ref<void(size_t done, size_t total)> progress);

} // namespace baechi

#endif // BAECHI_DRIVER_CUDACOSTS_H
