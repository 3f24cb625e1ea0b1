//===- PackedEntry.h - Kernels' code for any number of operands -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_COSTS_MEASURE_PACKEDENTRY_H
#define BAECHI_LIB_COSTS_MEASURE_PACKEDENTRY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <string>

namespace baechi {

/// Adds `void NAME_packed(ptr pointers)`, which calls a kernel's code on an
/// array of pointers; gives its name.
std::string addPackedEntry(mlir::LLVM::LLVMFuncOp code);

} // namespace baechi

#endif // BAECHI_LIB_COSTS_MEASURE_PACKEDENTRY_H
