//===- Manifest.h - What a compiled program says about itself -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_DEVICES_MANIFEST_H
#define BAECHI_CONVERSION_DEVICES_MANIFEST_H

#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Dialect/Baechi.h"

namespace baechi {

/// The symbol of a device's entry function.
std::string entryName(llvm::StringRef prefix, llvm::StringRef device);

/// The manifest of a planned program (docs/program-format.md) as JSON text.
/// \p processor: what host code that belongs to it was compiled for
/// (HostJit::hostExtensions). \p cores: how many of the planned machine's
/// processors the devices may keep busy; 0: not known. \p simulated: the
/// program's step by the runtime's rules, whose times the manifest then has
/// instead of the plan's. Emits an error when a part of the plan is missing.
mlir::FailureOr<std::string>
writeManifest(mlir::ModuleOp module, llvm::StringRef prefix,
              llvm::ArrayRef<std::string> processor = {}, int64_t cores = 0,
              const SimulatedStep *simulated = nullptr);

} // namespace baechi

#endif // BAECHI_CONVERSION_DEVICES_MANIFEST_H
