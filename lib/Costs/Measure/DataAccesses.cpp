//===- DataAccesses.cpp - Accesses that operands direct -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataAccesses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Where an integer comes from, in rising order of what may go wrong with it.
enum class Origin {
  Program, ///< the same for all operands
  Loaded,  ///< an element of an operand, or a minimum or maximum of those
  Computed
};

class Origins {
public:
  /// Of a scalar.
  Origin of(Value value) {
    if (auto known = origins.find(value); known != origins.end())
      return known->second;
    Origin origin = find(value);
    origins[value] = origin;
    return origin;
  }

  template <typename Range> Origin ofAll(Range &&values) {
    Origin origin = Origin::Program;
    for (Value value : values)
      origin = std::max(origin, of(value));
    return origin;
  }

private:
  Origin find(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofArgument(argument);
    Operation *op = value.getDefiningOp();
    if (matchPattern(op, m_Constant()) || isa<linalg::IndexOp>(op))
      return Origin::Program;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      Origin elements = ofElements(extract.getTensor());
      // Which elements of a constant are read, operands may decide.
      if (ofAll(extract.getIndices()) != Origin::Program &&
          elements == Origin::Program)
        return Origin::Computed;
      return elements;
    }
    // Truth values are no indices: true is -1 to index_cast.
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
            arith::ExtUIOp>(op) &&
        !op->getOperand(0).getType().isInteger(1))
      return of(op->getOperand(0));
    if (isa<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>(op))
      return ofAll(op->getOperands());
    if (auto select = dyn_cast<arith::SelectOp>(op))
      if (Value kept = ifNotNegative(select))
        return of(kept);
    if (op->getNumRegions() == 0 &&
        isa_and_nonnull<arith::ArithDialect>(op->getDialect()) &&
        ofAll(op->getOperands()) == Origin::Program)
      return Origin::Program;
    return Origin::Computed;
  }

  /// The i of `i < 0 ? ... : i`, by which indices count from the end: invented
  /// integers are not negative.
  static Value ifNotNegative(arith::SelectOp select) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (compare && compare.getPredicate() == arith::CmpIPredicate::slt &&
        compare.getLhs() == select.getFalseValue() &&
        matchPattern(compare.getRhs(), m_Zero()))
      return select.getFalseValue();
    return {};
  }

  Origin ofArgument(BlockArgument argument) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto op = dyn_cast<linalg::LinalgOp>(parent)) {
      Value operand = op.getMatchingOpOperand(argument)->get();
      return isa<TensorType>(operand.getType()) ? ofElements(operand)
                                                : of(operand);
    }
    auto loop = dyn_cast<LoopLikeOpInterface>(parent);
    std::optional<SmallVector<Value>> variables;
    if (loop)
      variables = loop.getLoopInductionVars();
    if (!variables || !llvm::is_contained(*variables, argument))
      return Origin::Computed;
    for (const auto &bounds : {loop.getLoopLowerBounds(),
                               loop.getLoopUpperBounds(), loop.getLoopSteps()})
      for (OpFoldResult bound : bounds.value_or(SmallVector<OpFoldResult>()))
        if (auto value = dyn_cast<Value>(bound);
            value && of(value) != Origin::Program)
          return Origin::Computed;
    return Origin::Program;
  }

  Origin ofElements(Value tensor) {
    if (auto argument = dyn_cast<BlockArgument>(tensor))
      return isa<func::FuncOp>(argument.getOwner()->getParentOp())
                 ? Origin::Loaded
                 : Origin::Computed;
    Operation *op = tensor.getDefiningOp();
    if (matchPattern(op, m_Constant()))
      return Origin::Program;
    if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp,
            tensor::ExpandShapeOp, tensor::ReshapeOp, tensor::CastOp>(op))
      return ofElements(op->getOperand(0));
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      auto result = cast<OpResult>(tensor);
      return of(linalgOp.getBlock()->getTerminator()->getOperand(
          result.getResultNumber()));
    }
    return Origin::Computed;
  }

  DenseMap<Value, Origin> origins;
};
} // namespace

DataAccesses baechi::findDataAccesses(func::FuncOp kernel) {
  Origins origins;
  DataAccesses found;
  auto access = [&](Value index, int64_t positions) {
    Origin origin = origins.of(index);
    if (origin == Origin::Program)
      return;
    found.computed |= origin == Origin::Computed;
    found.positions = std::min(found.positions.value_or(positions), positions);
  };
  auto accessElement = [&](ValueRange indices, RankedTensorType type) {
    for (auto [index, size] : llvm::zip(indices, type.getShape()))
      access(index, size);
  };
  auto accessSlice = [&](OffsetSizeAndStrideOpInterface slice,
                         RankedTensorType type) {
    for (auto [index, offset] : llvm::enumerate(slice.getMixedOffsets())) {
      auto value = dyn_cast<Value>(offset);
      if (!value)
        continue;
      // One position where size and stride are not known.
      int64_t positions = 1;
      if (!slice.isDynamicSize(index) && !slice.isDynamicStride(index))
        positions = type.getDimSize(index) - (slice.getStaticSize(index) - 1) *
                                                 slice.getStaticStride(index);
      access(value, positions);
    }
  };
  kernel.walk([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      accessElement(extract.getIndices(), extract.getTensor().getType());
    else if (auto insert = dyn_cast<tensor::InsertOp>(op))
      accessElement(insert.getIndices(), insert.getDest().getType());
    else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      accessSlice(slice, slice.getSourceType());
    else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      accessSlice(slice, slice.getDestType());
    else if (isa<tensor::GatherOp, tensor::ScatterOp>(op))
      found.computed = true;
  });
  return found;
}
