//===- Steps.h - Steps of lowering kernels to host code ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_STEPS_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_STEPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// The dialects that the steps create operations and attributes of by
/// themselves. (Passes load theirs; a pass that calls us depends on these.)
void loadHostDialects(mlir::MLIRContext *context);

/// The first step, on copies of kernels: their buffers are known after it, the
/// scratch among them. Before anything calls a library's function, kernels take
/// the names that no library has. The second step is lowerToLLVM().
mlir::LogicalResult lowerToPointers(mlir::ModuleOp copies);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_STEPS_H
