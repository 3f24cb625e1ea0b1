//===- LoopModel.h - A loop as its analysis reads it -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODEL_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODEL_H

#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Loops/Verdict.h"

namespace baechi {

struct LoopModel {
  /// Its arrays are the operation's, and one more for memory that is none of
  /// these, where the body may use some.
  loops::Loop loop;
  /// What makes each of the loop's accesses.
  llvm::SmallVector<mlir::Operation *> operations;
  /// Whether every entry makes the access, at all positions from the first to
  /// the last of its subscripts.
  llvm::SmallVector<bool> certain;
  /// Of arrays that are set to one number alone (loops::kOneNumber), that.
  llvm::DenseMap<size_t, mlir::TypedAttr> numbers;
};

LoopModel modelOf(ForeachOp op);

/// An update `x = x op f`, where the order of several does not matter.
struct Update {
  mlir::Operation *load = nullptr, *store = nullptr;
  std::string combiner;  ///< as loops::Access has it
  bool anyOrder = false; ///< the result is the same in any order
};

/// The update that ends with \p store, a store of memref or affine, of elements
/// that nothing else is read or written of in between; \p uses: what else may
/// use the array's memory.
std::optional<Update>
updateOf(mlir::Operation *store,
         const llvm::SmallPtrSetImpl<mlir::Operation *> &uses);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_LOOPMODEL_H
