//===- WrittenParts.cpp - Steps that are written for replicas -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WrittenParts.h"
#include "Baechi/Dialect/Replicas.h"
#include "Describe.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// One of equal parts along one dimension.
struct Part {
  unsigned dim;
  int64_t number;
};
} // namespace

/// Which one of \p count parts of \p whole a slice or an insertion is of;
/// nothing: it is none.
template <typename SliceOp>
static std::optional<Part> partOf(SliceOp op, RankedTensorType whole,
                                  RankedTensorType piece, int64_t count) {
  if (whole.getRank() != piece.getRank() || !whole.hasStaticShape() ||
      !llvm::all_of(op.getStaticStrides(), [](int64_t s) { return s == 1; }))
    return std::nullopt;
  std::optional<Part> part;
  for (auto [dim, extent] : llvm::enumerate(whole.getShape())) {
    int64_t size = op.getStaticSizes()[dim];
    int64_t offset = op.getStaticOffsets()[dim];
    if (size == extent && offset == 0)
      continue;
    if (part || ShapedType::isDynamic(offset) || size <= 0 ||
        size * count != extent || offset % size != 0)
      return std::nullopt;
    part = Part{unsigned(dim), offset / size};
  }
  return part;
}

/// In how many parts replicas have a batched argument; nothing: it is cut along
/// several dimensions.
static std::optional<int64_t> partsAsWritten(Attribute batched,
                                             int64_t replicas) {
  auto layout = dyn_cast<ArrayAttr>(batched);
  if (!layout)
    return replicas;
  std::optional<int64_t> count;
  for (Attribute along : layout)
    if (int64_t parts = cast<DenseI64ArrayAttr>(along).size(); parts > 1) {
      if (count)
        return std::nullopt;
      count = parts;
    }
  return count;
}

/// The slices that are all that reads \p argument, one of \p count parts each,
/// by their numbers. Several of one part become one, and a part that nobody
/// reads gets one; empty where something else reads it.
static SmallVector<Value> slicesOf(OpBuilder &builder, BlockArgument argument,
                                   int64_t count, unsigned &dim) {
  SmallVector<std::pair<tensor::ExtractSliceOp, int64_t>> found;
  auto whole = dyn_cast<RankedTensorType>(argument.getType());
  for (Operation *user : argument.getUsers()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    auto part = slice && whole ? partOf(slice, whole, slice.getType(), count)
                               : std::nullopt;
    if (!part || (!found.empty() && part->dim != dim))
      return {};
    dim = part->dim;
    found.emplace_back(slice, part->number);
  }
  if (found.empty())
    return {};
  builder.setInsertionPointToStart(argument.getOwner());
  SmallVector<Value> pieces;
  SmallVector<OpFoldResult> strides(whole.getRank(), builder.getIndexAttr(1));
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<OpFoldResult> offsets(whole.getRank(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(builder.getContext(), whole.getShape());
    int64_t size = whole.getDimSize(dim) / count;
    offsets[dim] = builder.getIndexAttr(number * size);
    sizes[dim] = builder.getIndexAttr(size);
    pieces.push_back(tensor::ExtractSliceOp::create(
        builder, argument.getLoc(), argument, offsets, sizes, strides));
  }
  for (auto [slice, number] : found) {
    slice.replaceAllUsesWith(pieces[number]);
    slice.erase();
  }
  return pieces;
}

/// The \p count parts that \p value is put together of and nothing else, by
/// their numbers, and the insertions, first to last; empty where it is not.
static SmallVector<Value> partsOf(Value value, int64_t count, unsigned &dim,
                                  SmallVectorImpl<Operation *> &insertions) {
  auto whole = dyn_cast<RankedTensorType>(value.getType());
  SmallVector<Value> parts(count);
  insertions.clear();
  for (int64_t left = count; left > 0; --left) {
    auto insertion = value.getDefiningOp<tensor::InsertSliceOp>();
    auto part = insertion && whole
                    ? partOf(insertion, whole, insertion.getSourceType(), count)
                    : std::nullopt;
    if (!part || !value.hasOneUse() || parts[part->number] ||
        (!insertions.empty() && part->dim != dim))
      return {};
    dim = part->dim;
    parts[part->number] = insertion.getSource();
    insertions.push_back(insertion);
    value = insertion.getDest();
  }
  std::reverse(insertions.begin(), insertions.end());
  return parts;
}

Storage split::storeWrittenParts(func::FuncOp step, int64_t replicas,
                                 SplitReport::Class &cut) {
  OpBuilder builder(step.getContext());
  PieceTable table(builder);
  Cut found;
  auto enter = [&](Value value, unsigned dim, ArrayRef<Value> pieces) {
    auto extent = cast<RankedTensorType>(value.getType()).getDimSize(dim);
    int64_t count = pieces.size();
    table.setPieces(value, SmallVector<int64_t>(count, extent / count), {dim},
                    pieces);
  };
  llvm::SmallSetVector<int64_t, 2> counts;
  for (BlockArgument argument : step.getArguments()) {
    unsigned dim = 0;
    Attribute batched = step.getArgAttr(argument.getArgNumber(), kBatched);
    std::optional<int64_t> count =
        batched ? partsAsWritten(batched, replicas) : std::nullopt;
    if (!count)
      continue;
    counts.insert(*count);
    SmallVector<Value> pieces = slicesOf(builder, argument, *count, dim);
    if (pieces.empty())
      continue;
    enter(argument, dim, pieces);
    found.values[argument] = {dim};
    if (found.sizes.empty())
      found.sizes = table.layouts(argument).front().sizes;
  }
  cut.along = describePlace(step, found) + ", as the step is written";
  cut.sizes.assign(found.sizes.begin(), found.sizes.end());
  SmallVector<Operation *> gone;
  for (Value value : step.front().getTerminator()->getOperands()) {
    unsigned dim = 0;
    SmallVector<Operation *> insertions;
    SmallVector<Value> parts;
    for (int64_t count : counts)
      if (parts.empty())
        parts = partsOf(value, count, dim, insertions);
    if (parts.empty())
      continue;
    enter(value, dim, parts);
    llvm::append_range(gone, insertions);
  }
  return writeSignature(step, table, builder, gone, Stored::InPieces);
}
