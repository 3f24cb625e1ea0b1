//===- Uniform.cpp - Tensors whose elements are all the same --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Uniform.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

/// What is computed by more operations is not recognised: it is asked of every
/// tensor that a cut meets.
static constexpr size_t kMostOperations = 32;

/// A scalar, or a tensor of no dimension.
static bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() == 0 : !isa<ShapedType>(value.getType());
}

/// Computes each element from those of its operands, whatever its position.
static bool isElementwise(Operation *op) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops)
    return OpTrait::hasElementwiseMappableTraits(op) &&
           op->getNumRegions() == 0 && op->getNumOperands() > 0;
  if (loops.getNumReductionLoops() != 0 || loops.hasIndexSemantics())
    return false;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::none_of(
      captured, [](Value value) { return isa<ShapedType>(value.getType()); });
}

bool split::isUniform(Value value) {
  SetVector<Value> computed;
  computed.insert(value);
  for (size_t next = 0; next < computed.size(); ++next) {
    Value each = computed[next];
    Operation *op = each.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(each.getType());
    if (!op || !type || !type.hasStaticShape() || next == kMostOperations)
      return false;
    if (DenseElementsAttr constant; matchPattern(each, m_Constant(&constant))) {
      if (!constant.isSplat())
        return false;
      continue;
    }
    if (isa<tensor::EmptyOp, tensor::SplatOp>(op))
      continue;
    if (!isElementwise(op))
      return false;
    for (Value operand : op->getOperands())
      if (!isScalar(operand))
        computed.insert(operand);
  }
  return true;
}

bool split::isSharedUniform(Value value) {
  return !value.hasOneUse() && isUniform(value);
}
