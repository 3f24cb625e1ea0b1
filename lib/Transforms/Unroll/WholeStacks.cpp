//===- WholeStacks.cpp - Stacks that turns fill up ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StackSlices.h"
#include "TurnFolder.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::unroll;

bool unroll::isAtKnownPlace(OffsetSizeAndStrideOpInterface slice) {
  return llvm::none_of(slice.getStaticOffsets(), ShapedType::isDynamic) &&
         llvm::none_of(slice.getStaticSizes(), ShapedType::isDynamic) &&
         llvm::all_of(slice.getStaticStrides(),
                      [](int64_t stride) { return stride == 1; });
}

static bool isSamePlace(OffsetSizeAndStrideOpInterface a,
                        OffsetSizeAndStrideOpInterface b) {
  return a.getStaticOffsets() == b.getStaticOffsets() &&
         a.getStaticSizes() == b.getStaticSizes();
}

static bool areApart(OffsetSizeAndStrideOpInterface a,
                     OffsetSizeAndStrideOpInterface b) {
  return llvm::any_of(llvm::zip_equal(a.getStaticOffsets(), a.getStaticSizes(),
                                      b.getStaticOffsets(), b.getStaticSizes()),
                      [](auto along) {
                        auto [from, size, otherFrom, otherSize] = along;
                        return from + size <= otherFrom ||
                               otherFrom + otherSize <= from;
                      });
}

Value unroll::writtenBefore(tensor::ExtractSliceOp read) {
  if (!isAtKnownPlace(read))
    return nullptr;
  while (auto write = read.getSource().getDefiningOp<tensor::InsertSliceOp>()) {
    if (!isAtKnownPlace(write))
      return nullptr;
    if (isSamePlace(read, write) && read.getType() == write.getSourceType())
      return write.getSource();
    if (!areApart(read, write))
      return nullptr;
    read.getSourceMutable().assign(write.getDest());
  }
  return nullptr;
}

/// The one dimension along which \p write does not write all there is; nothing
/// where there is none or another.
static std::optional<unsigned> dimensionOf(tensor::InsertSliceOp write) {
  std::optional<unsigned> found;
  for (auto [dim, size] : llvm::enumerate(write.getStaticSizes())) {
    if (size == write.getDestType().getDimSize(dim))
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// The first of the writes that \p last ends, where they are all that reads
/// what they write into, and write every element; else null.
static tensor::InsertSliceOp firstOfAll(tensor::InsertSliceOp last) {
  std::optional<unsigned> dim = dimensionOf(last);
  if (!dim || !last.getDestType().hasStaticShape())
    return nullptr;
  llvm::BitVector written(last.getDestType().getDimSize(*dim));
  for (tensor::InsertSliceOp write = last;;) {
    if (!isAtKnownPlace(write) || dimensionOf(write) != dim)
      return nullptr;
    int64_t from = write.getStaticOffset(*dim);
    written.set(from, from + write.getStaticSize(*dim));
    if (written.all())
      return write;
    auto before = write.getDest().getDefiningOp<tensor::InsertSliceOp>();
    if (!before || !before->hasOneUse())
      return nullptr;
    write = before;
  }
}

void unroll::emptyWholeStacks(func::FuncOp step) {
  for (auto last : llvm::make_early_inc_range(
           step.front().getOps<tensor::InsertSliceOp>())) {
    bool isWrittenInto = llvm::any_of(last->getUses(), [&](OpOperand &use) {
      auto next = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
      return next && next.getDest() == last.getResult();
    });
    tensor::InsertSliceOp first = isWrittenInto ? nullptr : firstOfAll(last);
    if (!first || first.getDest().getDefiningOp<tensor::EmptyOp>())
      continue;
    OpBuilder builder(first);
    RankedTensorType type = first.getDestType();
    first.getDestMutable().assign(
        tensor::EmptyOp::create(builder, first.getLoc(), type.getShape(),
                                type.getElementType(), type.getEncoding()));
  }
}
