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
#include <numeric>

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
  /// \p lanes: of each result that is a sum.
  LaneSum(RewriterBase &builder, linalg::GenericOp op, ArrayRef<Value> lanes)
      : builder(builder), op(op), loc(op.getLoc()), lanes(lanes),
        sums(laneSumsOf(op)), last(*lastReductionLoop(op)),
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
  /// To the first of \p lanes. (Of its address as a number LLVM would know
  /// nothing.)
  Value pointerTo(Value lanes) {
    MLIRContext *context = builder.getContext();
    Type pointer = LLVM::LLVMPointerType::get(context),
         number = builder.getI64Type(),
         extent = LLVM::LLVMArrayType::get(number, 1);
    auto descriptor = LLVM::LLVMStructType::getLiteral(
        context, {pointer, pointer, number, extent, extent});
    Value buffer =
        UnrealizedConversionCastOp::create(builder, loc, descriptor, lanes)
            .getResult(0);
    return LLVM::ExtractValueOp::create(builder, loc, buffer, 1);
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
  void addTerms(int64_t count, Value first, int64_t firstLane = 0);
  void addLast(int64_t count, int64_t first);
  void addLanes(Value lanes, OpOperand &result);

  RewriterBase &builder;
  linalg::GenericOp op;
  Location loc;
  ArrayRef<Value> lanes;
  SmallVector<arith::AddFOp> sums;
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

/// Adds to so many lanes the terms from `first` on.
void LaneSum::addTerms(int64_t count, Value first, int64_t firstLane) {
  OpBuilder::InsertionGuard guard(builder);
  Value lane = enter(count);
  indices[last] = arith::AddIOp::create(builder, loc, first, lane);
  lane = arith::AddIOp::create(builder, loc, index(firstLane), lane);
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands())
    mapping.map(op.getMatchingBlockArgument(input), load(*input));
  for (auto [soFar, each] : llvm::zip_equal(op.getRegionOutputArgs(), lanes))
    if (each)
      mapping.map(soFar,
                  Value(memref::LoadOp::create(builder, loc, each, lane)));
  for (auto position : op.getBody()->getOps<linalg::IndexOp>())
    mapping.map(position.getResult(), indices[position.getDim()]);
  for (Operation &inner : op.getBody()->without_terminator())
    if (!isa<linalg::IndexOp>(inner))
      cloneBody(inner, mapping);
  Operation *end = op.getBody()->getTerminator();
  for (auto [result, yielded, each] :
       llvm::zip_equal(op.getDpsInitsMutable(), end->getOperands(), lanes)) {
    Value value = mapping.lookupOrDefault(yielded);
    if (each)
      memref::StoreOp::create(builder, loc, value, each, lane);
    else
      memref::StoreOp::create(builder, loc, value, result.get(),
                              placeOf(result));
  }
}

/// The same for fewer terms than there are lanes, in loops of which each is one
/// vector: where a lane is only known as code runs, all of them would stay in
/// memory.
void LaneSum::addLast(int64_t count, int64_t first) {
  int64_t lane = 0;
  for (int64_t part = kSumLanes / 2; part > 0; part /= 2)
    if (count & part) {
      addTerms(part, index(first + lane), lane);
      lane += part;
    }
}

/// Adds the lanes in pairs, and their sum to the result.
void LaneSum::addLanes(Value lanes, OpOperand &result) {
  auto type = VectorType::get(
      kSumLanes, cast<MemRefType>(lanes.getType()).getElementType());
  Value values = LLVM::LoadOp::create(builder, loc, type, pointerTo(lanes),
                                      /*alignment=*/sizeof(float));
  for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    auto part = [&](int32_t from) -> Value {
      SmallVector<int32_t> taken(half);
      std::iota(taken.begin(), taken.end(), from);
      return LLVM::ShuffleVectorOp::create(builder, loc, values, values, taken);
    };
    Value low = part(0), high = part(int32_t(half));
    values = LLVM::FAddOp::create(builder, loc, low, high);
  }
  Value sum = LLVM::ExtractElementOp::create(
      builder, loc, values, arith::ConstantIntOp::create(builder, loc, 0, 32));
  Value all = arith::AddFOp::create(builder, loc, load(result), sum);
  memref::StoreOp::create(builder, loc, all, result.get(), placeOf(result));
}

void LaneSum::emit() {
  builder.setInsertionPoint(op);
  enterAll(utils::IteratorType::parallel);
  enterAll(utils::IteratorType::reduction);
  {
    OpBuilder::InsertionGuard guard(builder);
    Value lane = enter(kSumLanes);
    for (auto [sum, each] : llvm::zip_equal(sums, lanes))
      if (each) {
        Value zero = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(sum.getType(), 0));
        memref::StoreOp::create(builder, loc, zero, each, lane);
      }
  }
  int64_t whole = ranges[last] / kSumLanes;
  if (whole > 0) {
    OpBuilder::InsertionGuard guard(builder);
    Value first =
        arith::MulIOp::create(builder, loc, enter(whole), index(kSumLanes));
    addTerms(kSumLanes, first);
  }
  addLast(ranges[last] % kSumLanes, whole * kSumLanes);
  for (auto [result, each] : llvm::zip_equal(op.getDpsInitsMutable(), lanes))
    if (each)
      addLanes(each, result);
}

void baechi::lowerLaneSum(RewriterBase &rewriter, linalg::GenericOp op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  // The stack will hold it (placeAllocations).
  SmallVector<Value> lanes;
  for (arith::AddFOp sum : laneSumsOf(op))
    lanes.push_back(sum ? memref::AllocOp::create(
                              rewriter, op.getLoc(),
                              MemRefType::get({kSumLanes}, sum.getType()),
                              rewriter.getI64IntegerAttr(64))
                              .getResult()
                        : Value());
  LaneSum(rewriter, op, lanes).emit();
  rewriter.eraseOp(op);
}
