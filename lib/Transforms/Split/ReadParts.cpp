//===- ReadParts.cpp - Overlapping parts of values ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What windows read: a piece's own part and strips of its neighbours' (halos),
/// as loops over grids have them. A part of what is made in pieces is put
/// together from those that it meets, and no more.
///
//===----------------------------------------------------------------------===//

#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// A slice's offsets, sizes and strides: all of a tensor but for one dimension.
namespace {
struct Selection {
  SmallVector<OpFoldResult> offsets, sizes, strides;

  Selection(OpBuilder &builder, RankedTensorType type, unsigned dim,
            PieceTable::Range range) {
    for (int64_t length : type.getShape()) {
      offsets.push_back(builder.getIndexAttr(0));
      sizes.push_back(builder.getIndexAttr(length));
      strides.push_back(builder.getIndexAttr(1));
    }
    offsets[dim] = builder.getIndexAttr(range.start);
    sizes[dim] = builder.getIndexAttr(range.size);
  }
};
} // namespace

static Value slice(OpBuilder &builder, Location loc, Value value, unsigned dim,
                   PieceTable::Range range) {
  auto type = cast<RankedTensorType>(value.getType());
  if (range == PieceTable::Range{0, type.getDimSize(dim)})
    return value;
  Selection all(builder, type, dim, range);
  return tensor::ExtractSliceOp::create(builder, loc, value, all.offsets,
                                        all.sizes, all.strides);
}

SmallVector<Value> PieceTable::parts(Value value, unsigned dim,
                                     ArrayRef<PieceTable::Range> ranges) {
  for (const Parts &set : read[value])
    if (set.dim == dim && ArrayRef(set.ranges) == ranges)
      return set.values;
  SmallVector<Value> values;
  for (PieceTable::Range range : ranges)
    values.push_back(part(value, dim, range));
  read[value].push_back({dim, SmallVector<PieceTable::Range>(ranges), values});
  return values;
}

Value PieceTable::part(Value value, unsigned dim, PieceTable::Range range) {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(
        builder, value.getLoc(),
        constant.resizeSplat(pieceType(value.getType(), {dim}, range.size)));
  if (padded.contains(value))
    return padPart(value.getDefiningOp<tensor::PadOp>(), dim, range);
  const Layout *made = madeIn(value);
  if (made && made->position == CutPosition{dim} && !isPutTogether(value))
    return joinPart(value, *made, range);
  return slice(builder, value.getLoc(), whole(value), dim, range);
}

/// The pieces that the range meets, or parts of them.
Value PieceTable::joinPart(Value value, const Layout &made,
                           PieceTable::Range range) {
  Location loc = value.getLoc();
  unsigned dim = made.position.dim;
  SmallVector<std::pair<Value, PieceTable::Range>>
      met; // and where in the part it goes
  int64_t start = 0;
  for (auto [piece, size] : llvm::zip_equal(made.pieces, made.sizes)) {
    int64_t first = std::max(start, range.start);
    int64_t end = std::min(start + size, range.start + range.size);
    if (first < end)
      met.push_back(
          {slice(builder, loc, piece, dim, {first - start, end - first}),
           {first - range.start, end - first}});
    start += size;
  }
  if (met.size() == 1)
    return met.front().first;
  RankedTensorType type = pieceType(value.getType(), {dim}, range.size);
  Value joined = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                         type.getElementType());
  for (auto [part, place] : met) {
    Selection all(builder, type, dim, place);
    joined = tensor::InsertSliceOp::create(builder, loc, part, joined,
                                           all.offsets, all.sizes, all.strides);
  }
  return joined;
}

/// A part of what is padded is a part with a padding of its own.
Value PieceTable::padPart(tensor::PadOp pad, unsigned dim,
                          PieceTable::Range range) {
  Location loc = pad.getLoc();
  int64_t low = pad.getStaticLow()[dim];
  int64_t extent = pad.getSourceType().getDimSize(dim);
  int64_t first = std::max<int64_t>(0, range.start - low);
  int64_t end = std::min(extent, range.start + range.size - low);
  Value filling = pad.getConstantPaddingValue();
  RankedTensorType type = pieceType(pad.getType(), {dim}, range.size);
  // A constant of the padding's body.
  if (Operation *inner = filling.getDefiningOp();
      inner && pad->isProperAncestor(inner))
    filling = builder.clone(*inner)->getResult(0);
  if (first >= end) {
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    return linalg::FillOp::create(builder, loc, filling, empty).getResult(0);
  }
  Value source = part(pad.getSource(), dim, {first, end - first});
  SmallVector<OpFoldResult> lows = pad.getMixedLowPad();
  SmallVector<OpFoldResult> highs = pad.getMixedHighPad();
  int64_t before = first + low - range.start;
  lows[dim] = builder.getIndexAttr(before);
  highs[dim] = builder.getIndexAttr(range.size - before - (end - first));
  return tensor::PadOp::create(builder, loc, type, source, lows, highs, filling,
                               pad.getNofold());
}
