//===- ExactSums.cpp - Sums in one order, whatever computes them ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Dialect/Baechi.h"

using namespace mlir;
using namespace baechi;
using Flags = arith::FastMathFlags;

template <typename Op> static void setFlags(Op op, Flags flags) {
  op->setAttr(op.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}

bool baechi::isExact(func::FuncOp function) {
  auto asked =
      function->getAttrOfType<StringAttr>(BaechiDialect::kImplementation);
  return asked && asked.getValue() == kExact;
}

void baechi::clearFastMath(Operation *root) {
  root->walk(
      [](arith::ArithFastMathInterface op) { setFlags(op, Flags::none); });
}

arith::MulFOp baechi::fusedProductOf(arith::AddFOp sum) {
  if (!bitEnumContainsAll(sum.getFastmath(), Flags::contract))
    return nullptr;
  for (Value term : sum->getOperands())
    if (auto product = term.getDefiningOp<arith::MulFOp>();
        product && bitEnumContainsAll(product.getFastmath(), Flags::contract))
      return product;
  return nullptr;
}

void baechi::markFusedProduct(arith::AddFOp sum, arith::MulFOp product) {
  setFlags(sum, Flags::contract);
  setFlags(product, Flags::contract);
}

bool baechi::addsFused(linalg::GenericOp op) {
  auto sum = op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  return sum && fusedProductOf(sum);
}

/// What adds each result's terms up, null for results that the last reduction
/// loop writes element by element; empty where any is made otherwise.
static SmallVector<arith::AddFOp> sumsOf(linalg::GenericOp op) {
  std::optional<unsigned> last = lastReductionLoop(op);
  if (!last)
    return {};
  SmallVector<arith::AddFOp> sums;
  Operation *end = op.getBody()->getTerminator();
  for (auto [init, soFar, yielded] :
       llvm::zip_equal(op.getDpsInitsMutable(), op.getRegionOutputArgs(),
                       end->getOperands())) {
    if (op.getMatchingIndexingMap(&init).isFunctionOfDim(*last)) {
      if (!soFar.use_empty())
        return {};
      sums.push_back(nullptr);
      continue;
    }
    auto sum = yielded.getDefiningOp<arith::AddFOp>();
    if (!sum || !soFar.hasOneUse() || *soFar.user_begin() != sum ||
        !sum->hasOneUse())
      return {};
    sums.push_back(sum);
  }
  return sums;
}

bool baechi::isOneChain(linalg::GenericOp op) {
  return llvm::any_of(sumsOf(op), [](arith::AddFOp sum) {
    return sum && bitEnumContainsAll(sum.getFastmath(), Flags::contract);
  });
}

SmallVector<arith::AddFOp> baechi::laneSumsOf(linalg::GenericOp op) {
  SmallVector<arith::AddFOp> sums = sumsOf(op);
  bool any = false, all = true;
  for (arith::AddFOp sum : sums) {
    bool marked = sum && bitEnumContainsAll(sum.getFastmath(), Flags::reassoc);
    any |= marked;
    all &= !sum || marked;
  }
  return any && all ? sums : SmallVector<arith::AddFOp>();
}

/// Whether the terms of the innermost reduction loop lie together in all inputs
/// that it moves through, and are many. No parallel loop's extent counts: an
/// element is added up the same in a whole, in a piece and in a row of it.
static bool fillsLanes(linalg::GenericOp op) {
  unsigned last = *lastReductionLoop(op);
  if (termsOf(op) < kFewestLaneTerms ||
      op.getStaticLoopRanges()[last] < kFewestTogether)
    return false;
  AffineExpr walks = getAffineDimExpr(last, op.getContext());
  bool any = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(last))
      continue;
    if (map.getResults().back() != walks)
      return false;
    any = true;
  }
  return any;
}

/// The product that \p sum, a contraction's, adds.
static arith::MulFOp productOf(arith::AddFOp sum) {
  for (Value term : sum->getOperands())
    if (auto product = term.getDefiningOp<arith::MulFOp>())
      return product;
  return nullptr;
}

std::optional<SumKind> baechi::sumKindOf(linalg::GenericOp op) {
  SmallVector<arith::AddFOp> sums = sumsOf(op);
  if (llvm::none_of(sums, [](arith::AddFOp sum) { return bool(sum); }))
    return std::nullopt;
  if (matchContraction(op))
    return sums.front().getType().isF32() ? SumKind::Fused : SumKind::InTurn;
  return fillsLanes(op) ? SumKind::InLanes : SumKind::InTurn;
}

void baechi::markSums(linalg::GenericOp op) {
  std::optional<SumKind> kind = sumKindOf(op);
  if (!kind || *kind == SumKind::InTurn)
    return;
  SmallVector<arith::AddFOp> sums = sumsOf(op);
  if (*kind == SumKind::Fused)
    return markFusedProduct(sums.front(), productOf(sums.front()));
  for (arith::AddFOp sum : sums)
    if (sum)
      setFlags(sum, Flags::reassoc);
}

bool baechi::isLoopOfDots(linalg::GenericOp op) {
  std::optional<Contraction> product = matchContraction(op);
  if (!product || !fillsLanes(op)) // which both factors move through
    return false;
  SmallVector<arith::AddFOp> sums = sumsOf(op);
  return sums.size() == 1 && sums.front() &&
         (!sums.front().getType().isF32() ||
          product->size(LoopClass::M) < kFewestTiledRows ||
          product->size(LoopClass::N) < kFewestTiledRows);
}

void baechi::markLoopOfDots(linalg::GenericOp op) {
  arith::AddFOp sum = sumsOf(op).front();
  setFlags(sum, sum.getFastmath() | Flags::reassoc);
}

int64_t baechi::termsOf(linalg::LinalgOp op) {
  int64_t terms = 1;
  for (auto [kind, range] :
       llvm::zip_equal(op.getIteratorTypesArray(), op.getStaticLoopRanges()))
    if (kind == utils::IteratorType::reduction)
      terms *= range;
  return terms;
}

std::optional<unsigned> baechi::lastReductionLoop(linalg::LinalgOp op) {
  std::optional<unsigned> last;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      last = loop;
  return last;
}

void baechi::keepReductionOrder(linalg::LinalgOp op,
                                SmallVectorImpl<unsigned> &order) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  auto isReduction = [&](unsigned loop) {
    return kinds[loop] == utils::IteratorType::reduction;
  };
  SmallVector<unsigned> reductions = llvm::filter_to_vector(order, isReduction);
  llvm::sort(reductions);
  auto *next = reductions.begin();
  for (unsigned &loop : order)
    if (isReduction(loop))
      loop = *next++;
}
