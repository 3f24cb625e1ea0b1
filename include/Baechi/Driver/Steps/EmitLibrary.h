//===- EmitLibrary.h - From a model to a step library -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_STEPS_EMITLIBRARY_H
#define BAECHI_DRIVER_STEPS_EMITLIBRARY_H

#include "Baechi/Driver/Compilation/Compilation.h"

namespace baechi {

/// Reads, measures, places and compiles a model: all that comes before steps.
/// \p inputs: an archive of arguments, for the steps that costs are measured
/// in; empty: the model's own first values. \p calibrates: the runtime is
/// measured, too. \p replicas: those whose arguments the archive may have one
/// after the other.
llvm::Expected<std::unique_ptr<Compilation>>
compileModel(DriverOptions options, placement::Machine machine,
             Listener &listener, const std::string &inputs = "",
             bool calibrates = false, int64_t replicas = 1);

/// Compiles a model and writes its step as a shared object with a C header
/// (docs/step-library.md). \p file: NAME.so. \p inputs: as above.
llvm::Error emitLibrary(DriverOptions options, placement::Machine machine,
                        const std::string &file, Listener &listener,
                        const std::string &inputs = "");

} // namespace baechi

#endif // BAECHI_DRIVER_STEPS_EMITLIBRARY_H
