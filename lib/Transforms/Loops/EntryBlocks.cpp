//===- EntryBlocks.cpp - Entries of key arrays in blocks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counting sort by blocks (D. E. Knuth, "The Art of Computer Programming",
/// volume 3, section 5.2, algorithm D), which keeps the order of a block's
/// entries.
///
//===----------------------------------------------------------------------===//

#include "EntryBlocks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

Value EntryBlocks::constant(int64_t of) {
  return arith::ConstantIndexOp::create(builder, loc, of);
}

Value EntryBlocks::at(Value tensor, Value index) {
  return tensor::ExtractOp::create(builder, loc, tensor, index);
}

Value EntryBlocks::asIndex(Value word) {
  return word.getType().isIndex()
             ? word
             : arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                          word);
}

/// The number of the block of entry \p entry, as an index.
Value EntryBlocks::blockOf(Value entry) {
  SmallVector<Value> key;
  bool hasSums = llvm::any_of(schedule.axes, [](ArrayRef<int64_t> form) {
    return llvm::count(form, 0) + 1 < static_cast<int64_t>(form.size());
  });
  for (auto [number, column] : llvm::enumerate(columns)) {
    Value element = asIndex(at(column, entry));
    // The body takes keys that are outside of their bounds to these, and so
    // must a sum of several, for the entry to be where its elements are.
    if (hasSums) {
      element = arith::MinSIOp::create(builder, loc, element,
                                       constant(op.getUppers()[number] - 1));
      element = arith::MaxSIOp::create(builder, loc, element,
                                       constant(op.getLowers()[number]));
    }
    key.push_back(element);
  }
  // The parts as one number, the last axis the fastest; then its block.
  Value flat = constant(0);
  int64_t places = 1;
  for (auto [form, cuts] : llvm::zip(schedule.axes, schedule.cuts)) {
    Value sum = constant(0);
    for (auto [factor, of] : llvm::zip(form, key))
      if (factor != 0)
        sum = arith::AddIOp::create(
            builder, loc, sum,
            arith::MulIOp::create(builder, loc, of, constant(factor)));
    auto parts = static_cast<int64_t>(cuts.size()) - 1;
    flat = arith::MulIOp::create(builder, loc, flat, constant(parts));
    for (int64_t cut : ArrayRef(cuts).drop_front().drop_back()) {
      Value above = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::sge, sum, constant(cut));
      flat = arith::AddIOp::create(builder, loc, flat,
                                   arith::SelectOp::create(builder, loc, above,
                                                           constant(1),
                                                           constant(0)));
    }
    places *= parts;
  }
  SmallVector<int32_t> numbers(places, 0);
  for (auto [number, block] : llvm::enumerate(schedule.blocks)) {
    int64_t place = 0;
    for (auto [part, cuts] : llvm::zip(block.parts, schedule.cuts))
      place = place * (static_cast<int64_t>(cuts.size()) - 1) + part;
    numbers[place] = static_cast<int32_t>(number);
  }
  auto type = RankedTensorType::get({places}, builder.getI32Type());
  Value table = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef(numbers)));
  return asIndex(at(table, flat));
}

/// \p column in the order of the sort.
Value EntryBlocks::sorted(Value column) {
  auto type = cast<RankedTensorType>(column.getType());
  auto loop = scf::ForOp::create(
      builder, loc, constant(0), constant(count), constant(1),
      tensor::EmptyOp::create(builder, loc, type.getShape(),
                              type.getElementType())
          .getResult());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value element = at(column, asIndex(at(order, loop.getInductionVar())));
  Value put = tensor::InsertOp::create(
      builder, loc, element, loop.getRegionIterArg(0), loop.getInductionVar());
  scf::YieldOp::create(builder, loc, put);
  return loop.getResult(0);
}

