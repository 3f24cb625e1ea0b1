//===- FitRefusals.h - Why no rewrite of a step fits ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREFUSALS_H
#define BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREFUSALS_H

#include "Baechi/Transforms/Passes.h"
#include "MemoryFitter.h"
#include "SpillFitter.h"
#include "mlir/IR/Diagnostics.h"

namespace baechi {

/// What plans with a pool would have needed that did not fit.
struct UnfitPlans {
  ArenaReport fullestPool;   ///< of a pool that was too small
  int64_t leanestDevice = 0; ///< the device's smallest arena; 0: none

  void add(llvm::ArrayRef<ArenaReport> arenas, const SpillFitter &fitter);
};

/// The first error of \p said; null where it has none.
mlir::Diagnostic *findError(std::vector<mlir::Diagnostic> &said);

/// Adds to \p error, which is that of the step as it is, why computing values
/// again on \p machine does not help, and what would. \p leanest: what the
/// rewrite takes that takes least; nullopt: there is none.
void refuseToRecompute(const MemoryFitter &fitter,
                       const placement::Machine &machine,
                       std::optional<int64_t> leanest, mlir::Diagnostic &error);

/// Puts why no plan with the pool fits, and what would, in the place of the
/// first error of \p said, which is that of a machine without a pool and
/// becomes a note.
void refuseWithPool(const SpillFitter &fitter, const UnfitPlans &unfit,
                    std::vector<mlir::Diagnostic> &said);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_FITREFUSALS_H
