//===- PieceTable.cpp - Pieces of values ----------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pieces.h"
#include "Uniform.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

RankedTensorType split::pieceType(Type whole, CutPosition position,
                                  int64_t size) {
  auto type = cast<RankedTensorType>(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[position.dim] = position.outer * size * position.inner;
  return type.clone(shape);
}

/// Splits dimension `at` of a tensor in two, of `outer` and of all other
/// elements: the extent then leads the second.
static Value separateOuter(OpBuilder &builder, Location loc, Value tensor,
                           CutPosition position) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<ReassociationIndices> groups;
  for (unsigned dim = 0, next = 0, n = shape.size(); dim < n; ++dim) {
    groups.emplace_back().push_back(next++);
    if (dim == position.dim)
      groups.back().push_back(next++);
  }
  shape[position.dim] /= position.outer;
  shape.insert(shape.begin() + position.dim, position.outer);
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), tensor,
                                       groups);
}

/// And back.
static Value joinOuter(OpBuilder &builder, Location loc, Value tensor,
                       CutPosition position) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<ReassociationIndices> groups;
  for (unsigned dim = 0, n = type.getRank(); dim < n; ++dim) {
    if (dim != position.dim + 1)
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return tensor::CollapseShapeOp::create(builder, loc, tensor, groups);
}

/// Where elements `start` to `start + size` of the extent lie in a tensor whose
/// outer part has been separated.
static void selectRange(OpBuilder &builder, ArrayRef<int64_t> shape,
                        unsigned dim, int64_t start, int64_t size,
                        SmallVector<OpFoldResult> &offsets,
                        SmallVector<OpFoldResult> &sizes,
                        SmallVector<OpFoldResult> &strides) {
  for (int64_t length : shape) {
    offsets.push_back(builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(length));
    strides.push_back(builder.getIndexAttr(1));
  }
  offsets[dim] = builder.getIndexAttr(start);
  sizes[dim] = builder.getIndexAttr(size);
}

static SmallVector<Value> sliceWhole(OpBuilder &builder, Value value,
                                     ArrayRef<int64_t> sizes,
                                     CutPosition position) {
  SmallVector<Value> pieces;
  Location loc = value.getLoc();
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) {
    for (int64_t size : sizes)
      pieces.push_back(arith::ConstantOp::create(
          builder, loc,
          constant.resizeSplat(pieceType(value.getType(), position, size))));
    return pieces;
  }
  bool separate = position.outer != 1;
  unsigned dim = position.dim + separate;
  if (separate)
    value = separateOuter(builder, loc, value, position);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  int64_t start = 0;
  for (int64_t size : sizes) {
    SmallVector<OpFoldResult> offsets, lengths, strides;
    selectRange(builder, shape, dim, start * position.inner,
                size * position.inner, offsets, lengths, strides);
    Value piece = tensor::ExtractSliceOp::create(builder, loc, value, offsets,
                                                 lengths, strides);
    pieces.push_back(separate ? joinOuter(builder, loc, piece, position)
                              : piece);
    start += size;
  }
  return pieces;
}

Value split::assemble(OpBuilder &builder, Value value, ArrayRef<Value> pieces,
                      ArrayRef<int64_t> sizes, CutPosition position) {
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  bool separate = position.outer != 1;
  unsigned dim = position.dim + separate;
  SmallVector<int64_t> shape(type.getShape());
  if (separate) {
    shape[position.dim] /= position.outer;
    shape.insert(shape.begin() + position.dim, position.outer);
  }
  Value whole =
      tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  int64_t start = 0;
  for (auto [piece, size] : llvm::zip_equal(pieces, sizes)) {
    SmallVector<OpFoldResult> offsets, lengths, strides;
    selectRange(builder, shape, dim, start * position.inner,
                size * position.inner, offsets, lengths, strides);
    Value part =
        separate ? separateOuter(builder, loc, piece, position) : piece;
    whole = tensor::InsertSliceOp::create(builder, loc, part, whole, offsets,
                                          lengths, strides);
    start += size;
  }
  return separate ? joinOuter(builder, loc, whole, position) : whole;
}

