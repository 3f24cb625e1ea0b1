//===- FixedPoint.h - Rewriting until nothing matches -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FORMKERNELS_FIXEDPOINT_H
#define BAECHI_LIB_TRANSFORMS_FORMKERNELS_FIXEDPOINT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace baechi::formkernels {

/// Applies patterns greedily, producers first, until none matches anywhere, as
/// MLIR's driver does without a limit of its iterations. Between iterations
/// over the whole step are ones over what is near to what the last one changed:
/// how many are needed grows with the step, and each over all of it would cost
/// as much as the first.
void applyUntilFixedPoint(mlir::func::FuncOp step,
                          const mlir::FrozenRewritePatternSet &patterns);

} // namespace baechi::formkernels

#endif // BAECHI_LIB_TRANSFORMS_FORMKERNELS_FIXEDPOINT_H