EntryBlocks::EntryBlocks(ForeachOp op, const loops::Schedule &schedule,
                         TensorWriter &outer, OpBuilder &builder)
    : op(op), schedule(schedule), outer(outer), builder(builder),
      loc(op.getLoc()),
      count(cast<MemRefType>(op.getKeyArrays()[0].getType()).getDimSize(0)) {
  for (Value array : op.getKeyArrays())
    columns.push_back(outer.read(array));
  auto blocks = static_cast<int64_t>(schedule.blocks.size());
  Type word = builder.getI32Type();
  Value one =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
  Value nothing =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  auto zeros = [&](int64_t size) {
    Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef(size), word);
    return linalg::FillOp::create(builder, loc, nothing, empty).getResult(0);
  };
  auto loopOver =
      [&](int64_t size, ValueRange inits,
          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
        auto loop = scf::ForOp::create(builder, loc, constant(0),
                                       constant(size), constant(1), inits);
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(loop.getBody());
        SmallVector<Value> ends =
            body(loop.getInductionVar(), loop.getRegionIterArgs());
        scf::YieldOp::create(builder, loc, ends);
        return loop;
      };
  auto put = [&](Value element, Value into, Value index) -> Value {
    return tensor::InsertOp::create(builder, loc, element, into, index);
  };
  auto add = [&](Value a, Value b) -> Value {
    return arith::AddIOp::create(builder, loc, a, b);
  };
  // How many entries are in each block, behind a place that stays 0; where
  // blocks begin; and where each entry goes.
  Value counts =
      loopOver(count, zeros(blocks + 1), [&](Value entry, ValueRange held) {
        Value behind = add(blockOf(entry), constant(1));
        return SmallVector<Value>{
            put(add(at(held[0], behind), one), held[0], behind)};
      }).getResult(0);
  starts = loopOver(blocks, counts, [&](Value block, ValueRange held) {
             Value behind = add(block, constant(1));
             Value sum = add(at(held[0], block), at(held[0], behind));
             return SmallVector<Value>{put(sum, held[0], behind)};
           }).getResult(0);
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef(count), word);
  order = loopOver(count, {empty, starts}, [&](Value entry, ValueRange held) {
            Value block = blockOf(entry);
            Value place = at(held[1], block);
            Value number =
                arith::IndexCastOp::create(builder, loc, word, entry);
            return SmallVector<Value>{put(number, held[0], asIndex(place)),
                                      put(add(place, one), held[1], block)};
          }).getResult(0);
  for (Value column : columns)
    keys.push_back(sorted(column));
  for (Value array : op.getValues())
    values.push_back(sorted(outer.read(array)));
  if (op.getBody().front().getTerminator()->getNumOperands() == 0)
    return;
  made.resize(schedule.workers);
  for (SmallVector<Value> &mine : made)
    for (Value value : values)
      mine.push_back(tensor::EmptyOp::create(
          builder, loc, ArrayRef(count),
          cast<RankedTensorType>(value.getType()).getElementType()));
}

std::pair<Value, Value> EntryBlocks::rangeOf(size_t block) {
  return {asIndex(at(starts, constant(block))),
          asIndex(at(starts, constant(block + 1)))};
}

LogicalResult EntryBlocks::writeBlock(size_t number, Location name,
                                      TensorWriter &writer,
                                      ArrayRef<Value> memrefs) {
  int32_t worker = schedule.blocks[number].worker;
  ValueRange carried = made.empty() ? ValueRange() : ValueRange(made[worker]);
  auto [from, to] = rangeOf(number);
  scf::ForOp loop =
      writer.openFor(name, from, to, constant(1), carried, memrefs);
  Value place = loop.getInductionVar();
  for (auto [key, column] : llvm::zip(op.getKeys(), keys))
    writer.values().map(key, asIndex(at(column, place)));
  for (auto [value, column] : llvm::zip(op.getEntryValues(), values))
    writer.values().map(value, at(column, place));
  Block &body = op.getBody().front();
  if (failed(writer.write(body)))
    return failure();
  SmallVector<Value> ends;
  for (auto [value, held] :
       llvm::zip(body.getTerminator()->getOperands(), loop.getRegionIterArgs()))
    ends.push_back(tensor::InsertOp::create(
        builder, loc, writer.values().lookupOrDefault(value), held, place));
  writer.closeFor(loop, ends, memrefs);
  if (!made.empty())
    made[worker].assign(loop.getResults().begin(),
                        loop.getResults().begin() + ends.size());
  return success();
}

void EntryBlocks::finish() {
  if (made.empty())
    return;
  for (auto [number, array] : llvm::enumerate(op.getValues())) {
    Value all = outer.read(array);
    for (auto [block, of] : llvm::enumerate(schedule.blocks)) {
      auto [from, to] = rangeOf(block);
      auto loop = scf::ForOp::create(builder, loc, from, to, constant(1), all);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value place = loop.getInductionVar();
      Value put = tensor::InsertOp::create(
          builder, loc, at(made[of.worker][number], place),
          loop.getRegionIterArg(0), asIndex(at(order, place)));
      scf::YieldOp::create(builder, loc, put);
      all = loop.getResult(0);
    }
    outer.assign(array, all);
  }
}
