//===- KernelHash.h - What tells kernels apart ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_KERNELHASH_H
#define BAECHI_ANALYSIS_KERNELHASH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace baechi {

/// A hash of a kernel's text that its name and attributes do not change.
std::string kernelHash(mlir::func::FuncOp kernel);

} // namespace baechi

#endif // BAECHI_ANALYSIS_KERNELHASH_H
