//===- KernelNames.h - Names that say what kernels do -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_KERNELNAMES_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_KERNELNAMES_H

#include "mlir/IR/Operation.h"
#include <string>

namespace baechi::formkernels {

/// What the operations do and over how many elements, e.g.
/// `matmul_1024x256x768` (M x N x K), `softmax_8x4x128x128`, `mul_add_1024`,
/// `tanh_scalar`.
std::string kernelName(llvm::ArrayRef<mlir::Operation *> operations);

/// The operation that a kernel of several is about: a contraction, else the one
/// with the most iterations, else the first.
mlir::Operation *mainOperation(llvm::ArrayRef<mlir::Operation *> operations);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_KERNELNAMES_H
