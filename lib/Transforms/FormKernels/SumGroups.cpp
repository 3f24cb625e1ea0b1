//===- SumGroups.cpp - Groups of products that are added up -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "OperatorGroups.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// The iterations of the sums of a group, at most: with fewer, reading and
/// writing the result takes longer than multiplying, and with more its operands
/// would wait, in memory, for too many others.
static constexpr int64_t kMostSummed = 256;
/// Bounds the code of a kernel.
static constexpr size_t kMostProducts = 8;

/// True when both move through their operands in the same way.
static bool areAlike(const Contraction &a, const Contraction &b) {
  auto layout = [](const Contraction &product, OpOperand &operand) {
    std::optional<StridedView> view = traceOperand(product.op, operand);
    return view ? view->strides : SmallVector<int64_t>();
  };
  linalg::GenericOp x = a.op, y = b.op;
  return x.getIndexingMaps() == y.getIndexingMaps() &&
         x.getIteratorTypes() == y.getIteratorTypes() &&
         x->getResultTypes() == y->getResultTypes() &&
         getElementTypeOrSelf(x->getResultTypes()[0]).isF32() &&
         x.getStaticLoopRanges() == y.getStaticLoopRanges() &&
         llvm::all_of(llvm::seq(2), [&](unsigned side) {
           SmallVector<int64_t> strides = layout(a, x->getOpOperand(side));
           return x.getDpsInputs()[side].getType() ==
                      y.getDpsInputs()[side].getType() &&
                  !strides.empty() &&
                  strides == layout(b, y->getOpOperand(side));
         });
}

void formkernels::groupSums(OperatorGroups &groups) {
  for (Operation *op : groups.operators()) {
    std::optional<Contraction> product = matchContraction(op);
    if (!product || !product->init().get().hasOneUse())
      continue;
    std::optional<Contraction> previous =
        matchContraction(product->init().get().getDefiningOp());
    if (!previous || !areAlike(*previous, *product))
      continue;
    auto before = *groups.groupOf(previous->op);
    size_t products = groups.members(before).size() + 1;
    if (products <= kMostProducts &&
        int64_t(products) * product->size(LoopClass::K) <= kMostSummed)
      (void)groups.merge(before, *groups.groupOf(op));
  }
}
