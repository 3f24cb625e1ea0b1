//===- StridedProduct.cpp - Kernels as sums of products -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/StridedProduct.h"
#include "Baechi/Analysis/Contraction.h"
#include "Common/BlockSums.h"
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

/// The contractions of `kernel`, each of which starts from the one before, when
/// all else is views, initial values and the return of the last one's result
/// (or of a reshape of it). Empty for other kernels.
SmallVector<Contraction> onlyContractions(func::FuncOp kernel) {
  SmallVector<Contraction> found;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isView(op) ||
        isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp>(op))
      continue;
    std::optional<Contraction> next = matchContraction(&op);
    if (!next)
      return {};
    if (!found.empty() && (next->init().get() != found.back().op.getResult(0) ||
                           !next->init().get().hasOneUse()))
      return {};
    found.push_back(std::move(*next));
  }
  if (found.empty() || kernel.getNumResults() != 1)
    return {};
  Value result = kernel.getBody().front().getTerminator()->getOperand(0);
  while (Operation *op = result.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    result = op->getOperand(0);
  }
  if (result != found.back().op->getResult(0))
    return {};
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

bool areKnown(Type a, Type b, Type result, ProductTypes types) {
  if (types == ProductTypes::Short && a == b && (a.isBF16() || a.isF16()))
    return result == a || result.isF32();
  return a.isF32() && b.isF32() && result.isF32();
}

/// Sets the loops of `found`, which move so far through A, B and C; false where
/// one is empty: nothing is multiplied, and the result is what it starts from.
bool setLoops(StridedProduct &found, const Contraction &product,
              ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c) {
  SmallVector<int64_t> sizes =
      linalg::GenericOp(product.op).getStaticLoopRanges();
  if (llvm::any_of(sizes, [](int64_t size) { return size <= 0; }))
    return false;
  auto loopsOf = [&](LoopClass which) {
    ProductLoops loops;
    for (unsigned loop : product.loops(which))
      if (sizes[loop] > 1)
        loops.push_back({sizes[loop], a[loop], b[loop], c[loop]});
    if (loops.empty() && which != LoopClass::Batch)
      loops.push_back({});
    return loops;
  };
  found.batch = loopsOf(LoopClass::Batch);
  found.rows = loopsOf(LoopClass::M);
  found.columns = loopsOf(LoopClass::N);
  found.sums = loopsOf(LoopClass::K);
  if (SmallVector<int64_t> block = blockOf(product.op, /*isChain=*/true);
      !block.empty())
    for (unsigned loop : product.loops(LoopClass::K))
      if (sizes[loop] > 1)
        found.block.push_back(block[loop]);
  return true;
}

std::optional<StridedProduct> matchOne(const Contraction &product,
                                       ProductTypes types) {
  auto typeOf = [&](unsigned operand) {
    return getElementTypeOrSelf(product.op->getOperand(operand).getType());
  };
  if (!areKnown(typeOf(0), typeOf(1), typeOf(2), types))
    return std::nullopt;
  auto a = traceOperand(product.op, product.lhs());
  auto b = traceOperand(product.op, product.rhs());
  auto c = resultStrides(product);
  if (!a || !b || !c || !isa<BlockArgument>(a->root) ||
      !isa<BlockArgument>(b->root))
    return std::nullopt;
  StridedProduct found;
  found.factorType = typeOf(0);
  found.resultType = typeOf(2);
  found.operands.factors.push_back({cast<BlockArgument>(a->root).getArgNumber(),
                                    cast<BlockArgument>(b->root).getArgNumber(),
                                    a->offset, b->offset});

  if (!setLoops(found, product, a->strides, b->strides, *c))
    return std::nullopt;
  return found;
}

std::optional<StridedProduct> matchGeneric(func::FuncOp kernel,
                                           ProductTypes types) {
  SmallVector<Contraction> products = onlyContractions(kernel);
  if (products.empty())
    return std::nullopt;
  std::optional<StridedProduct> found = matchOne(products.front(), types);
  if (!found || !setStart(found->operands, products.front()))
    return std::nullopt;
  for (const Contraction &product : llvm::drop_begin(products)) {
    std::optional<StridedProduct> next = matchOne(product, types);
    if (!next || next->factorType != found->factorType ||
        next->batch != found->batch || next->rows != found->rows ||
        next->columns != found->columns || next->sums != found->sums)
      return std::nullopt;
    found->operands.factors.append(next->operands.factors);
  }
  return found;
}
} // namespace

std::optional<StridedProduct> baechi::matchBufferProduct(linalg::GenericOp op) {
  std::optional<Contraction> product = matchContraction(op);
  if (!product || !op.hasPureBufferSemantics())
    return std::nullopt;
  auto typeOf = [&](OpOperand &operand) {
    return getElementTypeOrSelf(operand.get().getType());
  };
  if (!areKnown(typeOf(product->lhs()), typeOf(product->rhs()),
                typeOf(product->init()), ProductTypes::Single))
    return std::nullopt;
  // The result's loops are its dimensions, each once.
  if (!op.getMatchingIndexingMap(&product->init()).isProjectedPermutation())
    return std::nullopt;
  auto a = traceBuffer(op, product->lhs());
  auto b = traceBuffer(op, product->rhs());
  auto c = traceBuffer(op, product->init());
  if (!a || !b || !c)
    return std::nullopt;
  StridedProduct found;
  found.factorType = typeOf(product->lhs());
  found.resultType = typeOf(product->init());
  found.operands.factors.push_back({0, 1, a->offset, b->offset});
  // It adds to what is there.
  found.operands.start = ProductOperands::Start::Argument;
  found.operands.startArgument = 2;
  if (!setLoops(found, *product, a->strides, b->strides, c->strides))
    return std::nullopt;
  return found;
}

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

std::optional<StridedProduct> baechi::matchStridedProduct(func::FuncOp kernel,
                                                          ProductTypes types) {
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  bool named = llvm::any_of(kernel.getBody().front(), [](Operation &op) {
    return isa<linalg::ContractionOpInterface>(op) &&
           !isa<linalg::GenericOp>(op);
  });
  if (!named)
    return matchGeneric(kernel, types);
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
  return matchGeneric(*copy, types);
}
