//===- Parts.h - Tensors written into what they are part of -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_PARTS_H
#define BAECHI_ANALYSIS_PARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace baechi {

/// Where the arguments of a kernel that puts them together, and does nothing
/// else, lie in its result: bytes from its start, multiples of kAlignment.
/// Every argument is one range of the result, and all of them are all of it.
/// Nothing for other kernels.
std::optional<llvm::SmallVector<int64_t>> findParts(mlir::func::FuncOp kernel);

/// The same, as `baechi.parts` of the kernel that \p op calls says it; empty
/// where there is none, or where it does not fit the operands.
llvm::ArrayRef<int64_t> partsOf(mlir::Operation *op,
                                mlir::SymbolTableCollection &symbols);

/// The argument that the result of \p op begins with, where it is joined
/// (`baechi.joined`); null for others.
mlir::BlockArgument firstPart(mlir::Operation *op,
                              mlir::SymbolTableCollection &symbols);

/// Which operands of \p op, which puts them together, already lie in their
/// places in its result by the offsets that memory planning gave them.
llvm::SmallVector<bool> partsInPlace(mlir::Operation *op,
                                     mlir::SymbolTableCollection &symbols);

/// The part of what \p op takes that is left where some of its operands lie in
/// their places already: the bytes that it copies and all that it makes.
struct PartsLeft {
  int64_t copied = 1, all = 1;
};
PartsLeft partsLeft(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

} // namespace baechi

#endif // BAECHI_ANALYSIS_PARTS_H
