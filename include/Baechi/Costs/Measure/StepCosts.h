//===- StepCosts.h - What kernels take within a step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_STEPCOSTS_H
#define BAECHI_COSTS_MEASURE_STEPCOSTS_H

#include "Baechi/Costs/Measure/Rounds.h"
#include "Baechi/Costs/Profile.h"
#include "Baechi/Runtime/Program.h"
#include "Baechi/Runtime/Timeline.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <limits>

namespace baechi {

/// True when a kernel of \p module has no row with an undisturbed time within a
/// step of devices of \p kind.
bool lacksStepCosts(mlir::ModuleOp module, llvm::StringRef kind,
                    const Profile &profile);

struct StepSampling {
  /// Steps are counted for as long and as often as this, at least.
  double seconds = 1.5;
  size_t fewest = 3;
  /// Three that nothing disturbs, or six that something does, are enough after
  /// as long as this.
  double enoughSeconds = std::numeric_limits<double>::infinity();
  /// Of all that computes a step.
  Clocks clocks = Clocks::ofTheWorld();
};

/// Runs \p single, the model's program on one device whose arguments have
/// values, for a few steps and writes what each of its kernels took into the
/// rows of the implementations that run, for its device's kind: measured alone,
/// a kernel finds other data in the caches than in a step, and some cannot be
/// measured alone. Of an operator the median over steps; of a kernel the mean
/// over its operators, so that the sum over a step is right. Steps that other
/// work disturbed are taken again, as often at most; where that is in vain, the
/// rows say so. \p runStep: runs a step and gives when its operators ran. \p
/// progress: is told of each step before it runs; false ends all with an error.
llvm::Error measureStepCosts(
    const runtime::Program &single,
    llvm::function_ref<llvm::Expected<const runtime::Timeline *>()> runStep,
    mlir::ModuleOp module, Profile &profile, const StepSampling &sampling,
    llvm::function_ref<bool(size_t done, size_t total)> progress);

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_STEPCOSTS_H
