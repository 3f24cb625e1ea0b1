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
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {

/// Arguments and operators have devices, which \p machine has, and operators
/// with regions are on one; emits an error otherwise.
llvm::LogicalResult checkPlaced(mlir::FunctionOpInterface step,
                                MachineAttr machine);

/// Takes this dialect's attributes off everything: other parsers do not know
/// them.
void removeOwnAttributes(mlir::ModuleOp module);

} // namespace baechi

#endif // BAECHI_ANALYSIS_EXPORTS_H
