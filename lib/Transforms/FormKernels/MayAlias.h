//===- MayAlias.h - Results that may be computed in place -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_MAYALIAS_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_MAYALIAS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi::formkernels {

/// Writes `baechi.may_alias` on the results of `kernel` that may be written
/// into an argument's buffer: results of an elementwise operation that alone
/// reads the argument, in the order in which it writes, and results of a
/// contraction that starts from the argument. On the result of a kernel that
/// puts its arguments together, `baechi.parts`.
void markAliases(mlir::func::FuncOp kernel);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_MAYALIAS_H
