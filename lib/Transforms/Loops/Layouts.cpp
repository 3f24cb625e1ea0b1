//===- Layouts.cpp - Whether places of a memref meet ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>

using namespace mlir;

bool baechi::hasDistinctPlaces(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  SmallVector<std::pair<int64_t, int64_t>> known; // stride, extent
  for (auto [stride, extent] : llvm::zip(strides, type.getShape()))
    if (extent != 1 && stride != ShapedType::kDynamic)
      known.push_back({std::abs(stride), extent});
  llvm::sort(known);
  // The smaller dimensions reach no further than the next stride.
  int64_t reached = 0;
  for (auto [stride, extent] : known) {
    if (stride <= reached)
      return false;
    reached = extent == ShapedType::kDynamic ? stride
                                             : reached + stride * (extent - 1);
  }
  return true;
}
