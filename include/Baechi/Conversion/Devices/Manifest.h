//===- Manifest.h - What a compiled program says about itself -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_DEVICES_MANIFEST_H
#define BAECHI_CONVERSION_DEVICES_MANIFEST_H

#include "Baechi/Dialect/Baechi.h"

namespace baechi {

/// The symbol of a device's entry function.
std::string entryName(llvm::StringRef prefix, llvm::StringRef device);

/// The manifest of a planned program (docs/program-format.md) as JSON text. On
/// host devices its times are the step's by the runtime's rules, else the
/// plan's. Emits an error when a part of the plan is missing.
mlir::FailureOr<std::string> writeManifest(mlir::ModuleOp module,
                                           llvm::StringRef prefix);

/// The manifest that --baechi-lower has put into \p module, a lowered program.
llvm::StringRef manifestIn(mlir::ModuleOp module, llvm::StringRef prefix);

} // namespace baechi

#endif // BAECHI_CONVERSION_DEVICES_MANIFEST_H
