//===- Estimate.h - What a cut saves ----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_ESTIMATE_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_ESTIMATE_H

#include "Baechi/Costs/Roofline.h"
#include "SplitPlan.h"

namespace baechi::split {

/// Times of a step's operations by the default roofline of host devices, as if
/// elementwise chains were fused already. It only proposes: the placements of
/// what it proposes and of the whole step are compared.
class Estimate {
public:
  explicit Estimate(mlir::func::FuncOp step);

  /// What \p cut saves where its pieces run at once, less what is copied.
  double gainNs(const Cut &cut) const;
  /// The same without what is copied and joined for it.
  double savedNs(const Cut &cut) const;

  double totalNs() const { return total; }
  /// All operations, those that take the longest first.
  llvm::ArrayRef<mlir::Operation *> heaviest() const { return operations; }

private:
  double timeNs(mlir::Operation *op) const;

  Roofline roofline;
  double total = 0;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Operation *, double> times;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_ESTIMATE_H
