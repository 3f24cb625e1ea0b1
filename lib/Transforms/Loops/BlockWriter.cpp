//===- BlockWriter.cpp - A loop's blocks over tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The form that python/baechi/loops/module_text.py writes loops in: between
/// blocks the pieces of arrays go from one to the next, and what neighbours
/// have changed of a piece's halo is a tensor of its own, which may be sent.
///
//===----------------------------------------------------------------------===//

#include "BlockWriter.h"
#include "EntryBlocks.h"
#include "MovingRows.h"
#include "OwnSums.h"
#include "RowWriter.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <map>

using namespace mlir;
using namespace baechi;
using LoopBlock = loops::Block;

namespace {
class BlockWriter : public RowWriter {
public:
  BlockWriter(ForeachOp op, const LoopModel &model, const BlockLayout &layout,
              unsigned number, TensorWriter &outer, OpBuilder &builder)
      : RowWriter(builder, op.getLoc()), op(op), model(model), layout(layout),
        number(number), outer(outer), builder(builder), loc(op.getLoc()) {}

  LogicalResult write();

private:
  size_t count() { return op.getArrays().size(); }
  const Pieces &piecesOf(size_t array) const { return layout.pieces[array]; }
  RankedTensorType wholeType(size_t array) {
    return tensorOf(cast<MemRefType>(op.getArrays()[array].getType()));
  }
  RankedTensorType pieceType(size_t array) {
    RankedTensorType whole = wholeType(array);
    return whole.clone(piecesOf(array).shape(whole.getShape()));
  }
  Location named(const Twine &name) {
    return NameLoc::get(builder.getStringAttr(name), loc);
  }
  Location nameOf(const LoopBlock &block);

  // Arrays.
  void cut(size_t array);
  void join(size_t array);
  Value sheared(size_t array, Value whole, bool back);
  void takeHalos(const std::vector<SmallVector<Value>> &earlier,
                 const LoopBlock &block);

  // Blocks.
  LogicalResult writeClock(ArrayRef<LoopBlock> blocks);
  LogicalResult writeBlock(const LoopBlock &block);
  LogicalResult writeKeys(TensorWriter &writer, const LoopBlock &block,
                          unsigned key, ArrayRef<Value> memrefs);
  LogicalResult writeEntry(TensorWriter &writer, ArrayRef<Value> memrefs);
  std::pair<Value, Value> rangeOf(TensorWriter &writer, const LoopBlock &block,
                                  unsigned key);

  ForeachOp op;
  const LoopModel &model;
  const BlockLayout &layout;
  unsigned number;
  TensorWriter &outer;
  OpBuilder &builder;
  Location loc;
  std::vector<SmallVector<Value>>
      state; ///< each array's pieces as they are now
  /// By array, piece and neighbour: what of this one its halo was taken from.
  llvm::DenseMap<std::pair<std::pair<size_t, size_t>, size_t>, Value> taken;
  llvm::DenseMap<std::pair<Value, Rows>, Value> strips;
  std::optional<EntryBlocks> entries;  ///< of key arrays
  std::map<size_t, MovingRows> moving; ///< by array
};
} // namespace

//===----------------------------------------------------------------------===//
// Arrays and pieces
//===----------------------------------------------------------------------===//

/// The array with its diagonals as rows, or \p back.
Value BlockWriter::sheared(size_t array, Value from, bool back) {
  const Pieces &pieces = piecesOf(array);
  auto [other, multiple, offset] = *pieces.shear;
  RankedTensorType whole = wholeType(array);
  SmallVector<int64_t> shape(whole.getShape());
  shape[pieces.dimension] = pieces.bounds.back();
  auto loop =
      scf::ForOp::create(builder, loc, constant(0), constant(shape[other]),
                         constant(1), empty(back ? whole : whole.clone(shape)));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Place straight(builder, whole.getShape());
  straight.offsets[other] = loop.getInductionVar();
  straight.sizes[other] = builder.getIndexAttr(1);
  Place along = straight;
  Value at = arith::MulIOp::create(builder, loc, loop.getInductionVar(),
                                   constant(multiple));
  at = arith::AddIOp::create(builder, loc, at, constant(offset));
  along.offsets[pieces.dimension] = at;
  const Place &source = back ? along : straight;
  const Place &target = back ? straight : along;
  Value line = tensor::ExtractSliceOp::create(
      builder, loc, from, source.offsets, source.sizes, source.strides);
  Value put = tensor::InsertSliceOp::create(
      builder, loc, line, loop.getRegionIterArg(0), target.offsets,
      target.sizes, target.strides);
  scf::YieldOp::create(builder, loc, put);
  return loop.getResult(0);
}

