//===- SumForms.cpp - What is summed up, by its form ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SumForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

std::optional<ElementOf> split::elementOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return std::nullopt;
  if (isa<arith::ArithDialect>(op->getDialect()) && op->getNumOperands() > 0)
    return ElementOf{op, llvm::to_vector_of<Value>(op->getOperands())};
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || loops.getNumReductionLoops() != 0 ||
      loops.getBlock()->getOperations().size() != 2 ||
      !llvm::all_of(loops.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return std::nullopt;
  Block *body = loops.getBlock();
  Operation *element = &body->front();
  if (element->getNumResults() != 1 || element->getNumRegions() != 0 ||
      body->getTerminator()->getOperand(0) != element->getResult(0))
    return std::nullopt;
  ElementOf found{element, {}};
  for (Value read : element->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(read);
    found.operands.push_back(argument && argument.getOwner() == body
                                 ? op->getOperand(argument.getArgNumber())
                                 : read);
  }
  return found;
}

/// The operand that an operation repeats along dimensions, or reorders.
static Value shuffledBy(Operation *op) {
  auto loops = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!loops || loops.getNumReductionLoops() != 0 ||
      loops.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      !llvm::hasSingleElement(*loops.getBlock()) ||
      loops.getBlock()->getTerminator()->getOperand(0) !=
          loops.getBlock()->getArgument(0) ||
      !loops.getIndexingMapsArray().back().isPermutation())
    return {};
  return op->getOperand(0);
}

/// Of a reshape that only adds or drops dimensions of one element: where the
/// elements of the narrower shape lie in the wider one.
static std::optional<SmallVector<AffineExpr>>
widened(ArrayRef<AffineExpr> narrow, ArrayRef<ReassociationIndices> groups,
        ArrayRef<int64_t> wide, MLIRContext *context) {
  SmallVector<AffineExpr> exprs(wide.size(), getAffineConstantExpr(0, context));
  for (auto [expr, group] : llvm::zip_equal(narrow, groups)) {
    auto isLong = [&](int64_t dim) { return wide[dim] != 1; };
    if (llvm::count_if(group, isLong) > 1)
      return std::nullopt;
    if (const int64_t *dim = llvm::find_if(group, isLong); dim != group.end())
      exprs[*dim] = expr;
  }
  return exprs;
}

Value split::repeatedSource(Value value, AffineMap &where) {
  MLIRContext *context = value.getContext();
  while (Operation *op = value.getDefiningOp()) {
    if (Value source = shuffledBy(op)) {
      SmallVector<AffineMap> maps =
          cast<linalg::LinalgOp>(op).getIndexingMapsArray();
      where = maps[0].compose(inversePermutation(maps.back())).compose(where);
      value = source;
      continue;
    }
    std::optional<SmallVector<AffineExpr>> exprs;
    ArrayRef<AffineExpr> read = where.getResults();
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      exprs = widened(read, collapse.getReassociationIndices(),
                      collapse.getSrcType().getShape(), context);
    } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      exprs.emplace();
      for (const ReassociationIndices &group :
           expand.getReassociationIndices()) {
        ArrayRef<int64_t> shape = expand.getResultType().getShape();
        auto isLong = [&](int64_t dim) { return shape[dim] != 1; };
        if (llvm::count_if(group, isLong) > 1)
          return value;
        const int64_t *dim = llvm::find_if(group, isLong);
        exprs->push_back(dim == group.end() ? getAffineConstantExpr(0, context)
                                            : read[*dim]);
      }
    }
    if (!exprs)
      break;
    where = AffineMap::get(where.getNumDims(), 0, *exprs, context);
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> split::constantOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto fill = dyn_cast<linalg::FillOp>(op))
      value = fill.value();
    else if (Value source = shuffledBy(op))
      value = source;
    else
      break;
  }
  DenseFPElementsAttr all;
  if (matchPattern(value, m_Constant(&all)) && all.isSplat())
    return all.getSplatValue<APFloat>().convertToDouble();
  FloatAttr one;
  if (matchPattern(value, m_Constant(&one)))
    return one.getValueAsDouble();
  return std::nullopt;
}

linalg::LinalgOp split::sumFromZero(Operation *op) {
  auto loops = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!loops || loops.getNumReductionLoops() == 0 ||
      loops.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      loops.getBlock()->getOperations().size() != 2)
    return {};
  auto add = dyn_cast<arith::AddFOp>(loops.getBlock()->front());
  Block *body = loops.getBlock();
  if (!add || body->getTerminator()->getOperand(0) != add.getResult() ||
      add.getLhs() == add.getRhs() ||
      llvm::any_of(add->getOperands(),
                   [&](Value read) {
                     return read != body->getArgument(0) &&
                            read != body->getArgument(1);
                   }) ||
      constantOf(loops.getDpsInits()[0]) != 0.0)
    return {};
  return loops;
}
