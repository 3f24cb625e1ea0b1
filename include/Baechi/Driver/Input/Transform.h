//===- Transform.h - Passes over a model's text -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_TRANSFORM_H
#define BAECHI_DRIVER_INPUT_TRANSFORM_H

#include "Baechi/Driver/Input/Listener.h"
#include "llvm/Support/Error.h"
#include <string>

namespace baechi {

/// What `baechi-opt` does to a module and `baechi-translate` makes of it.
struct TransformOptions {
  std::string model;    ///< what messages call the text
  std::string text;     ///< the module
  std::string pipeline; ///< of this project's passes, as --pass-pipeline has it
  std::string form;     ///< mlir, or what --baechi-to-... names: graph, machine
};

/// The module after the passes, in the form that is asked. Errors: a
/// DiagnosedError where diagnostics have said what is wrong; passes and forms
/// that there are not.
llvm::Expected<std::string> transformModel(TransformOptions options,
                                           Listener &listener);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_TRANSFORM_H