void BlockWriter::cut(size_t array) {
  const Pieces &pieces = piecesOf(array);
  Value whole = outer.read(op.getArrays()[array]);
  SmallVector<Value> &made = state.emplace_back();
  if (!pieces.isCut()) {
    made.push_back(whole);
    if (pieces.isMoving())
      moving.try_emplace(array, *this, model.loop.arrays[array].name,
                         pieces.dimension, whole);
    return;
  }
  if (pieces.shear)
    whole = sheared(array, whole, /*back=*/false);
  int64_t extent = pieces.bounds.back();
  for (size_t part = 0; part < pieces.count(); ++part) {
    int64_t first = pieces.first(part);
    Rows inside(std::max<int64_t>(first, 0),
                std::min(first + pieces.length(), extent));
    if (inside.first >= inside.second) {
      made.push_back(empty(pieceType(array)));
      continue;
    }
    Value rows = rowsOf(whole, pieces.dimension, inside);
    if (inside.second - inside.first < pieces.length())
      rows = putRows(rows, empty(pieceType(array)), pieces.dimension,
                     inside.first - first);
    made.push_back(rows);
  }
  for (size_t part = 0; part < pieces.count(); ++part)
    for (const Pieces::Halo &halo : pieces.halos(part))
      taken[{{array, part}, halo.piece}] = made[halo.piece];
}

void BlockWriter::join(size_t array) {
  const Pieces &pieces = piecesOf(array);
  Value memref = op.getArrays()[array];
  if (!pieces.written)
    return;
  if (pieces.isMoving())
    return outer.assign(memref, moving.at(array).all());
  if (!pieces.isCut())
    return outer.assign(memref, state[array][0]);
  RankedTensorType type = wholeType(array);
  SmallVector<int64_t> shape(type.getShape());
  shape[pieces.dimension] = pieces.bounds.back();
  Value whole = empty(type.clone(shape));
  for (auto [part, piece] : llvm::enumerate(state[array])) {
    int64_t first = pieces.bounds[part], end = pieces.bounds[part + 1];
    if (first == end)
      continue;
    Value own = rowsOf(piece, pieces.dimension,
                       {pieces.below, pieces.below + end - first});
    whole = putRows(own, whole, pieces.dimension, first);
  }
  if (pieces.shear)
    whole = sheared(array, whole, /*back=*/true);
  outer.assign(memref, whole);
}

Location BlockWriter::nameOf(const LoopBlock &block) {
  std::string parts;
  for (int32_t part : block.parts)
    parts += (parts.empty() ? "" : "-") + std::to_string(part);
  return named("block/" + Twine(number) + "/" + parts);
}

