//===- Dialects.h - Dialects that kernels go through ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_KERNELS_COMMON_DIALECTS_H
#define BAECHI_CONVERSION_KERNELS_COMMON_DIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace baechi {

/// Registers the dialects and interface implementations that lowering kernels
/// and translating them to LLVM IR need.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace baechi

#endif // BAECHI_CONVERSION_KERNELS_COMMON_DIALECTS_H