SmallVector<Value> PieceTable::pieces(Value value, ArrayRef<int64_t> sizes,
                                      CutPosition position) {
  for (const Layout &set : held[value])
    if (ArrayRef(set.sizes) == sizes && set.position == position)
      return set.pieces;
  SmallVector<Value> made;
  if (auto result = dyn_cast<OpResult>(value); result && isUniform(value))
    made = computePieces(builder, result, sizes, position, *this);
  else if (joinedInPieces.contains(value) && !isSmallSum(value))
    made = joinPieces(value, sizes, position);
  if (made.empty())
    made = sliceWhole(builder, whole(value), sizes, position);
  held[value].push_back({SmallVector<int64_t>(sizes), position, made});
  return made;
}

/// Each piece is added up where it is read, in the order of the whole.
SmallVector<Value> PieceTable::joinPieces(Value value, ArrayRef<int64_t> sizes,
                                          CutPosition position) {
  const Partials &parts = partial.find(value)->second;
  SmallVector<SmallVector<Value>> slices(sizes.size());
  for (Value each : parts.values)
    for (auto [piece, part] :
         llvm::enumerate(sliceWhole(builder, each, sizes, position)))
      slices[piece].push_back(part);
  SmallVector<Value> joined;
  for (auto [piece, summands] : llvm::enumerate(slices))
    joined.push_back(joinInPairs(
        builder, namedAfter(value.getDefiningOp(), ".sum.piece" + Twine(piece)),
        summands, parts.combiner));
  return joined;
}

void PieceTable::setPieces(Value value, ArrayRef<int64_t> sizes,
                           CutPosition position, ArrayRef<Value> pieces) {
  held[value].push_back({SmallVector<int64_t>(sizes), position,
                         SmallVector<Value>(pieces),
                         /*isMade=*/true});
  wholes[value] = nullptr; // until asked for
}

Value PieceTable::whole(Value value) {
  auto found = wholes.find(value);
  if (found == wholes.end())
    return value;
  if (!found->second && isSmallSum(value)) {
    // One of the pieces' own: which, in turn.
    const SmallVector<Value> &sums = repeatSum(value);
    Value sum = sums[turn++ % sums.size()];
    sumOf[sum] = value;
    return wholes[value] = sum;
  }
  if (auto parts = partial.find(value);
      !found->second && parts != partial.end())
    found->second = (parts->second.chained ? joinInOrder : joinInPairs)(
        builder, namedAfter(value.getDefiningOp(), ".sum"),
        parts->second.values, parts->second.combiner);
  // Storage stays that: what is known of it decides what readers become.
  if (auto fill = value.getDefiningOp<linalg::FillOp>(); fill && !found->second)
    found->second =
        linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(),
                               whole(fill.output()))
            .getResult(0);
  else if (auto empty = value.getDefiningOp<tensor::EmptyOp>();
           empty && !found->second)
    found->second = builder.clone(*empty)->getResult(0);
  if (!found->second) {
    const Layout &made = held[value].front();
    found->second =
        assemble(builder, value, made.pieces, made.sizes, made.position);
  }
  return found->second;
}

ArrayRef<PieceTable::Layout> PieceTable::layouts(Value value) const {
  auto found = held.find(value);
  return found == held.end() ? ArrayRef<Layout>() : found->second;
}

const PieceTable::Layout *PieceTable::madeIn(Value value) const {
  ArrayRef<Layout> all = layouts(value);
  return !all.empty() && all.front().isMade ? &all.front() : nullptr;
}

ArrayRef<Value> PieceTable::partials(Value value) const {
  auto found = partial.find(value);
  return found == partial.end() ? ArrayRef<Value>() : found->second.values;
}

void PieceTable::setPartials(Value value, ArrayRef<Value> partials,
                             Operation *combiner, bool chained) {
  partial[value] = {SmallVector<Value>(partials), combiner, chained};
  wholes[value] = nullptr; // until asked for
}
