//===- SerialLoops.h - Loops over keys as serial loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_SERIALLOOPS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_SERIALLOOPS_H

#include "Baechi/Dialect/LoopOps.h"

namespace baechi {

/// An error at an operation of affine within a loop over keys of \p root.
llvm::LogicalResult checkNoAffine(mlir::Operation *root);

/// \p op becomes loops of scf, in which entries follow each other in their
/// order; the first of them is returned.
mlir::Operation *lowerSerially(ForeachOp op);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_SERIALLOOPS_H
