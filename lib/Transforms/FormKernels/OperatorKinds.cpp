//===- OperatorKinds.cpp - Which operations become kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperatorKinds.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Replicas.h"
#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// Larger constants (that are not one value throughout) are the step's, so that
/// no kernel carries a copy.
static constexpr int64_t kLargeConstantBytes = 4096;

func::FuncOp formkernels::hostCallOf(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           call, call.getCalleeAttr())
                     : func::FuncOp();
  return isHostCall(callee) ? callee : func::FuncOp();
}

bool formkernels::isOrdered(Operation *op) {
  func::FuncOp callee = hostCallOf(op);
  return callee &&
         callee->getAttrOfType<DictionaryAttr>(BaechiDialect::kHostCall)
                 .getAs<StringAttr>("effects") == "ordered";
}

bool formkernels::isView(Operation *op) {
  return op && !op->hasAttr(kCopied) &&
         isa_and_nonnull<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
                         tensor::CollapseShapeOp>(op);
}

int64_t formkernels::tensorBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return 0;
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

OperatorKind formkernels::kindOf(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = dyn_cast<ElementsAttr>(constant.getValue());
    bool large = elements && !elements.isSplat() &&
                 tensorBytes(constant.getType()) > kLargeConstantBytes;
    return large ? OperatorKind::Kept : OperatorKind::Cloned;
  }
  if (op->hasAttr(kCopied))
    return OperatorKind::Operator;
  if (isView(op) || isa<tensor::EmptyOp>(op))
    return OperatorKind::Cloned;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.output().getDefiningOp<tensor::EmptyOp>()
               ? OperatorKind::Cloned
               : OperatorKind::Operator;
  bool scalar = op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  return scalar ? OperatorKind::Cloned : OperatorKind::Operator;
}

void formkernels::countOperators(func::FuncOp step, int64_t &operators,
                                 int64_t &bytes) {
  operators = bytes = 0;
  for (Operation &op : step.front().without_terminator()) {
    if (!isOperator(&op))
      continue;
    ++operators;
    bytes += workOf(&op).bytes;
  }
}
