//===- Strides.cpp - How operands move through memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Strides.h"

using namespace mlir;

int64_t baechi::strideAlong(linalg::LinalgOp op, OpOperand &operand,
                            unsigned dim) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type || failed(type.getStridesAndOffset(strides, offset)))
    return 0;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [result, stride] : llvm::zip_equal(map.getResults(), strides))
    if (result.isFunctionOfDim(dim))
      return stride;
  return 0;
}
