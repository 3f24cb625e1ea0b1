//===- ChooseCuts.h - Classes that save time --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSECUTS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSECUTS_H

#include "Estimate.h"
#include "SplitPlan.h"

namespace baechi::split {

/// Enters \p cut in \p plan. \p why: a literal.
void commit(SplitPlan &plan, Cut cut, llvm::StringLiteral why);

/// Cuts the class that saves the most, and again of what is left, until none
/// saves anything. Where devices share memory, and unless options.largestFirst,
/// other plans are looked at, too (cutLeastLost), and the one that saves the
/// most is taken. Micro-batches are cut along the batch, where it is about as
/// heavy as what saves the most.
void chooseCuts(SplitPlan &plan, mlir::func::FuncOp step,
                const Estimate &estimate, const PlanOptions &options);

/// Every operation that is not cut yet, along the first loop or dimension that
/// can be; which comes first is another from operation to operation.
void cutAll(SplitPlan &plan, mlir::func::FuncOp step,
            const PlanOptions &options);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_CHOOSECUTS_H
