//===- OwnSums.h - Sums of each block's own -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H

#include "LoopModel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace baechi {

/// "arith.addf", "arith.addi".
std::string operationOf(llvm::StringRef name, mlir::Type element);

/// Element by element.
mlir::Value combined(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value a, mlir::Value b, llvm::StringRef operation);

/// What a block begins with of an array that it has for itself: what changes
/// nothing, of sums zeros, and where elements are set to one number, another.
mlir::Value ownStart(mlir::OpBuilder &builder, mlir::Location loc,
                     const LoopModel &model, size_t array,
                     mlir::RankedTensorType type);

/// The array with what a block has made so.
mlir::Value withOwn(mlir::OpBuilder &builder, mlir::Location loc,
                    const LoopModel &model, size_t array, mlir::Value total,
                    mlir::Value own);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_OWNSUMS_H
