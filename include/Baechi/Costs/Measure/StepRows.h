//===- StepRows.h - Rows that other processes' steps fill -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_COSTS_MEASURE_STEPROWS_H
#define BAECHI_COSTS_MEASURE_STEPROWS_H

#include "Baechi/Costs/Profile.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// The rows of the code that computes the kernels of \p module on devices of
/// \p kind, with what \p profile has of them and by the kernels' names in the
/// module. Those that it has not are disturbed, with a time of 0.
Profile stepRows(mlir::ModuleOp module, llvm::StringRef kind,
                 const Profile &profile);

/// Takes the times within a step of \p steps into \p profile, and what else its
/// rows have better. Rows of other code of the same kernels go: what steps ran
/// with is what a plan of their times has.
void takeStepRows(Profile &profile, const Profile &steps);

} // namespace baechi

#endif // BAECHI_COSTS_MEASURE_STEPROWS_H
