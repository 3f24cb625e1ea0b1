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
#include "StoredArguments.h"
#include <vector>

namespace baechi::split {

/// Times of a step's operations by the default roofline of the first device of
/// the module's machine (`baechi.machine`; a host without one), as if
/// elementwise chains were fused already. It only proposes: the placements of
/// what it proposes and of the whole step are compared.
class Estimate {
public:
  Estimate(mlir::func::FuncOp step, const PlanOptions &options);

  /// What \p cut saves where its pieces run at once, and what is copied and,
  /// where devices share no memory, sent for it. \p plan: what is cut already.
  Worth worthOf(const Cut &cut, const SplitPlan &plan) const;
  double gainNs(const Cut &cut, const SplitPlan &plan) const {
    return worthOf(cut, plan).gainNs();
  }
  /// The same without what is copied, joined and sent for it.
  double savedNs(const Cut &cut) const;
  /// What devices that share memory wait for each other, by which plans of many
  /// classes differ: gainNs does not count it.
  double waitedNs(const Cut &cut) const;

  /// Takes out of \p cut, which has been followed, what is better whole: where
  /// pieces would send each other more than they save.
  void keepBetterWhole(Cut &cut) const;

  /// A class that saves less than a little of the whole step's time stays
  /// whole.
  double leastGainNs() const { return 0.002 * total; }
  /// Whether a class may be worth while for \p op.
  bool isHeavy(mlir::Operation *op) const {
    return times.lookup(op) > 0.1 * leastGainNs();
  }
  double totalNs() const { return total; }
  /// Whether devices read each other's tensors where they lie.
  bool isMemoryShared() const { return !exchange; }
  /// All operations, those that take the longest first.
  llvm::ArrayRef<mlir::Operation *> heaviest() const { return operations; }

private:
  double timeNs(mlir::Operation *op);
  /// An elementwise result that only elementwise operations read stays in
  /// registers.
  bool isFused(mlir::Value value);
  double savedNs(mlir::Operation *op, const Cut &cut) const;
  /// Bytes read and written to cut a whole value, or to put its pieces
  /// together.
  double copiedFor(mlir::Value value, CutPosition at, const Cut &cut) const;
  /// Returned, and not in pieces.
  bool isReturnedWhole(mlir::Value value, const Cut &cut) const;

  llvm::ArrayRef<mlir::Operation *> betterWhole(const Cut &cut) const;

  /// What is better whole of a class.
  struct Found {
    llvm::SmallVector<int64_t> sizes;
    llvm::SmallVector<mlir::Operation *> operations;
    llvm::SmallVector<std::pair<mlir::Value, CutPosition>> values;
    llvm::SmallVector<mlir::Operation *> betterWhole;
  };
  /// By the first operation.
  mutable llvm::DenseMap<mlir::Operation *, std::vector<Found>> found;
  llvm::DenseMap<mlir::Value, bool> fused; ///< as far as it was asked for

  Roofline roofline;
  std::optional<Exchange> exchange;
  std::optional<StoredArguments> stored; ///< where anything may be
  double total = 0;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Operation *, double> times;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_ESTIMATE_H
