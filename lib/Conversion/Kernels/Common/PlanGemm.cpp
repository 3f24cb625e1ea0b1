//===- PlanGemm.cpp - Contractions as products of matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Gemm.h"

using namespace mlir;
using namespace baechi;

namespace {
using Loop = ProductLoop;
using Loops = ProductLoops;

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
    for (ProductFactors &factors : plan.operands.factors)
      factors.transpose();
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

} // namespace

std::optional<GemmPlan> baechi::planGemm(func::FuncOp kernel,
                                         ProductTypes types) {
  std::optional<StridedProduct> product = matchStridedProduct(kernel, types);
  if (!product)
    return std::nullopt;
  GemmPlan base;
  base.operands = product->operands;
  base.factorType = product->factorType;
  base.resultType = product->resultType;
  // Merged loops make larger products; but a convolution's windows overlap, and
  // merging the loops inside one may leave rows shorter than what they hold.
  StridedProduct merged = *product;
  for (Loops *loops :
       {&merged.batch, &merged.rows, &merged.columns, &merged.sums})
    collapseLoops(*loops);
  auto plan =
      chooseLoops(base, merged.batch, merged.rows, merged.columns, merged.sums);
  return plan ? plan
              : chooseLoops(base, merged.batch, product->rows, product->columns,
                            product->sums);
}
