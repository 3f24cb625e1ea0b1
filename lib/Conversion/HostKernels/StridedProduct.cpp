//===- StridedProduct.cpp - Kernels as sums of products -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedProduct.h"
#include "Baechi/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace baechi;

namespace {
bool isView(Operation &op) {
  return isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op);
}

/// The only contraction of `kernel`, when all else is views, its initial value
/// and the return of its result (or of a reshape of it).
std::optional<Contraction> onlyContraction(func::FuncOp kernel) {
  std::optional<Contraction> found;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isView(op) ||
        isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp>(op))
      continue;
    if (found || !(found = matchContraction(&op)))
      return std::nullopt;
  }
  if (!found || kernel.getNumResults() != 1)
    return std::nullopt;
  Value result = kernel.getBody().front().getTerminator()->getOperand(0);
  while (Operation *op = result.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    result = op->getOperand(0);
  }
  if (result != found->op->getResult(0))
    return std::nullopt;
  return found;
}

/// How far each loop moves in the dense result.
std::optional<SmallVector<int64_t>> resultStrides(const Contraction &product) {
  linalg::GenericOp op = product.op;
  AffineMap map = op.getIndexingMapsArray()[2];
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> strides(op.getNumLoops(), 0);
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    if (!loop)
      return std::nullopt;
    strides[loop.getPosition()] += stride;
    stride *= type.getDimSize(dim);
  }
  return strides;
}

/// What the result starts from: a constant, or an argument that has the
/// result's layout.
bool setStart(ProductOperands &operands, const Contraction &product) {
  Value init = product.init().get();
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    FloatAttr value;
    if (!matchPattern(fill.value(), m_Constant(&value)))
      return false;
    operands.startValue = value.getValueAsDouble();
    return true;
  }
  auto view = traceView(init);
  auto argument = view ? dyn_cast<BlockArgument>(view->root) : BlockArgument();
  if (!argument)
    return false;
  auto type = cast<RankedTensorType>(init.getType());
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) > 1 && view->strides[dim] != stride)
      return false;
    stride *= type.getDimSize(dim);
  }
  operands.start = ProductOperands::Start::Argument;
  operands.startArgument = argument.getArgNumber();
  operands.startOffset = view->offset;
  return true;
}

std::optional<StridedProduct> matchGeneric(func::FuncOp kernel) {
  auto product = onlyContraction(kernel);
  if (!product)
    return std::nullopt;
  for (Value operand : product->op->getOperands())
    if (!getElementTypeOrSelf(operand.getType()).isF32())
      return std::nullopt;
  auto a = traceOperand(product->op, product->lhs());
  auto b = traceOperand(product->op, product->rhs());
  auto c = resultStrides(*product);
  StridedProduct found;
  if (!a || !b || !c || !isa<BlockArgument>(a->root) ||
      !isa<BlockArgument>(b->root) || !setStart(found.operands, *product))
    return std::nullopt;
  found.operands.argumentA = cast<BlockArgument>(a->root).getArgNumber();
  found.operands.argumentB = cast<BlockArgument>(b->root).getArgNumber();
  found.operands.offsetA = a->offset;
  found.operands.offsetB = b->offset;

  SmallVector<int64_t> sizes = product->op.getStaticLoopRanges();
  auto loopsOf = [&](LoopClass which) {
    ProductLoops loops;
    for (unsigned loop : product->loops(which))
      if (sizes[loop] > 1)
        loops.push_back(
            {sizes[loop], a->strides[loop], b->strides[loop], (*c)[loop]});
    if (loops.empty() && which != LoopClass::Batch)
      loops.push_back({});
    return loops;
  };
  found.batch = loopsOf(LoopClass::Batch);
  found.rows = loopsOf(LoopClass::M);
  found.columns = loopsOf(LoopClass::N);
  found.sums = loopsOf(LoopClass::K);
  return found;
}
} // namespace

void baechi::collapseLoops(ProductLoops &loops) {
  auto isOuterOf = [](const ProductLoop &outer, const ProductLoop &inner) {
    return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
           outer.c == inner.c * inner.size;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t o = 0; o < loops.size() && !changed; ++o)
      for (size_t i = 0; i < loops.size() && !changed; ++i)
        if (o != i && isOuterOf(loops[o], loops[i])) {
          loops[i].size *= loops[o].size;
          loops.erase(loops.begin() + o);
          changed = true;
        }
  }
}

std::optional<StridedProduct> baechi::matchStridedProduct(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  bool named = llvm::any_of(kernel.getBody().front(), [](Operation &op) {
    return isa<linalg::ContractionOpInterface>(op) &&
           !isa<linalg::GenericOp>(op);
  });
  if (!named)
    return matchGeneric(kernel);
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  SmallVector<linalg::LinalgOp> ops;
  for (Operation &op : copy->getBody().front())
    if (isa<linalg::ContractionOpInterface>(op))
      ops.push_back(cast<linalg::LinalgOp>(op));
  IRRewriter rewriter(kernel.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op);
  }
  return matchGeneric(*copy);
}
