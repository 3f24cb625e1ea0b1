//===- MayAlias.cpp - Results that may be computed in place -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MayAlias.h"
#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Parts.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// The uses of `value`, those of its reshaped views included: these keep the
/// order of elements.
static SmallVector<OpOperand *> usesThroughReshapes(Value value) {
  SmallVector<OpOperand *> uses;
  SmallVector<Value> work{value};
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses())
      if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(use.getOwner()))
        work.push_back(use.getOwner()->getResult(0));
      else
        uses.push_back(&use);
  return uses;
}

static bool isIdentityUse(linalg::GenericOp op, OpOperand *use) {
  return use->getOwner() == op && op.getMatchingIndexingMap(use).isIdentity();
}

/// True when `op` alone reads the argument, and writing element i of the result
/// after reading element i of the argument leaves all that is read later as it
/// was.
static bool mayAlias(linalg::GenericOp op, unsigned result,
                     BlockArgument argument) {
  SmallVector<OpOperand *> uses = usesThroughReshapes(argument);
  OpOperand *init = op.getDpsInitOperand(result);
  if (matchContraction(op)) {
    // Of products that are added up, what the first one starts from.
    while (auto previous = init->get().getDefiningOp<linalg::GenericOp>()) {
      if (!matchContraction(previous) || !init->get().hasOneUse())
        return false;
      init = previous.getDpsInitOperand(0);
    }
    return uses.size() == 1 && uses.front() == init;
  }
  auto argumentType = cast<RankedTensorType>(argument.getType());
  auto resultType = cast<RankedTensorType>(op.getResult(result).getType());
  return op.getNumReductionLoops() == 0 && !uses.empty() &&
         argumentType.getElementType() == resultType.getElementType() &&
         argumentType.getNumElements() == resultType.getNumElements() &&
         isIdentityUse(op, init) && llvm::all_of(uses, [&](OpOperand *use) {
           return isIdentityUse(op, use) && op.isDpsInput(use);
         });
}

void formkernels::markAliases(func::FuncOp kernel) {
  for (OpOperand &returned : kernel.front().getTerminator()->getOpOperands()) {
    unsigned number = returned.getOperandNumber();
    SmallVector<int64_t> arguments;
    if (std::optional<ArgumentChange> change = changeOf(kernel, number))
      arguments.push_back(change->argument);
    if (auto op = returned.get().getDefiningOp<linalg::GenericOp>())
      for (BlockArgument argument : kernel.getArguments())
        if (mayAlias(op, cast<OpResult>(returned.get()).getResultNumber(),
                     argument))
          arguments.push_back(argument.getArgNumber());
    if (!arguments.empty())
      kernel.setResultAttr(
          number, BaechiDialect::kMayAlias,
          DenseI64ArrayAttr::get(kernel.getContext(), arguments));
  }
  if (std::optional<SmallVector<int64_t>> parts = findParts(kernel))
    kernel.setResultAttr(0, kParts,
                         DenseI64ArrayAttr::get(kernel.getContext(), *parts));
}
