//===- Exports.h - What exports to other compilers share --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_EXPORTS_H
#define BAECHI_ANALYSIS_EXPORTS_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// A step whose arguments and operators have devices, which the machine has.
struct PlacedStep {
  mlir::func::FuncOp step;
  MachineAttr machine;
};

/// The step of \p module, if it is placed and operators with regions are on
/// one device; emits an error otherwise.
mlir::FailureOr<PlacedStep> findPlacedStep(mlir::ModuleOp module);

/// Takes this dialect's attributes off everything: other parsers do not know
/// them.
void removeOwnAttributes(mlir::ModuleOp module);

} // namespace baechi

#endif // BAECHI_ANALYSIS_EXPORTS_H
