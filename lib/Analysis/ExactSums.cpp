//===- ExactSums.cpp - Sums in one order, whatever computes them ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
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

arith::AddFOp baechi::laneSumOf(linalg::GenericOp op) {
  if (op.getNumDpsInits() != 1)
    return nullptr;
  auto sum = op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  return sum && bitEnumContainsAll(sum.getFastmath(), Flags::reassoc) ? sum
                                                                      : nullptr;
}

void baechi::markLaneSum(arith::AddFOp sum) { setFlags(sum, Flags::reassoc); }

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
