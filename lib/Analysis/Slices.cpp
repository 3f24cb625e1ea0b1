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

/// The bytes from the start of a tensor of type \p whole to a part of it that
/// is one piece and starts where tensors may start.
static std::optional<int64_t> pieceOffset(OffsetSizeAndStrideOpInterface part,
                                          RankedTensorType whole) {
  if (!part.hasUnitStride() ||
      ShapedType::isDynamicShape(part.getStaticOffsets()) ||
      ShapedType::isDynamicShape(part.getStaticSizes()))
    return std::nullopt;
  std::optional<int64_t> bytes = tensorBytes(whole, false);
  if (!bytes || whole.getNumElements() == 0)
    return std::nullopt;
  // Inside of the first dimension that has several elements of the part, all
  // of the whole must be in it.
  int64_t offset = 0, stride = 1;
  bool all = true;
  for (auto [size, first, extent] : llvm::reverse(llvm::zip_equal(
           part.getStaticSizes(), part.getStaticOffsets(), whole.getShape()))) {
    if (!all && size != 1)
      return std::nullopt;
    all &= size == extent;
    offset += first * stride;
    stride *= extent;
  }
  offset *= *bytes / whole.getNumElements();
  return offset % kAlignment == 0 ? std::optional(offset) : std::nullopt;
}

std::optional<int64_t> baechi::sliceOffset(Operation *op) {
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  return slice ? pieceOffset(slice, slice.getSourceType()) : std::nullopt;
}

std::optional<int64_t> baechi::insertOffset(Operation *op) {
  auto insert = dyn_cast_or_null<tensor::InsertSliceOp>(op);
  return insert ? pieceOffset(insert, insert.getDestType()) : std::nullopt;
}
