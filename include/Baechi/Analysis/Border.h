//===- Border.h - A step as its caller has it -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_BORDER_H
#define BAECHI_ANALYSIS_BORDER_H

#include "Baechi/Dialect/Pieces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {

/// An argument or a result of a step as its caller has it: whole, also where it
/// is several of the function's, its pieces (`baechi.piece`).
struct BorderTensor {
  /// Among the caller's arguments or results.
  unsigned number = 0;
  mlir::Type type;
  /// The model's own; "" where it has none.
  std::string name;
  /// The function's arguments or results that it is, one after the other.
  unsigned first = 0, count = 1;
  /// Of each, or empty where it is whole.
  llvm::SmallVector<PieceAttr, 2> pieces;
};

/// Emits an error where a piece is not behind the one before it.
mlir::FailureOr<llvm::SmallVector<BorderTensor>>
borderArguments(mlir::FunctionOpInterface step);
mlir::FailureOr<llvm::SmallVector<BorderTensor>>
borderResults(mlir::FunctionOpInterface step);

} // namespace baechi

#endif // BAECHI_ANALYSIS_BORDER_H
