//===- WholeStep.h - The step that devices compute together -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_WHOLESTEP_H
#define BAECHI_ANALYSIS_WHOLESTEP_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

/// The step of a partitioned program as one function again, with operators in
/// the order of their numbers (baechi.operator) and no messages: what was
/// placed, with all that was rewritten before. Its module has the kernels, too.
/// Null, without a diagnostic, where a value comes from the step before.
mlir::OwningOpRef<mlir::ModuleOp> wholeStep(mlir::ModuleOp partitioned);

} // namespace baechi

#endif // BAECHI_ANALYSIS_WHOLESTEP_H
