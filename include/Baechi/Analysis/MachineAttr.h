//===- MachineAttr.h - Machines as attributes --------------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_MACHINEATTR_H
#define BAECHI_ANALYSIS_MACHINEATTR_H

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Model/Problem.h"

namespace baechi {

/// The attribute form, and back.
MachineAttr toAttr(mlir::MLIRContext *context,
                   const placement::Machine &machine);
placement::Machine fromAttr(MachineAttr machine);

/// The machine of \p module: \p spec when it is not empty (the module's
/// attribute is then replaced by it), else its `baechi.machine`. Emits an error
/// on \p module and returns nullopt when there is neither.
std::optional<placement::Machine> machineOf(mlir::ModuleOp module,
                                            llvm::StringRef spec);

} // namespace baechi

#endif // BAECHI_ANALYSIS_MACHINEATTR_H
