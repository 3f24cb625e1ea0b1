//===- TurnFolder.h - What is known of a turn -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_UNROLL_TURNFOLDER_H
#define BAECHI_LIB_TRANSFORMS_UNROLL_TURNFOLDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace baechi::unroll {

/// Makes of the operators of a turn, whose number is known, what they are then:
/// integers become constants, slices at computed places static ones, and what
/// reads of a stack what one turn has put there reads that.
class TurnFolder {
public:
  explicit TurnFolder(mlir::func::FuncOp step)
      : constants(mlir::OpBuilder::atBlockBegin(&step.front())) {}

  /// A FoldOfTurn.
  llvm::SmallVector<mlir::Value> fold(mlir::Operation *op);

private:
  llvm::SmallVector<mlir::Value> foldNumbers(mlir::Operation *op);
  mlir::Value constant(mlir::Attribute value, mlir::Type type);

  mlir::OpBuilder constants;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Type>, mlir::Value> known;
};

/// Whether it is an integer, or a tensor of one: a place, a counter.
bool isNumber(mlir::Type type);

/// A stack that turns fill up begins as a tensor without contents, in place of
/// what is overwritten.
void emptyWholeStacks(mlir::func::FuncOp step);

} // namespace baechi::unroll

#endif // BAECHI_LIB_TRANSFORMS_UNROLL_TURNFOLDER_H
