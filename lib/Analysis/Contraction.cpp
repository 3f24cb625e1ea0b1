//===- Contraction.cpp - Recognition of products of tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

static bool slice(tensor::ExtractSliceOp op, StridedView &view) {
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticStrides()))
    return false;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<int64_t> strides;
  for (auto [dim, stride] : llvm::enumerate(view.strides)) {
    view.offset += op.getStaticOffsets()[dim] * stride;
    if (!dropped.test(dim))
      strides.push_back(stride * op.getStaticStrides()[dim]);
  }
  view.strides = strides;
  return true;
}

static bool expand(tensor::ExpandShapeOp op, StridedView &view) {
  SmallVector<int64_t> strides(op.getResultType().getRank(), 1);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t stride = view.strides[dim];
    for (int64_t inner : llvm::reverse(group)) {
      strides[inner] = stride;
      stride *= op.getResultType().getDimSize(inner);
    }
  }
  view.strides = strides;
  return true;
}

static bool collapse(tensor::CollapseShapeOp op, StridedView &view) {
  SmallVector<int64_t> strides;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    // The stride of the innermost dimension that is not a unit, and the one
    // that the next dimension outwards must have.
    std::optional<int64_t> inner;
    int64_t next = 0;
    for (int64_t dim : llvm::reverse(group)) {
      int64_t size = op.getSrcType().getDimSize(dim);
      if (size == 1)
        continue;
      if (!inner)
        inner = view.strides[dim];
      else if (view.strides[dim] != next)
        return false;
      next = view.strides[dim] * size;
    }
    strides.push_back(inner.value_or(1));
  }
  view.strides = strides;
  return true;
}

std::optional<StridedView> baechi::traceView(Value tensor) {
  SmallVector<Operation *> views;
  for (;;) {
    Operation *op = tensor.getDefiningOp();
    if (!isa_and_nonnull<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
                         tensor::CollapseShapeOp>(op))
      break;
    views.push_back(op);
    tensor = op->getOperand(0);
  }
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  StridedView view{tensor, 0, denseStrides(type.getShape())};
  for (Operation *op : llvm::reverse(views)) {
    bool strided =
        TypeSwitch<Operation *, bool>(op)
            .Case([&](tensor::ExtractSliceOp op) { return slice(op, view); })
            .Case([&](tensor::ExpandShapeOp op) { return expand(op, view); })
            .Case(
                [&](tensor::CollapseShapeOp op) { return collapse(op, view); });
    if (!strided)
      return std::nullopt;
  }
  return view;
}

/// The loops' way through `view`, which `operand` of `op` is.
static std::optional<StridedView> throughMap(linalg::LinalgOp op,
                                             OpOperand &operand,
                                             std::optional<StridedView> view) {
  if (!view)
    return std::nullopt;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<int64_t> strides(map.getNumDims(), 0);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    SmallVector<int64_t> coefficients;
    if (failed(getFlattenedAffineExpr(expr, map.getNumDims(),
                                      /*numSymbols=*/0, &coefficients)) ||
        coefficients.size() != map.getNumDims() + 1)
      return std::nullopt;
    for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
      strides[loop] += coefficients[loop] * view->strides[dim];
    view->offset += coefficients.back() * view->strides[dim];
  }
  view->strides = strides;
  return view;
}

std::optional<StridedView> baechi::traceOperand(linalg::LinalgOp op,
                                                OpOperand &operand) {
  return throughMap(op, operand, traceView(operand.get()));
}

std::optional<StridedView> baechi::traceBuffer(linalg::LinalgOp op,
                                               OpOperand &operand) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  StridedView view{operand.get(), 0, {}};
  int64_t offset;
  if (!type || failed(type.getStridesAndOffset(view.strides, offset)) ||
      ShapedType::isDynamicShape(view.strides))
    return std::nullopt;
  return throughMap(op, operand, view);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

SmallVector<unsigned> Contraction::loops(LoopClass which) const {
  SmallVector<unsigned> found;
  for (auto [loop, loopClass] : llvm::enumerate(classes))
    if (loopClass == which)
      found.push_back(loop);
  return found;
}

int64_t Contraction::size(LoopClass which) const {
  SmallVector<int64_t> ranges =
      cast<linalg::LinalgOp>(*op).getStaticLoopRanges();
  int64_t size = 1;
  for (unsigned loop : loops(which))
    size *= ranges[loop];
  return size;
}

/// The block argument that `value` is, looking through an extension.
static std::optional<unsigned> extendedArgument(Value value) {
  if (Operation *op = value.getDefiningOp();
      isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp>(op))
    value = op->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber();
  return std::nullopt;
}

/// True when the body is `init + in0 * in1`, in any order.
static bool isMultiplyAdd(linalg::GenericOp op) {
  Value init = op.getBody()->getArguments().back();
  Operation *add = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add))
    return false;
  for (unsigned side : {0, 1}) {
    Operation *mul = add->getOperand(1 - side).getDefiningOp();
    if (add->getOperand(side) != init ||
        !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(mul))
      continue;
    auto first = extendedArgument(mul->getOperand(0));
    auto second = extendedArgument(mul->getOperand(1));
    return first && second && *first != *second && *first < 2 && *second < 2;
  }
  return false;
}

std::optional<Contraction> baechi::matchContraction(Operation *operation) {
  auto op = dyn_cast_or_null<linalg::GenericOp>(operation);
  // The body first: it rules out nearly all, at the least cost.
  if (!op || op->getNumOperands() != 3 ||
      op->getNumResults() != (op.hasPureBufferSemantics() ? 0 : 1) ||
      !isMultiplyAdd(op) || op.getNumDpsInputs() != 2 ||
      op.getNumReductionLoops() == 0)
    return std::nullopt;

  Contraction contraction{op, {}};
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    bool inLhs = maps[0].isFunctionOfDim(loop);
    bool inRhs = maps[1].isFunctionOfDim(loop);
    bool inResult = maps[2].isFunctionOfDim(loop);
    bool reduces = iterators[loop] == utils::IteratorType::reduction;
    if (reduces == inResult || (!inLhs && !inRhs) ||
        (reduces && !(inLhs && inRhs)))
      return std::nullopt;
    contraction.classes.push_back(reduces          ? LoopClass::K
                                  : inLhs && inRhs ? LoopClass::Batch
                                  : inLhs          ? LoopClass::M
                                                   : LoopClass::N);
  }
  for (LoopClass needed : {LoopClass::M, LoopClass::N, LoopClass::K})
    if (!llvm::is_contained(contraction.classes, needed))
      return std::nullopt;
  return contraction;
}

bool baechi::startsFromZero(const Contraction &contraction) {
  auto fill = contraction.init().get().getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.value(), m_AnyZeroFloat()) ||
                  matchPattern(fill.value(), m_Zero()));
}
