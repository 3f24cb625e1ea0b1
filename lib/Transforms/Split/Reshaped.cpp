//===- Reshaped.cpp - Dimensions that are reshaped into parts -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reshaped.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

SmallVector<ReshapedPart> split::reshapedParts(Value value, unsigned dim) {
  SmallVector<ReshapedPart> parts;
  for (Operation *user : value.getUsers()) {
    auto reshape = dyn_cast<tensor::ExpandShapeOp>(user);
    if (!reshape || !reshape.getResultType().hasStaticShape())
      continue;
    ReassociationIndices group = reshape.getReassociationIndices()[dim];
    int64_t outer = 1, inner = 1;
    for (int64_t index : group)
      inner *= reshape.getResultType().getDimSize(index);
    for (int64_t index : group) {
      int64_t extent = reshape.getResultType().getDimSize(index);
      if (extent == 0)
        break;
      inner /= extent;
      CutPosition position{dim, outer, inner};
      if (outer > 1 && extent > 1 &&
          llvm::none_of(parts, [&](const ReshapedPart &part) {
            return part.position == position;
          }))
        parts.push_back({position, extent});
      outer *= extent;
    }
  }
  return parts;
}
