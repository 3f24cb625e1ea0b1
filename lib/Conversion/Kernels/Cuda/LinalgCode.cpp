//===- LinalgCode.cpp - Linalg operations at one point -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinalgCode.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Common/BlockSums.h"
#include "Common/Strides.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace baechi;

//===----------------------------------------------------------------------===//
// Order of loops
//===----------------------------------------------------------------------===//

LoopOrder::LoopOrder(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  // What moves furthest in a step comes first.
  auto furthest = [&](unsigned dim, bool inResults) {
    int64_t most = 0;
    for (OpOperand &operand : op->getOpOperands())
      if (op.isDpsInit(&operand) == inResults)
        most = std::max(most, strideAlong(op, operand, dim));
    return most;
  };
  for (unsigned dim : llvm::seq(op.getNumLoops())) {
    bool isSum = kinds[dim] == utils::IteratorType::reduction;
    (isSum ? sums : parallel).push_back(dim);
    (isSum ? terms : outputs) *= sizes[dim];
  }
  auto order = [&](SmallVector<unsigned> &dims, bool inResults,
                   SmallVector<int64_t> &dimSizes) {
    llvm::stable_sort(dims, [&](unsigned a, unsigned b) {
      // A loop of one iteration does not move at all.
      int64_t ofA = sizes[a] == 1 ? INT64_MAX : furthest(a, inResults);
      int64_t ofB = sizes[b] == 1 ? INT64_MAX : furthest(b, inResults);
      return ofA > ofB;
    });
    for (unsigned dim : dims)
      dimSizes.push_back(sizes[dim]);
  };
  order(parallel, true, parallelSizes);
  if (combiners(op).empty()) // Which comes first may matter.
    for (unsigned dim : sums)
      sumSizes.push_back(sizes[dim]);
  else
    order(sums, false, sumSizes);

  // Which operand is read most, and along what it is contiguous.
  int64_t most = 0;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto type = dyn_cast<MemRefType>(operand->get().getType());
    if (!type || type.getNumElements() <= most)
      continue;
    most = type.getNumElements();
    rowsAreSums = llvm::any_of(sums, [&](unsigned dim) {
      return sizes[dim] > 1 && strideAlong(op, *operand, dim) == 1;
    });
  }
}

SmallVector<Value> baechi::joinIndices(const LoopOrder &order,
                                       ValueRange parallel, ValueRange sums) {
  SmallVector<Value> indices(order.parallel.size() + order.sums.size());
  for (auto [dim, value] : llvm::zip_equal(order.parallel, parallel))
    indices[dim] = value;
  for (auto [dim, value] : llvm::zip_equal(order.sums, sums))
    indices[dim] = value;
  return indices;
}

//===----------------------------------------------------------------------===//
// One point
//===----------------------------------------------------------------------===//

static SmallVector<Value> elementOf(LaunchCode &code, AffineMap map,
                                    ValueRange indices) {
  return SmallVector<Value>(
      *affine::expandAffineMap(code.builder, code.loc, map, indices));
}

Value baechi::loadOperand(LaunchCode &code, linalg::GenericOp op,
                          OpOperand &operand, ValueRange indices) {
  Value value = code.value(operand.get());
  if (!isa<MemRefType>(value.getType()))
    return value;
  return memref::LoadOp::create(
      code.builder, code.loc, value,
      elementOf(code, op.getMatchingIndexingMap(&operand), indices));
}

SmallVector<Value> baechi::evaluate(LaunchCode &code, linalg::GenericOp op,
                                    ValueRange indices, ValueRange held,
                                    OpOperand *read, Value value) {
  OpBuilder &builder = code.builder;
  IRMapping scalars;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (&operand == read)
      scalars.map(argument, value);
    else if (op.isDpsInit(&operand) && !held.empty())
      scalars.map(argument,
                  held[operand.getOperandNumber() - op.getNumDpsInputs()]);
    else if (!argument.use_empty())
      scalars.map(argument, loadOperand(code, op, operand, indices));
  }
  auto mapOuter = [&](Value value) {
    if (!op.getRegion().isAncestor(value.getParentRegion()))
      scalars.map(value, code.value(value));
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      scalars.map(index.getResult(), indices[index.getDim()]);
      continue;
    }
    inner.walk([&](Operation *nested) {
      llvm::for_each(nested->getOperands(), mapOuter);
    });
    builder.clone(inner, scalars);
  }
  SmallVector<Value> yielded;
  for (Value value : op.getBody()->getTerminator()->getOperands()) {
    mapOuter(value);
    yielded.push_back(scalars.lookup(value));
  }
  return yielded;
}

SmallVector<Value> baechi::startValues(LaunchCode &code, linalg::GenericOp op,
                                       ValueRange indices,
                                       const StartValues &starts) {
  SmallVector<Value> values;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value start = starts.lookup({op, number});
    values.push_back(start ? code.value(start)
                           : loadOperand(code, op, init, indices));
  }
  return values;
}

void baechi::storeResults(LaunchCode &code, linalg::GenericOp op,
                          ValueRange indices, ValueRange results) {
  for (auto [init, result] :
       llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    memref::StoreOp::create(code.builder, code.loc, result,
                            code.value(init.get()),
                            elementOf(code, map, indices));
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

SmallVector<Operation *> baechi::combiners(linalg::GenericOp op) {
  SmallVector<Operation *> found;
  Block *body = op.getBody();
  for (auto [number, yielded] :
       llvm::enumerate(body->getTerminator()->getOperands())) {
    BlockArgument held = op.getRegionOutputArgs()[number];
    Operation *combiner = yielded.getDefiningOp();
    bool combines = combiner && combiner->getBlock() == body &&
                    combiner->getNumOperands() == 2 && held.hasOneUse() &&
                    *held.user_begin() == combiner &&
                    combiner->hasTrait<OpTrait::IsCommutative>() &&
                    arith::getNeutralElement(combiner);
    if (!combines)
      return {};
    found.push_back(combiner);
  }
  return found;
}

Value baechi::combine(LaunchCode &code, Operation *combiner, Value a, Value b) {
  IRMapping operands;
  operands.map(combiner->getOperand(0), a);
  operands.map(combiner->getOperand(1), b);
  return code.builder.clone(*combiner, operands)->getResult(0);
}

bool baechi::isLongSum(linalg::GenericOp op, const LoopOrder &order) {
  return order.terms > kShortSum && addsUp(op);
}

Value baechi::inPrecision(LaunchCode &code, FloatType type, Value value) {
  unsigned has = value.getType().getIntOrFloatBitWidth();
  if (has == type.getWidth())
    return value;
  if (has < type.getWidth())
    return arith::ExtFOp::create(code.builder, code.loc, type, value);
  return arith::TruncFOp::create(code.builder, code.loc, type, value);
}

SmallVector<Value> baechi::inPrecision(LaunchCode &code, FloatType type,
                                       ValueRange values) {
  return llvm::map_to_vector(
      values, [&](Value value) { return inPrecision(code, type, value); });
}
