//===- Describe.h - A plan of cuts as a report ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_DESCRIBE_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_DESCRIBE_H

#include "Baechi/Transforms/SplitReport.h"
#include "SplitPlan.h"
#include "Storage.h"

namespace baechi::split {

/// A dimension that a person knows: an argument's, if the cut has one, and the
/// other arguments with the same dimension.
std::string describePlace(mlir::func::FuncOp step, const Cut &cut);

/// What \p plan does to \p step, which has not been rewritten yet.
SplitReport describe(mlir::func::FuncOp step, const SplitPlan &plan);

/// Tells, as remarks, what each cut is and what stayed whole on its way.
void remarkPlan(mlir::func::FuncOp step, const SplitPlan &plan);

/// Adds what the signature of the rewritten step has in pieces.
void describeStorage(const Storage &storage, SplitReport &report);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_DESCRIBE_H
