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
#include "Exchange.h"

namespace baechi::split {

/// Times of a step's operations by the default roofline of the first device of
/// the module's machine (`baechi.machine`; a host without one), as if
/// elementwise chains were fused already. It only proposes: the placements of
/// what it proposes and of the whole step are compared.
class Estimate {
public:
  explicit Estimate(mlir::func::FuncOp step);

  /// What \p cut saves where its pieces run at once, less what is copied and,
  /// where devices share no memory, sent.
  double gainNs(const Cut &cut) const;
  /// The same without what is copied, joined and sent for it.
  double savedNs(const Cut &cut) const;

  /// Takes out of \p cut, which has been followed, what is better whole: where
  /// pieces would send each other more than they save.
  void keepBetterWhole(Cut &cut) const;

  double totalNs() const { return total; }
  /// All operations, those that take the longest first.
  llvm::ArrayRef<mlir::Operation *> heaviest() const { return operations; }

private:
  double timeNs(mlir::Operation *op) const;
  double savedNs(mlir::Operation *op, const Cut &cut) const;

  Roofline roofline;
  std::optional<Exchange> exchange;
  double total = 0;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Operation *, double> times;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_ESTIMATE_H
