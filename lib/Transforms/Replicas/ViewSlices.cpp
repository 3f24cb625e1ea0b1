//===- ViewSlices.cpp - Slices sent where they lie ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gradient's slice is an operator until devices are known, so that it is sent
// by itself. From then on it is a part of the gradient, which stays until the
// slice was read and sent.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Slices.h"
#include "Baechi/Dialect/Replicas.h"
#include "Messages.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace baechi;

/// The slice that \p call copies, where it does nothing else.
static tensor::ExtractSliceOp copiedSlice(func::CallOp call,
                                          SymbolTableCollection &symbols) {
  func::FuncOp kernel = definitionOf(call, symbols);
  if (!kernel || !kernel.getBody().hasOneBlock() ||
      kernel.getNumArguments() != 1 || kernel.getNumResults() != 1)
    return {};
  auto slice = kernel.front()
                   .getTerminator()
                   ->getOperand(0)
                   .getDefiningOp<tensor::ExtractSliceOp>();
  bool isPlain =
      slice && slice.getSource() == kernel.getArgument(0) && sliceOffset(slice);
  return isPlain ? slice : tensor::ExtractSliceOp();
}

void baechi::viewSlices(func::FuncOp step) {
  SymbolTableCollection symbols;
  for (auto call : llvm::make_early_inc_range(step.getOps<func::CallOp>())) {
    tensor::ExtractSliceOp slice = copiedSlice(call, symbols);
    if (!slice || !rootOf(call.getOperand(0)).getDefiningOp<func::CallOp>() ||
        llvm::any_of(call->getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        }))
      continue;
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(slice.getSource(), call.getOperand(0));
    Operation *view = builder.clone(*slice, mapping);
    view->setLoc(call.getLoc());
    view->removeAttr(kCopied);
    view->setAttr(BaechiDialect::kView, builder.getUnitAttr());
    call->replaceAllUsesWith(view->getResults());
    call.erase();
  }
}
