//===- SameElements.cpp - Tensors that only move --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SameElements.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

static bool isStatic(OffsetSizeAndStrideOpInterface slice) {
  auto isKnown = [](int64_t number) { return !ShapedType::isDynamic(number); };
  return llvm::all_of(slice.getStaticOffsets(), isKnown) &&
         llvm::all_of(slice.getStaticSizes(), isKnown) &&
         llvm::all_of(slice.getStaticStrides(),
                      [](int64_t stride) { return stride == 1; });
}

/// Along some dimension one ends before the other begins.
static bool areApart(OffsetSizeAndStrideOpInterface a,
                     OffsetSizeAndStrideOpInterface b) {
  for (auto [from, size, other, otherSize] :
       llvm::zip(a.getStaticOffsets(), a.getStaticSizes(), b.getStaticOffsets(),
                 b.getStaticSizes()))
    if (from + size <= other || other + otherSize <= from)
      return true;
  return false;
}

/// What was written where \p slice reads; null where that is not known, or more
/// than one tensor.
static Value writtenThere(tensor::ExtractSliceOp slice) {
  if (!isStatic(slice))
    return nullptr;
  Value from = slice.getSource();
  while (auto insert = from.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!isStatic(insert))
      return nullptr;
    if (insert.getStaticOffsets() == slice.getStaticOffsets() &&
        insert.getStaticSizes() == slice.getStaticSizes())
      return insert.getSource();
    if (!areApart(insert, slice))
      return nullptr;
    from = insert.getDest();
  }
  return nullptr;
}

/// The operand that \p op copies in its order; null where it does anything
/// else.
static Value copiedInOrder(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumLoops() != op.getNumParallelLoops())
    return nullptr;
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  auto from = dyn_cast<RankedTensorType>(op.getDpsInputs()[0].getType());
  auto to = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (yielded != op.getBody()->getArgument(0) || !from || !to ||
      !from.hasStaticShape() || !to.hasStaticShape() ||
      from.getNumElements() != to.getNumElements() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return nullptr;
  // Of as many elements, dimensions that are added are of 1.
  int64_t last = -1;
  for (AffineExpr expression :
       op.getMatchingIndexingMap(op.getDpsInputOperand(0)).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expression);
    if (!dim || static_cast<int64_t>(dim.getPosition()) <= last)
      return nullptr;
    last = dim.getPosition();
  }
  return op.getDpsInputs()[0];
}

static Value before(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto collapsed = dyn_cast_or_null<tensor::CollapseShapeOp>(op))
    return collapsed.getSrc();
  if (auto expanded = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return expanded.getSrc();
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return writtenThere(slice);
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op))
    return copiedInOrder(generic);
  return nullptr;
}

Value baechi::firstWithElements(Value value) {
  while (Value from = before(value))
    value = from;
  return value;
}
