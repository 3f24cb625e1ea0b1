//===- RowLoops.cpp - Kernels that compute row by row -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowGroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

//===----------------------------------------------------------------------===//
// Elementwise: one operation with several results
//===----------------------------------------------------------------------===//

static SmallVector<Value> mergeElementwise(OpBuilder &builder, Location loc,
                                           ArrayRef<GenericOp> members,
                                           ValueRange outputs) {
  DenseSet<Operation *> inside(members.begin(), members.end());
  SetVector<std::pair<Value, AffineMap>> inputs;
  for (GenericOp op : members)
    for (OpOperand *input : op.getDpsInputOperands())
      if (!inside.contains(input->get().getDefiningOp()))
        inputs.insert({input->get(), op.getMatchingIndexingMap(input)});

  SmallVector<Value> operands, inits;
  SmallVector<AffineMap> maps;
  for (auto [value, map] : inputs) {
    operands.push_back(value);
    maps.push_back(map);
  }
  for (Value output : outputs) {
    auto result = cast<OpResult>(output);
    OpOperand *init = cast<GenericOp>(result.getOwner())
                          .getDpsInitOperand(result.getResultNumber());
    inits.push_back(init->get());
    maps.push_back(
        cast<GenericOp>(result.getOwner()).getMatchingIndexingMap(init));
  }

  auto buildBody = [&](OpBuilder &body, Location loc, ValueRange arguments) {
    IRMapping scalars;
    for (GenericOp op : members) {
      IRMapping mapping;
      for (OpOperand *input : op.getDpsInputOperands()) {
        auto found = llvm::find(
            inputs, std::pair(input->get(), op.getMatchingIndexingMap(input)));
        mapping.map(op.getMatchingBlockArgument(input),
                    inside.contains(input->get().getDefiningOp())
                        ? scalars.lookup(input->get())
                        : arguments[found - inputs.begin()]);
      }
      for (Operation &inner : op.getBody()->without_terminator())
        body.clone(inner, mapping);
      for (auto [result, yielded] : llvm::zip_equal(
               op->getResults(), op.getBody()->getTerminator()->getOperands()))
        scalars.map(result, mapping.lookupOrDefault(yielded));
    }
    SmallVector<Value> yielded;
    for (Value output : outputs)
      yielded.push_back(scalars.lookup(output));
    linalg::YieldOp::create(body, loc, yielded);
  };
  GenericOp first = members.front();
  auto merged =
      GenericOp::create(builder, loc, outputs.getTypes(), operands, inits, maps,
                        first.getIteratorTypesArray(), buildBody);
  return merged.getResults();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
/// Builds the row of each member inside of the loops over rows.
class RowBuilder {
public:
  RowBuilder(OpBuilder &builder, Location loc, ValueRange rowIndices,
             ValueRange outputs, ValueRange buffers)
      : builder(builder), loc(loc), rowIndices(rowIndices) {
    for (auto [output, buffer] : llvm::zip_equal(outputs, buffers))
      bufferOf.map(output, buffer);
  }

  void add(GenericOp op);
  /// The tensor `output` with the row inserted.
  Value insert(Value output);

private:
  struct Position {
    SmallVector<OpFoldResult> offsets, sizes, strides;
  };
  Position positionOf(OpResult result);
  Value initFor(OpResult result, RankedTensorType type);
  void tile(GenericOp op, SmallVector<OpFoldResult> &offsets,
            SmallVector<OpFoldResult> &sizes);

  OpBuilder &builder;
  Location loc;
  ValueRange rowIndices;
  /// What the loops carry for each output; the row of each result so far.
  IRMapping bufferOf, rowOf;
};
} // namespace

void RowBuilder::tile(GenericOp op, SmallVector<OpFoldResult> &offsets,
                      SmallVector<OpFoldResult> &sizes) {
  for (auto [loop, range] : llvm::enumerate(op.getStaticLoopRanges())) {
    bool row = loop < rowIndices.size();
    offsets.push_back(row ? OpFoldResult(rowIndices[loop])
                          : builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(row ? 1 : range));
  }
}

RowBuilder::Position RowBuilder::positionOf(OpResult result) {
  auto op = cast<GenericOp>(result.getOwner());
  SmallVector<OpFoldResult> offsets, sizes;
  tile(op, offsets, sizes);
  Position position;
  (void)cast<TilingInterface>(op.getOperation())
      .getResultTilePosition(builder, result.getResultNumber(), offsets, sizes,
                             position.offsets, position.sizes);
  position.strides.assign(position.offsets.size(), builder.getIndexAttr(1));
  return position;
}

