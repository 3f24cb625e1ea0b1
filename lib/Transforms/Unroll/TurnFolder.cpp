//===- TurnFolder.cpp - What is known of a turn ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TurnFolder.h"
#include "StackSlices.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::unroll;

bool unroll::isNumber(Type type) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  return getElementTypeOrSelf(type).isIntOrIndex() &&
         (!shaped || (shaped.hasStaticShape() && shaped.getNumElements() == 1));
}

static Attribute constantOf(Value value) {
  Attribute constant;
  return matchPattern(value, m_Constant(&constant)) ? constant : Attribute();
}

using Known = llvm::DenseMap<Value, Attribute>;

/// Enters the results of \p op, of known operands; false where they are not.
static bool evaluate(Operation &op, Known &known) {
  SmallVector<Attribute> operands;
  for (Value operand : op.getOperands()) {
    auto found = known.find(operand);
    operands.push_back(found != known.end() ? found->second
                                            : constantOf(operand));
  }
  SmallVector<OpFoldResult> results;
  // What folds in place is another operation then, and no constant.
  if (failed(op.fold(operands, results)) ||
      results.size() != op.getNumResults())
    return false;
  for (auto [result, folded] : llvm::zip_equal(op.getResults(), results)) {
    Attribute value = dyn_cast<Attribute>(folded);
    if (auto other = dyn_cast<Value>(folded)) {
      auto found = known.find(other);
      value = found != known.end() ? found->second : constantOf(other);
    }
    if (!value)
      return false;
    known[result] = value;
  }
  return true;
}

/// The same of the body of \p op, which runs once.
static bool evaluateBody(linalg::LinalgOp op, Known &known) {
  if (!llvm::all_of(op.getStaticLoopRanges(),
                    [](int64_t size) { return size == 1; }))
    return false;
  for (auto [argument, operand] :
       llvm::zip_equal(op.getBlock()->getArguments(), op->getOperands())) {
    Attribute value = constantOf(operand);
    if (auto elements = dyn_cast_or_null<DenseElementsAttr>(value))
      value = elements.isSplat() ? elements.getSplatValue<Attribute>()
                                 : Attribute();
    if (value)
      known[argument] = value;
  }
  for (Operation &inner : op.getBlock()->without_terminator())
    if (!evaluate(inner, known))
      return false;
  Operation *end = op.getBlock()->getTerminator();
  for (auto [result, made] :
       llvm::zip_equal(op->getResults(), end->getOperands())) {
    auto found = known.find(made);
    auto value = dyn_cast_or_null<TypedAttr>(
        found != known.end() ? found->second : constantOf(made));
    auto type = cast<RankedTensorType>(result.getType());
    // What is undefined has a value of another kind.
    if (!value || value.getType() != type.getElementType())
      return false;
    known[result] = DenseElementsAttr::get(type, Attribute(value));
  }
  return true;
}

Value TurnFolder::constant(Attribute value, Type type) {
  Value &made = known[{value, type}];
  if (!made)
    made = arith::ConstantOp::create(constants, constants.getUnknownLoc(), type,
                                     cast<TypedAttr>(value));
  return made;
}

SmallVector<Value> TurnFolder::foldNumbers(Operation *op) {
  if (op->getNumResults() == 0 || op->hasTrait<OpTrait::ConstantLike>() ||
      !llvm::all_of(op->getResultTypes(), isNumber))
    return {};
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured && op->getNumRegions() > 0)
    return {};
  Known results;
  if (structured ? !evaluateBody(structured, results) : !evaluate(*op, results))
    return {};
  // What is undefined has a value of another kind.
  if (!llvm::all_of(op->getResults(), [&](Value result) {
        auto value = dyn_cast<TypedAttr>(results.lookup(result));
        return value && value.getType() == result.getType();
      }))
    return {};
  return llvm::map_to_vector(op->getResults(), [&](Value result) {
    return constant(results.lookup(result), result.getType());
  });
}

/// \p values with the numbers of those that are constants.
static bool makeStatic(SmallVector<OpFoldResult> &values) {
  bool changed = false;
  for (OpFoldResult &value : values)
    if (auto computed = dyn_cast<Value>(value))
      if (auto number = dyn_cast_or_null<IntegerAttr>(constantOf(computed))) {
        value = number;
        changed = true;
      }
  return changed;
}

/// \p whole: what it is a slice of. One that goes beyond stays as it is.
template <typename Slice>
static void makePlaceStatic(Slice slice, RankedTensorType whole) {
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  if (!makeStatic(offsets))
    return;
  SmallVector<Value> computed;
  SmallVector<int64_t> known;
  dispatchIndexOpFoldResults(offsets, computed, known);
  for (auto [from, size, stride, all] :
       llvm::zip_equal(known, slice.getStaticSizes(), slice.getStaticStrides(),
                       whole.getShape()))
    if (!ShapedType::isDynamic(from) &&
        (from < 0 || ShapedType::isDynamic(size) ||
         ShapedType::isDynamic(stride) || ShapedType::isDynamic(all) ||
         from + (size - 1) * stride >= all))
      return;
  slice.getOffsetsMutable().assign(computed);
  slice.setStaticOffsets(known);
}

SmallVector<Value> TurnFolder::fold(Operation *op) {
  if (auto write = dyn_cast<tensor::InsertSliceOp>(op)) {
    makePlaceStatic(write, write.getDestType());
    return {};
  }
  if (auto read = dyn_cast<tensor::ExtractSliceOp>(op)) {
    makePlaceStatic(read, read.getSourceType());
    if (Value written = writtenBefore(read))
      return {written};
    return {};
  }
  return foldNumbers(op);
}
