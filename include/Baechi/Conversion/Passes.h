//===- Passes.h - Passes that lower programs to code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_PASSES_H
#define BAECHI_CONVERSION_PASSES_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace baechi {

#define GEN_PASS_DECL
#include "Baechi/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Baechi/Conversion/Passes.h.inc"

/// What is wrong with \p target for --baechi-lower; empty if nothing is.
std::string wrongTarget(llvm::StringRef target);

} // namespace baechi

#endif // BAECHI_CONVERSION_PASSES_H
