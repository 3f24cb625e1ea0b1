//===- MachineSpec.h - Machines: short forms, files, attributes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_MACHINESPEC_H
#define BAECHI_ANALYSIS_MACHINESPEC_H

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Placement/Problem.h"

namespace baechi {

/// The machine that \p spec names: a short form `KIND:N[@SIZE]` (`host:2`,
/// `host:4@2GiB`; SIZE is bytes with an optional KiB, MiB, GiB or TiB) or the
/// path of a machine file. On failure \p error says what is wrong and what is
/// known. Without a SIZE a device gets an equal share of this machine's memory.
/// A short form's links are assumed, not measured.
std::optional<placement::Machine> readMachineSpec(llvm::StringRef spec,
                                                  std::string &error);

/// A number of bytes with an optional unit, binary or decimal: "4096",
/// "512MiB", "1.5GiB", "2GB".
std::optional<int64_t> parseBytes(llvm::StringRef text);
/// "1.50 GiB": for messages and reports.
std::string formatBytes(int64_t bytes);

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

#endif // BAECHI_ANALYSIS_MACHINESPEC_H