/// Where the row of `result` is computed: in the output, or in a tensor of its
/// own when no other kernel reads it; filled as the whole result was.
Value RowBuilder::initFor(OpResult result, RankedTensorType type) {
  Operation *init = cast<GenericOp>(result.getOwner())
                        .getDpsInits()[result.getResultNumber()]
                        .getDefiningOp();
  Value row;
  if (Value buffer = bufferOf.lookupOrNull(result)) {
    Position at = positionOf(result);
    row = tensor::ExtractSliceOp::create(builder, loc, type, buffer, at.offsets,
                                         at.sizes, at.strides);
  } else {
    row = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                  type.getElementType());
  }
  if (auto fill = dyn_cast<FillOp>(init))
    row = FillOp::create(builder, loc, fill.getInputs(), row).result();
  return row;
}

void RowBuilder::add(GenericOp op) {
  SmallVector<OpFoldResult> offsets, sizes;
  tile(op, offsets, sizes);
  auto tiling = cast<TilingInterface>(op.getOperation())
                    .getTiledImplementation(builder, offsets, sizes);
  auto row = cast<GenericOp>(tiling->tiledOps.front());
  for (OpOperand *input : op.getDpsInputOperands())
    if (Value known = rowOf.lookupOrNull(input->get()))
      row->setOperand(input->getOperandNumber(), known);
  builder.setInsertionPoint(row);
  for (OpResult result : op->getResults()) {
    unsigned number = result.getResultNumber();
    if (isa_and_nonnull<tensor::EmptyOp, FillOp>(
            op.getDpsInits()[number].getDefiningOp()))
      row.getDpsInitsMutable()[number].assign(initFor(
          result, cast<RankedTensorType>(row.getResult(number).getType())));
    rowOf.map(result, row.getResult(number));
  }
  builder.setInsertionPointAfter(row);
}

Value RowBuilder::insert(Value output) {
  Position at = positionOf(cast<OpResult>(output));
  return tensor::InsertSliceOp::create(builder, loc, rowOf.lookup(output),
                                       bufferOf.lookup(output), at.offsets,
                                       at.sizes, at.strides);
}

static SmallVector<Value> loopOverRows(OpBuilder &builder, Location loc,
                                       ArrayRef<GenericOp> members,
                                       ValueRange outputs,
                                       ArrayRef<int64_t> rows) {
  SmallVector<Value> buffers, lower, upper, steps;
  for (Value output : outputs) {
    auto type = cast<RankedTensorType>(output.getType());
    buffers.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                              type.getElementType()));
  }
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  for (int64_t extent : rows) {
    lower.push_back(zero);
    upper.push_back(arith::ConstantIndexOp::create(builder, loc, extent));
    steps.push_back(one);
  }
  scf::LoopNest nest = scf::buildLoopNest(
      builder, loc, lower, upper, steps, buffers,
      [&](OpBuilder &body, Location loc, ValueRange rowIndices,
          ValueRange carried) {
        RowBuilder row(body, loc, rowIndices, outputs, carried);
        for (GenericOp op : members)
          row.add(op);
        // All at the end: an insertion before the last read would be a copy.
        SmallVector<Value> inserted;
        for (Value output : outputs)
          inserted.push_back(row.insert(output));
        return inserted;
      });
  eraseDead(*nest.loops.back().getBody());
  return nest.results;
}

void formkernels::fuseRows(func::FuncOp kernel, ArrayRef<int64_t> rows,
                           bool loops) {
  Block &block = kernel.front();
  auto members = llvm::to_vector(block.getOps<GenericOp>());
  Operation *terminator = block.getTerminator();
  SmallVector<Value> outputs(terminator->getOperands());
  OpBuilder builder(terminator);
  bool elementwise = llvm::all_of(
      members, [&](GenericOp op) { return op.getNumLoops() == rows.size(); });
  if (!elementwise && !loops)
    return;
  terminator->setOperands(
      elementwise
          ? mergeElementwise(builder, kernel.getLoc(), members, outputs)
          : loopOverRows(builder, kernel.getLoc(), members, outputs, rows));
  eraseDead(block);
}
