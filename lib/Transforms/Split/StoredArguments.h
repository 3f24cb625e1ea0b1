//===- StoredArguments.h - What a cut leaves in pieces ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_STOREDARGUMENTS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_STOREDARGUMENTS_H

#include "SplitPlan.h"

namespace baechi::split {

/// Which arguments would be stored in pieces for one cut alone, and their next
/// values returned so, before anything is rewritten (writeSignature): neither
/// takes a copy then.
class StoredArguments {
public:
  explicit StoredArguments(mlir::func::FuncOp step);

  /// All that reads \p argument has it in the pieces of \p cut, which also
  /// makes its next value in them.
  bool isStored(mlir::BlockArgument argument, const Cut &cut) const;

  /// \p value, which \p cut makes in pieces, is the next value of such an
  /// argument.
  bool isReturnedInPieces(mlir::Value value, const Cut &cut) const;

private:
  /// By what is returned, and back (`baechi.updated_by`).
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::BlockArgument, 1>>
      updated;
  llvm::DenseMap<mlir::Value, mlir::Value> next;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_STOREDARGUMENTS_H
