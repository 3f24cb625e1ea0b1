//===- StepEstimate.h - What a step's kernels may take ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_STEPESTIMATE_H
#define BAECHI_COSTS_MEASURE_STEPESTIMATE_H

#include "Baechi/Costs/Profile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace baechi {

/// What the kernels of a module take on one device of a kind, each and in all
/// of a step: by the profile's undisturbed rows, else by the roofline that is
/// fitted to them, or the assumed one.
class StepEstimate {
public:
  StepEstimate(mlir::ModuleOp module, llvm::StringRef kind,
               const Profile &profile);

  struct Use {
    double ns = 0; ///< of an execution, at least one
    size_t calls = 0;
  };
  /// By the kernel's hash; of one that no step calls, nothing.
  Use of(llvm::StringRef hash) const { return uses.lookup(hash); }
  double stepNs() const { return total; }

private:
  llvm::StringMap<Use> uses;
  double total = 0;
};

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_STEPESTIMATE_H
