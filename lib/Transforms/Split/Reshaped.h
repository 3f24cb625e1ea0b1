//===- Reshaped.h - Dimensions that are reshaped into parts -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_RESHAPED_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_RESHAPED_H

#include "Baechi/Analysis/Splits.h"

namespace baechi::split {

/// A dimension of what a tensor is reshaped into.
struct ReshapedPart {
  CutPosition position; ///< in the tensor
  int64_t extent;
};

/// Where dimension \p dim of \p value is reshaped into several, those but the
/// first: a batch that becomes smaller ones, one for each turn of a loop, has
/// their examples there.
llvm::SmallVector<ReshapedPart> reshapedParts(mlir::Value value, unsigned dim);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_RESHAPED_H