/// What neighbours have changed of a block's halos.
void BlockWriter::takeHalos(const std::vector<SmallVector<Value>> &earlier,
                            const LoopBlock &block) {
  for (size_t array = 0; array < count(); ++array) {
    const Pieces &pieces = piecesOf(array);
    if (!pieces.isCut() || !pieces.written)
      continue;
    size_t part = pieces.part(block.parts);
    for (const Pieces::Halo &halo : pieces.halos(part)) {
      Value source = earlier[array][halo.piece];
      Value &last = taken[{{array, part}, halo.piece}];
      if (last == source)
        continue;
      last = source;
      Rows rows(halo.first - pieces.first(halo.piece),
                halo.end - pieces.first(halo.piece));
      Value &strip = strips[{source, rows}];
      if (!strip)
        strip = copyOf(rowsOf(source, pieces.dimension, rows), pieces.dimension,
                       "strip/" + model.loop.arrays[array].name + "/" +
                           Twine(halo.piece) + "-" + Twine(halo.first) + "@" +
                           Twine(block.clock));
      state[array][part] = putRows(strip, state[array][part], pieces.dimension,
                                   halo.first - pieces.first(part));
    }
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The values of \p key in a block, by those of the keys before it.
std::pair<Value, Value> BlockWriter::rangeOf(TensorWriter &writer,
                                             const LoopBlock &block,
                                             unsigned key) {
  const loops::Key &of = model.loop.keys[key];
  int64_t lower = of.lower, upper = of.upper;
  Value from, to;
  auto ceil = [&](Value sum, int64_t factor) -> Value {
    return factor == 1 ? sum
                       : arith::CeilDivSIOp::create(builder, loc, sum,
                                                    constant(factor));
  };
  auto clip = [&](Value low, Value high) {
    from = from ? arith::MaxSIOp::create(builder, loc, from, low) : low;
    to = to ? arith::MinSIOp::create(builder, loc, to, high) : high;
  };
  for (auto [axis, form] : llvm::enumerate(layout.schedule.axes)) {
    const std::vector<int64_t> &cuts = layout.schedule.cuts[axis];
    int64_t first = cuts[block.parts[axis]], end = cuts[block.parts[axis] + 1];
    // The last key of a sum is bounded by it.
    if (form[key] == 0 ||
        llvm::any_of(ArrayRef(form).drop_front(key + 1),
                     [](int64_t factor) { return factor != 0; }))
      continue;
    if (form[key] == 1 &&
        llvm::count(form, 0) + 1 == static_cast<int64_t>(form.size())) {
      lower = std::max(lower, first);
      upper = std::min(upper, end);
      continue;
    }
    Value sum = constant(0);
    for (unsigned before = 0; before < key; ++before)
      if (form[before] != 0)
        sum = arith::AddIOp::create(
            builder, loc, sum,
            arith::MulIOp::create(builder, loc,
                                  writer.values().lookup(op.getKeys()[before]),
                                  constant(form[before])));
    // first <= sum + factor * key < end
    int64_t factor = form[key];
    if (factor > 0)
      clip(ceil(arith::SubIOp::create(builder, loc, constant(first), sum),
                factor),
           ceil(arith::SubIOp::create(builder, loc, constant(end), sum),
                factor));
    else
      clip(ceil(arith::SubIOp::create(builder, loc, sum, constant(end - 1)),
                -factor),
           ceil(arith::SubIOp::create(builder, loc, sum, constant(first - 1)),
                -factor));
  }
  if (from)
    clip(constant(lower), constant(std::max(lower, upper)));
  else
    std::tie(from, to) =
        std::pair(constant(lower), constant(std::max(lower, upper)));
  return {from, to};
}

LogicalResult BlockWriter::writeEntry(TensorWriter &writer,
                                      ArrayRef<Value> memrefs) {
  auto body = [&]() -> FailureOr<SmallVector<Value>> {
    if (failed(writer.write(op.getBody().front())))
      return failure();
    return SmallVector<Value>();
  };
  if (!op.getWhere())
    return LogicalResult(body());
  SmallVector<Value> keys, none;
  for (Value key : op.getKeys())
    keys.push_back(writer.values().lookup(key));
  Value inside;
  for (auto [constraint, isEquation] : llvm::zip(
           op.getWhere()->getConstraints(), op.getWhere()->getEqFlags())) {
    Value holds = arith::CmpIOp::create(
        builder, loc,
        isEquation ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge,
        affine::expandAffineExpr(builder, loc, constraint, keys, {}),
        constant(0));
    inside = inside ? Value(arith::AndIOp::create(builder, loc, inside, holds))
                    : holds;
  }
  return writer.writeIf(loc, inside, {}, memrefs, body, nullptr, none);
}

LogicalResult BlockWriter::writeKeys(TensorWriter &writer,
                                     const LoopBlock &block, unsigned key,
                                     ArrayRef<Value> memrefs) {
  if (key == op.getNumKeys())
    return writeEntry(writer, memrefs);
  auto [from, to] = rangeOf(writer, block, key);
  auto first = getConstantIntValue(from), end = getConstantIntValue(to);
  bool isKnown = first && end;
  // Counters begin at 0, so that blocks of one size may be the same kernel.
  scf::ForOp loop = writer.openFor(
      key == 0 ? nameOf(block) : loc, isKnown ? constant(0) : from,
      isKnown ? constant(*end - *first) : to, constant(1), {}, memrefs);
  Value counter = loop.getInductionVar();
  if (isKnown && *first != 0)
    counter = arith::AddIOp::create(builder, loc, counter, from);
  writer.values().map(op.getKeys()[key], counter);
  if (failed(writeKeys(writer, block, key + 1, memrefs)))
    return failure();
  writer.closeFor(loop, {}, memrefs);
  return success();
}

LogicalResult BlockWriter::writeBlock(const LoopBlock &block) {
  // One for each: what the body allocates is new in each block.
  TensorWriter writer(builder);
  writer.values() = outer.values();
  size_t which = &block - layout.schedule.blocks.data();
  SmallVector<Value> written;
  for (auto [array, memref] : llvm::enumerate(op.getBodyArrays())) {
    const Pieces &pieces = piecesOf(array);
    size_t part = pieces.part(block.parts);
    std::optional<Window> window;
    if (pieces.isCut()) {
      window = Window{pieces.dimension, pieces.first(part), std::nullopt, 0};
      if (pieces.shear) {
        window->first -= pieces.shear->offset;
        window->sheared = pieces.shear->other;
        window->multiple = pieces.shear->multiple;
      }
    }
    Value piece = state[array][part];
    if (pieces.isMoving()) {
      loops::Span touched = pieces.touched[which];
      window = Window{pieces.dimension, touched.first, std::nullopt, 0};
      piece = moving.at(array).gather(touched, pieces.length());
    }
    writer.keep(memref, piece, window);
    if (pieces.written)
      written.push_back(memref);
  }
  if (failed(entries
                 ? entries->writeBlock(which, nameOf(block), writer, written)
                 : writeKeys(writer, block, 0, written)))
    return failure();
  for (auto [array, memref] : llvm::enumerate(op.getBodyArrays()))
    if (piecesOf(array).isMoving())
      moving.at(array).put(piecesOf(array).changed[which],
                           writer.current(memref),
                           piecesOf(array).touched[which].first);
    else if (piecesOf(array).written)
      state[array][piecesOf(array).part(block.parts)] = writer.current(memref);
  return success();
}

LogicalResult BlockWriter::writeClock(ArrayRef<LoopBlock> blocks) {
  SmallVector<size_t> own;
  for (size_t array = 0; array < count(); ++array)
    if (piecesOf(array).kind == Pieces::Kind::Reduced ||
        piecesOf(array).kind == Pieces::Kind::Buffered)
      own.push_back(array);
  // No block of a clock changes what another reads: halos are from before them
  // all.
  const std::vector<SmallVector<Value>> before = state;
  std::vector<SmallVector<Value>> changed(count());
  for (const LoopBlock &block : blocks) {
    for (size_t array : own)
      state[array][0] =
          piecesOf(array).kind == Pieces::Kind::Reduced
              ? ownStart(builder, loc, model, array, wholeType(array))
              : before[array][0];
    takeHalos(before, block);
    if (failed(writeBlock(block)))
      return failure();
    for (size_t array : own)
      changed[array].push_back(state[array][0]);
  }
  for (size_t array : own) {
    bool reduced = piecesOf(array).kind == Pieces::Kind::Reduced;
    Type element = wholeType(array).getElementType();
    Value total = before[array][0];
    for (Value one : changed[array])
      total = reduced ? withOwn(builder, loc, model, array, total, one)
                      : combined(builder, loc, total,
                                 combined(builder, loc, one, before[array][0],
                                          operationOf("sub", element)),
                                 operationOf("add", element));
    state[array][0] = total;
  }
  return success();
}

LogicalResult BlockWriter::write() {
  for (size_t array = 0; array < count(); ++array)
    cut(array);
  if (op.isSparse())
    entries.emplace(op, layout.schedule, outer, builder);
  ArrayRef<LoopBlock> blocks = layout.schedule.blocks;
  while (!blocks.empty()) {
    ArrayRef<LoopBlock> clock = blocks.take_while([&](const LoopBlock &block) {
      return block.clock == blocks.front().clock;
    });
    if (failed(writeClock(clock)))
      return failure();
    blocks = blocks.drop_front(clock.size());
  }
  for (size_t array = 0; array < count(); ++array)
    join(array);
  if (entries)
    entries->finish();
  return success();
}

LogicalResult baechi::writeBlocks(ForeachOp op, const LoopModel &model,
                                  const BlockLayout &layout, unsigned number,
                                  TensorWriter &writer, OpBuilder &builder) {
  return BlockWriter(op, model, layout, number, writer, builder).write();
}
