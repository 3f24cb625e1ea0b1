//===- Slices.cpp - Slices that are views of a buffer -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Slices.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

std::optional<int64_t> baechi::sliceOffset(Operation *op) {
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  if (!slice || !slice.hasUnitStride() ||
      ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticSizes()))
    return std::nullopt;
  std::optional<int64_t> bytes = tensorBytes(slice.getSourceType(), false);
  if (!bytes || slice.getSourceType().getNumElements() == 0)
    return std::nullopt;
  // Inside of the first dimension that has several elements of the slice, all
  // of the source must be in it.
  int64_t offset = 0, stride = 1;
  bool whole = true;
  for (auto [size, first, extent] : llvm::reverse(
           llvm::zip_equal(slice.getStaticSizes(), slice.getStaticOffsets(),
                           slice.getSourceType().getShape()))) {
    if (!whole && size != 1)
      return std::nullopt;
    whole &= size == extent;
    offset += first * stride;
    stride *= extent;
  }
  offset *= *bytes / slice.getSourceType().getNumElements();
  return offset % kAlignment == 0 ? std::optional(offset) : std::nullopt;
}
