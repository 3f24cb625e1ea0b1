//===- CapturedDestinations.cpp - Tensors that iterations share -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Lowering.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The tensor that `value` is a view of.
Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, tensor::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// True when a loop around `op` runs it again on the same `value`.
bool isCaptured(Operation *op, Value value) {
  Region *home = value.getParentRegion();
  for (Region *around = op->getParentRegion(); around && around != home;
       around = around->getParentRegion())
    if (isa<LoopLikeOpInterface>(around->getParentOp()))
      return true;
  return false;
}
} // namespace

void baechi::copyCapturedDestinations(func::FuncOp kernel) {
  SmallVector<OpOperand *> captured;
  kernel.walk([&](DestinationStyleOpInterface op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      if (!isa<RankedTensorType>(init.get().getType()))
        continue;
      Value source = sourceOf(init.get());
      bool isPart = isa<tensor::InsertSliceOp>(op) || source != init.get();
      if (isPart && isCaptured(op, source))
        captured.push_back(&init);
    }
  });
  for (OpOperand *init : captured) {
    OpBuilder builder(init->getOwner());
    Location loc = init->getOwner()->getLoc();
    auto type = cast<RankedTensorType>(init->get().getType());
    Value own = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
    auto copy = linalg::CopyOp::create(builder, loc, init->get(), own);
    init->set(copy.getResult(0));
  }
}
