//===- Forms.h - Positions as sums of keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_FORMS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_FORMS_H

#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Loops/Loop.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseSet.h"

namespace baechi {

/// A sum of keys, numbers from outside and a constant, plus something from
/// `low` to `high` that a loop within the body counts.
struct Form {
  loops::Affine at;
  int64_t low = 0, high = 0;
  /// Each value from `low` to `high` at which a range ends is had, whatever the
  /// keys are.
  bool isTight = true;

  bool isConstant() const;
};

/// What integers of a loop's body are, as far as that is a sum.
class Forms {
public:
  explicit Forms(ForeachOp loop);

  std::optional<Form> of(mlir::Value value);
  std::optional<Form> of(mlir::OpFoldResult value);
  /// Of an affine map's result.
  std::optional<Form> of(mlir::AffineExpr expression, mlir::ValueRange operands,
                         unsigned dims);

  /// Values from outside that forms have had need of, in this order.
  llvm::ArrayRef<mlir::Value> getSymbols() const { return symbols; }

private:
  std::optional<Form> compute(mlir::Value value);
  std::optional<Form> counter(mlir::BlockArgument argument);
  std::optional<Form> symbol(mlir::Value value);
  std::optional<Form> inWidth(std::optional<Form> form, mlir::Operation *op);
  /// Whether it is computed of values from outside alone.
  bool isInvariant(mlir::Value value);

  ForeachOp loop;
  llvm::DenseMap<mlir::Value, std::optional<Form>> known;
  llvm::DenseSet<mlir::Operation *> invariant;
  llvm::SmallVector<mlir::Value> symbols;
};

/// \p a + factor * \p b, \p a * factor; none where numbers become large.
std::optional<Form> plus(const std::optional<Form> &a,
                         const std::optional<Form> &b, int64_t factor = 1);
std::optional<Form> times(const std::optional<Form> &a, int64_t factor);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_FORMS_H
