//===- LaneSums.cpp - Sums in one order, as loops -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/LaneSums.h"
#include "Baechi/Analysis/ExactSums.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace baechi;

void baechi::fixFloatingPoint(func::FuncOp kernel) {
  SmallVector<std::pair<arith::AddFOp, arith::MulFOp>> fused;
  kernel.walk([&](arith::AddFOp sum) {
    if (arith::MulFOp product = fusedProductOf(sum))
      fused.push_back({sum, product});
  });
  for (auto [sum, product] : fused) {
    OpBuilder builder(sum);
    Value rest =
        sum.getLhs() == product.getResult() ? sum.getRhs() : sum.getLhs();
    // As register tiles do, whatever the host makes of it.
    Value added = LLVM::FMulAddOp::create(
        builder, sum.getLoc(), product.getLhs(), product.getRhs(), rest);
    sum.getResult().replaceAllUsesWith(added);
    sum.erase();
  }
  clearFastMath(kernel);
}

namespace {
/// The loops of one reduction.
class LaneSum {
public:
  LaneSum(RewriterBase &builder, linalg::GenericOp op, Value lanes)
      : builder(builder), op(op), loc(op.getLoc()), lanes(lanes),
        sum(laneSumOf(op)), last(*lastReductionLoop(op)),
        ranges(op.getStaticLoopRanges()), indices(op.getNumLoops()) {}

  void emit();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// Enters a loop of so many iterations, none for one.
  Value enter(int64_t size) {
    if (size == 1)
      return index(0);
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(size), index(1));
    builder.setInsertionPointToStart(loop.getBody());
    return loop.getInductionVar();
  }
  void enterAll(utils::IteratorType kind) {
    for (auto [loop, each] : llvm::enumerate(op.getIteratorTypesArray()))
      if (each == kind && loop != last)
        indices[loop] = enter(ranges[loop]);
  }
  SmallVector<Value> placeOf(OpOperand &operand) {
    SmallVector<Value> place;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (AffineExpr expr : map.getResults())
      place.push_back(affine::AffineApplyOp::create(
          builder, loc, AffineMap::get(map.getNumDims(), 0, expr), indices));
    return place;
  }
  Value load(OpOperand &operand) {
    if (!isa<MemRefType>(operand.get().getType()))
      return operand.get();
    return memref::LoadOp::create(builder, loc, operand.get(),
                                  placeOf(operand));
  }
  void cloneBody(Operation &inner, IRMapping &mapping);
  void addTerms(int64_t count, Value first);
  void addLanes();

  RewriterBase &builder;
  linalg::GenericOp op;
  Location loc;
  Value lanes;
  arith::AddFOp sum;
  unsigned last;
  SmallVector<int64_t> ranges;
  SmallVector<Value> indices;
};
} // namespace

/// Clones an operation; the positions that its regions read are known.
void LaneSum::cloneBody(Operation &inner, IRMapping &mapping) {
  Operation *copy = builder.clone(inner, mapping);
  SmallVector<linalg::IndexOp> positions;
  copy->walk([&](linalg::IndexOp at) { positions.push_back(at); });
  for (linalg::IndexOp at : positions) {
    at.getResult().replaceAllUsesWith(indices[at.getDim()]);
    at.erase();
  }
}

/// Adds to the first so many lanes the terms from `first` on.
void LaneSum::addTerms(int64_t count, Value first) {
  OpBuilder::InsertionGuard guard(builder);
  Value lane = enter(count);
  indices[last] = arith::AddIOp::create(builder, loc, first, lane);
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands())
    mapping.map(op.getMatchingBlockArgument(input), load(*input));
  Value so = memref::LoadOp::create(builder, loc, lanes, lane);
  mapping.map(op.getRegionOutputArgs().front(), so);
  for (auto position : op.getBody()->getOps<linalg::IndexOp>())
    mapping.map(position.getResult(), indices[position.getDim()]);
  for (Operation &inner : op.getBody()->without_terminator())
    if (!isa<linalg::IndexOp>(inner))
      cloneBody(inner, mapping);
  memref::StoreOp::create(builder, loc, mapping.lookup(sum.getResult()), lanes,
                          lane);
}

/// Adds the lanes in pairs, and their sum to the result.
void LaneSum::addLanes() {
  SmallVector<Value> values;
  for (int64_t lane = 0; lane < kSumLanes; ++lane)
    values.push_back(memref::LoadOp::create(builder, loc, lanes, index(lane)));
  for (size_t half = values.size() / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane)
      values[lane] = arith::AddFOp::create(builder, loc, values[lane],
                                           values[lane + half]);
  OpOperand &result = *op.getDpsInitOperand(0);
  Value all = arith::AddFOp::create(builder, loc, load(result), values[0]);
  memref::StoreOp::create(builder, loc, all, result.get(), placeOf(result));
}

void LaneSum::emit() {
  builder.setInsertionPoint(op);
  enterAll(utils::IteratorType::parallel);
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(sum.getType(), 0));
  {
    OpBuilder::InsertionGuard guard(builder);
    Value lane = enter(kSumLanes);
    memref::StoreOp::create(builder, loc, zero, lanes, lane);
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    enterAll(utils::IteratorType::reduction);
    int64_t whole = ranges[last] / kSumLanes;
    {
      OpBuilder::InsertionGuard inner(builder);
      Value first =
          arith::MulIOp::create(builder, loc, enter(whole), index(kSumLanes));
      addTerms(kSumLanes, first);
    }
    if (int64_t left = ranges[last] % kSumLanes)
      addTerms(left, index(whole * kSumLanes));
  }
  addLanes();
}

void baechi::lowerLaneSum(RewriterBase &rewriter, linalg::GenericOp op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  // The stack will hold it (placeAllocations).
  Value lanes = memref::AllocOp::create(
      rewriter, op.getLoc(),
      MemRefType::get({kSumLanes}, laneSumOf(op).getType()),
      rewriter.getI64IntegerAttr(64));
  LaneSum(rewriter, op, lanes).emit();
  rewriter.eraseOp(op);
}
