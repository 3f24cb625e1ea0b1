//===- Nest.h - Loops that become keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_NEST_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_NEST_H

#include "Baechi/Dialect/LoopOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace baechi {

/// A loop of scf or affine, with a step that is a number.
struct Level {
  mlir::LoopLikeOpInterface loop;
  mlir::Value counter;
  int64_t step = 1;
  /// Bounds of the key. The counter is the key, or where the step is not 1
  /// `first + step * key`.
  mlir::OpFoldResult lower, upper, first;
  /// What bounds the counter by those of the loops around it, each at least 0.
  llvm::SmallVector<mlir::AffineExpr> inside;
};

/// Loops of which each holds nothing but the next and values that have no
/// effects.
struct Nest {
  llvm::SmallVector<Level> levels;

  mlir::LoopLikeOpInterface outermost() const { return levels.front().loop; }
  mlir::LoopLikeOpInterface innermost() const { return levels.back().loop; }
};

/// The nest that begins with \p loop. Bounds that are values stand before it. A
/// failure was told as a remark.
mlir::FailureOr<Nest> nestOf(mlir::LoopLikeOpInterface loop);

/// How many steps there are from \p lower to \p upper.
mlir::OpFoldResult stepsOf(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::OpFoldResult lower, mlir::OpFoldResult upper,
                           int64_t step);

/// A remark why \p loop is not raised, to go on with.
mlir::InFlightDiagnostic notRaised(mlir::Operation *loop);

/// The key arrays and values of a loop over entries.
struct Entries {
  struct Key {
    mlir::Value array;
    mlir::OpFoldResult lower, upper;
  };
  llvm::SmallVector<Key> keys;
  llvm::SmallVector<mlir::Value> values;
  /// The store that gives a value anew; null for those that are only read.
  llvm::SmallVector<mlir::Operation *> stores;
};

/// What the elements at the counter of \p level are, where some are positions;
/// no keys where none is, or where a remark has told why they cannot be keys.
Entries entriesOf(Level &level);

/// Whether the memory of \p array may be written within \p loop.
bool isWritten(mlir::Value array, mlir::Operation *loop);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_NEST_H
