//===- SameElements.h - Tensors that only move ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_CHECKPOINTS_SAMEELEMENTS_H
#define BAECHI_LIB_TRANSFORMS_CHECKPOINTS_SAMEELEMENTS_H

#include "mlir/IR/Value.h"

namespace baechi {

/// The first tensor that has the elements of \p value in the same order, as far
/// as is seen through reshapes, copies that add dimensions of 1, and slices of
/// what was written there before, as loops that are written out stack their
/// states. Types may differ. \p value where there is none.
mlir::Value firstWithElements(mlir::Value value);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_CHECKPOINTS_SAMEELEMENTS_H
