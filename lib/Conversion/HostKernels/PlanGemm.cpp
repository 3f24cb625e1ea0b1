//===- PlanGemm.cpp - Contractions as products of matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "Gemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace baechi;

namespace {
using Loop = GemmPlan::Loop;
using Loops = SmallVector<Loop>;

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

/// Merges loops of one class that run through all matrices as one.
void collapse(Loops &loops) {
  auto isOuterOf = [](const Loop &outer, const Loop &inner) {
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

/// Whether a matrix with these strides is row-major, after a transposition or
/// not, with rows that do not overlap; a dimension of size 1 may have any
/// stride.
struct Layout {
  bool transposed;
  int64_t leading;
};
std::optional<Layout> layoutOf(int64_t rows, int64_t rowStride, int64_t columns,
                               int64_t columnStride) {
  auto rowMajor = [](int64_t rows, int64_t rowStride, int64_t columns,
                     int64_t columnStride) -> std::optional<int64_t> {
    if (columns > 1 && columnStride != 1)
      return std::nullopt;
    if (rows == 1)
      return columns;
    if (rowStride < columns)
      return std::nullopt;
    return rowStride;
  };
  if (auto leading = rowMajor(rows, rowStride, columns, columnStride))
    return Layout{false, *leading};
  if (auto leading = rowMajor(columns, columnStride, rows, rowStride))
    return Layout{true, *leading};
  return std::nullopt;
}

/// Sets the matrices of `plan` for the three loops that one product runs over.
bool setMatrices(GemmPlan &plan, Loop m, Loop n, Loop k) {
  auto c = layoutOf(m.size, m.c, n.size, n.c);
  if (!c)
    return false;
  if (c->transposed) {
    // C^T = B^T * A^T.
    std::swap(m, n);
    for (Loop *loop : {&m, &n, &k})
      std::swap(loop->a, loop->b);
    std::swap(plan.argumentA, plan.argumentB);
    std::swap(plan.offsetA, plan.offsetB);
    for (Loops *loops : {&plan.outer, &plan.sums})
      for (Loop &loop : *loops)
        std::swap(loop.a, loop.b);
  }
  auto a = layoutOf(m.size, m.a, k.size, k.a);
  auto b = layoutOf(k.size, k.b, n.size, n.b);
  if (!a || !b)
    return false;
  for (int64_t value :
       {m.size, n.size, k.size, a->leading, b->leading, c->leading})
    if (value > INT32_MAX)
      return false;
  plan.m = m.size;
  plan.n = n.size;
  plan.k = k.size;
  plan.transposeA = a->transposed;
  plan.transposeB = b->transposed;
  plan.lda = a->leading;
  plan.ldb = b->leading;
  plan.ldc = c->leading;
  return true;
}

/// Chooses which loops the products run over: those that make the largest ones.
std::optional<GemmPlan> chooseLoops(const GemmPlan &base, const Loops &batch,
                                    const Loops &ms, const Loops &ns,
                                    const Loops &ks) {
  std::optional<GemmPlan> best;
  for (size_t m = 0; m < ms.size(); ++m)
    for (size_t n = 0; n < ns.size(); ++n)
      for (size_t k = 0; k < ks.size(); ++k) {
        GemmPlan plan = base;
        auto rest = [](const Loops &loops, size_t chosen, Loops &to) {
          for (size_t i = 0; i < loops.size(); ++i)
            if (i != chosen)
              to.push_back(loops[i]);
        };
        plan.outer = batch;
        rest(ms, m, plan.outer);
        rest(ns, n, plan.outer);
        rest(ks, k, plan.sums);
        if (setMatrices(plan, ms[m], ns[n], ks[k]) &&
            (!best || plan.m * plan.n * plan.k > best->m * best->n * best->k))
          best = plan;
      }
  return best;
}

/// What the result starts from: a constant, or an argument that has the
/// result's layout.
bool setStart(GemmPlan &plan, const Contraction &product) {
  Value init = product.init().get();
  if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
    FloatAttr value;
    if (!matchPattern(fill.value(), m_Constant(&value)))
      return false;
    plan.startValue = value.getValueAsDouble();
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
  plan.start = GemmPlan::Start::Argument;
  plan.startArgument = argument.getArgNumber();
  plan.startOffset = view->offset;
  return true;
}

std::optional<GemmPlan> planGeneric(func::FuncOp kernel) {
  auto product = onlyContraction(kernel);
  if (!product)
    return std::nullopt;
  for (Value operand : product->op->getOperands())
    if (!getElementTypeOrSelf(operand.getType()).isF32())
      return std::nullopt;
  auto a = traceOperand(product->op, product->lhs());
  auto b = traceOperand(product->op, product->rhs());
  auto c = resultStrides(*product);
  GemmPlan base;
  if (!a || !b || !c || !isa<BlockArgument>(a->root) ||
      !isa<BlockArgument>(b->root) || !setStart(base, *product))
    return std::nullopt;
  base.argumentA = cast<BlockArgument>(a->root).getArgNumber();
  base.argumentB = cast<BlockArgument>(b->root).getArgNumber();
  base.offsetA = a->offset;
  base.offsetB = b->offset;

  SmallVector<int64_t> sizes = product->op.getStaticLoopRanges();
  auto loopsOf = [&](LoopClass which) {
    Loops loops;
    for (unsigned loop : product->loops(which))
      if (sizes[loop] > 1)
        loops.push_back(
            {sizes[loop], a->strides[loop], b->strides[loop], (*c)[loop]});
    if (loops.empty() && which != LoopClass::Batch)
      loops.push_back({});
    return loops;
  };
  Loops batch = loopsOf(LoopClass::Batch), ms = loopsOf(LoopClass::M),
        ns = loopsOf(LoopClass::N), ks = loopsOf(LoopClass::K);
  // Merged loops make larger products; but a convolution's windows overlap, and
  // merging the loops inside one may leave rows shorter than what they hold.
  Loops mergedM = ms, mergedN = ns, mergedK = ks;
  for (Loops *loops : {&batch, &mergedM, &mergedN, &mergedK})
    collapse(*loops);
  auto merged = chooseLoops(base, batch, mergedM, mergedN, mergedK);
  return merged ? merged : chooseLoops(base, batch, ms, ns, ks);
}
} // namespace

std::optional<GemmPlan> baechi::planGemm(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  bool named = llvm::any_of(kernel.getBody().front(), [](Operation &op) {
    return isa<linalg::ContractionOpInterface>(op) &&
           !isa<linalg::GenericOp>(op);
  });
  if (!named)
    return planGeneric(kernel);
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
  return planGeneric(*copy);
}
