//===- OwnSums.h - Sums of each block's own -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H

#include "Baechi/Loops/Loop.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace baechi {

/// The operation of arith that the updates of \p array, whose elements are of
/// type \p element, are.
std::string combinerOf(const loops::Loop &loop, size_t array,
                       mlir::Type element);

/// "arith.addf", "arith.addi".
std::string operationOf(llvm::StringRef name, mlir::Type element);

/// A tensor filled with what changes nothing that it is combined with.
mlir::Value neutralOf(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::RankedTensorType type, llvm::StringRef combiner);

/// Element by element.
mlir::Value combined(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value a, mlir::Value b, llvm::StringRef operation);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H
