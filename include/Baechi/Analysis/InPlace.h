//===- InPlace.h - Values computed in the buffers of others -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_INPLACE_H
#define BAECHI_ANALYSIS_INPLACE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace baechi {

/// What \p result is a changed version of: the tensor that a slice or an
/// element is put into, or that a loop starts with; null when it is new
/// altogether.
mlir::OpOperand *changedOperand(mlir::OpResult result);

/// How a kernel's result comes from an argument, as rows of a table are
/// replaced.
struct ArgumentChange {
  unsigned argument = 0;
  /// The operands of what changes it, the last one first.
  llvm::SmallVector<mlir::OpOperand *> by;
};

/// The change that makes a kernel's result, where nothing else in the kernel
/// reads the argument or what lies between.
std::optional<ArgumentChange> changeOf(mlir::func::FuncOp kernel,
                                       unsigned result);

/// The same where `baechi.may_alias` lets the result lie in the argument's
/// buffer: then only the changes are work, else a copy of the argument, too.
std::optional<ArgumentChange> inPlaceChangeOf(mlir::func::FuncOp kernel,
                                              unsigned result);

/// True when result \p result of \p op may be written into \p root's buffer:
/// the called kernel (`baechi.may_alias`) or the operation (BufferOpInterface)
/// allows it for every operand that is this buffer, and there is one.
bool mayWriteInto(mlir::Operation *op, unsigned result, mlir::Value root,
                  mlir::SymbolTableCollection &symbols);

/// The kernel that \p op calls with its body, which a device's program only
/// declares.
mlir::func::FuncOp definitionOf(mlir::Operation *op,
                                mlir::SymbolTableCollection &symbols);

/// The operators that read \p value, an argument of the step or a result, but
/// for \p updater; also those of what is joined of it (`baechi.joined`).
llvm::SmallVector<mlir::Operation *> readersOf(mlir::Value value,
                                               mlir::Operation *updater);

/// An argument's next value, or one on the way to it (`x.at[i].set(a)
/// .at[j].set(b)`), that may be computed in the argument's buffer.
struct InPlaceUpdate {
  unsigned argument;
  mlir::Value previous; ///< what the buffer holds before: the argument at first
  mlir::Operation *updater;
  unsigned result; ///< of the updater
};

/// The updates that can be in place when every other reader of the value before
/// runs before the updater, each argument's in their order. Where such orders
/// would be circular the updates concerned are left out.
llvm::SmallVector<InPlaceUpdate> inPlaceUpdates(mlir::FunctionOpInterface step);

/// Bytes of what a kernel's call copies before it changes it: of results that
/// are neither among the step's \p updates nor changed versions of tensors that
/// nobody else reads.
int64_t bytesCopied(mlir::Operation *op, llvm::ArrayRef<InPlaceUpdate> updates,
                    mlir::SymbolTableCollection &symbols);

} // namespace baechi

#endif // BAECHI_ANALYSIS_INPLACE_H
