//===- Moments.cpp - Which sums are a mean and a variance's ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Moments.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The two operands of an operation on elements that lie at the same place;
/// those of a body may be scalars from outside.
template <typename Element>
static std::optional<std::pair<Value, Value>> operandsOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto element = dyn_cast_or_null<Element>(op))
    return std::pair(element.getLhs(), element.getRhs());
  auto loops = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!loops || op->getNumResults() != 1 || loops.getNumReductionLoops() != 0 ||
      loops.getBlock()->getOperations().size() != 2 ||
      !llvm::all_of(loops.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return std::nullopt;
  auto element = dyn_cast<Element>(loops.getBlock()->front());
  if (!element ||
      loops.getBlock()->getTerminator()->getOperand(0) != element.getResult())
    return std::nullopt;
  auto outside = [&](Value read) {
    auto argument = dyn_cast<BlockArgument>(read);
    return argument && argument.getOwner() == loops.getBlock()
               ? op->getOperand(argument.getArgNumber())
               : read;
  };
  return std::pair(outside(element.getLhs()), outside(element.getRhs()));
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

/// Follows \p value back through what repeats and reshapes it, and \p where,
/// where its elements are read, with it.
static Value sourceOf(Value value, AffineMap &where) {
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

/// What all elements of \p value are, if that is known.
static std::optional<double> constantOf(Value value) {
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

/// A sum of one tensor from zero on: no product, and no other combiner.
static linalg::LinalgOp sumFromZero(Operation *op) {
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

std::optional<Moments> split::momentsOf(Operation *squares) {
  linalg::LinalgOp second = sumFromZero(squares);
  if (!second)
    return std::nullopt;
  AffineMap read = second.getIndexingMapsArray()[0];
  AffineMap written = second.getIndexingMapsArray()[1];
  Type element = getElementTypeOrSelf(squares->getResult(0).getType());
  if (!element.isF32() && !element.isF64())
    return std::nullopt; // others hold no such counts
  auto square = operandsOf<arith::MulFOp>(second.getDpsInputs()[0]);
  if (!square || square->first != square->second || !read.isPermutation())
    return std::nullopt;
  auto centred = operandsOf<arith::SubFOp>(square->first);
  if (!centred || centred->first.getType() != square->first.getType())
    return std::nullopt;
  // Each is less the mean of those that it is summed up with.
  AffineMap where = read;
  auto mean = operandsOf<arith::DivFOp>(sourceOf(centred->second, where));
  if (!mean || simplifyAffineMap(where) != written)
    return std::nullopt;
  linalg::LinalgOp first = sumFromZero(mean->first.getDefiningOp());
  if (!first || first.getDpsInputs()[0] != centred->first ||
      first.getIndexingMapsArray() != second.getIndexingMapsArray())
    return std::nullopt;
  int64_t terms = 1;
  for (auto [size, kind] : llvm::zip_equal(second.getStaticLoopRanges(),
                                           second.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      terms *= size;
  // It is the mean: divided by as many as there are.
  if (constantOf(mean->second) != double(terms))
    return std::nullopt;
  return Moments{first, second, centred->first, terms};
}

static bool isSmall(Value value, int64_t most) {
  return tensorBytes(value.getType(), /*aligned=*/false).value_or(most + 1) <=
         most;
}

llvm::DenseMap<Operation *, Moments> split::mergedMoments(const SplitPlan &plan,
                                                          int64_t mostBytes) {
  llvm::DenseMap<Operation *, Moments> merged;
  if (!plan.mergeMoments || mostBytes == 0)
    return merged;
  for (const Cut &cut : plan.cuts)
    for (const auto &[op, how] : cut.operations) {
      auto isSent = [&](Operation *sum, const OperationCut &how) {
        Value result = sum->getResult(0);
        return how.kind == OperationCut::Kind::Reduction &&
               cast<RankedTensorType>(result.getType()).getRank() > 0 &&
               isSmall(result, mostBytes) && !cut.staysPartial(result);
      };
      if (cut.chained || how.kind != OperationCut::Kind::Reduction)
        continue;
      std::optional<Moments> found = momentsOf(op);
      if (!found || !isSent(op, how))
        continue;
      auto sum = cut.operations.find(found->sum);
      if (sum != cut.operations.end() && isSent(found->sum, sum->second) &&
          sum->second.operands[0] && sum->second.operands[0] == how.operands[0])
        merged.insert({found->sum, *found});
    }
  return merged;
}
