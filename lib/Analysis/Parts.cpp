//===- Parts.cpp - Tensors written into what they are part of -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Slices.h"
#include "Baechi/Dialect/Parts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

/// Reshapes keep the order of elements.
static Value withoutReshapes(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether tensors of these types at these offsets follow each other from the
/// start to the end of \p whole bytes, each where tensors may start.
static bool areAllOf(int64_t whole, ArrayRef<int64_t> parts, TypeRange types) {
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (auto [part, type] : llvm::zip_equal(parts, types))
    ranges.push_back({part, tensorBytes(type, false).value_or(0)});
  llvm::sort(ranges);
  int64_t end = 0;
  for (auto [from, bytes] : ranges) {
    if (from != end || from % kAlignment != 0 || bytes == 0)
      return false;
    end = from + bytes;
  }
  return end == whole;
}

std::optional<SmallVector<int64_t>> baechi::findParts(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock() || kernel.getNumResults() != 1 ||
      kernel.getNumArguments() < 2)
    return std::nullopt;
  std::optional<int64_t> whole = tensorBytes(kernel.getResultTypes()[0], false);
  SmallVector<int64_t> parts(kernel.getNumArguments(), -1);
  Value value = withoutReshapes(kernel.front().getTerminator()->getOperand(0));
  while (auto insert = value.getDefiningOp<tensor::InsertSliceOp>()) {
    auto argument =
        dyn_cast<BlockArgument>(withoutReshapes(insert.getSource()));
    std::optional<int64_t> offset = insertOffset(insert);
    if (!argument || !offset || parts[argument.getArgNumber()] >= 0)
      return std::nullopt;
    parts[argument.getArgNumber()] = *offset;
    value = withoutReshapes(insert.getDest());
  }
  if (!whole || !value.getDefiningOp<tensor::EmptyOp>() ||
      !areAllOf(*whole, parts, kernel.getArgumentTypes()))
    return std::nullopt;
  return parts;
}

ArrayRef<int64_t> baechi::partsOf(Operation *op,
                                  SymbolTableCollection &symbols) {
  func::FuncOp kernel = kernelOf(op, symbols);
  if (!kernel || op->getNumResults() != 1)
    return {};
  auto stated = kernel.getResultAttrOfType<DenseI64ArrayAttr>(0, kParts);
  std::optional<int64_t> whole = tensorBytes(op->getResult(0).getType(), false);
  if (!stated || !whole ||
      stated.size() != static_cast<int64_t>(op->getNumOperands()) ||
      !areAllOf(*whole, stated.asArrayRef(), op->getOperandTypes()))
    return {};
  return stated.asArrayRef();
}

BlockArgument baechi::firstPart(Operation *op, SymbolTableCollection &symbols) {
  if (op->hasAttr(kJoined))
    for (auto [operand, part] :
         llvm::zip(op->getOperands(), partsOf(op, symbols)))
      if (part == 0)
        return dyn_cast<BlockArgument>(operand);
  return {};
}

/// Where \p value lies in its device's arena; nullopt for what is lent, a host
/// device's constant or not planned for.
static std::optional<int64_t> plannedOffset(Value value) {
  Value root = rootOf(value);
  if (auto argument = dyn_cast<BlockArgument>(root)) {
    auto step = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    auto offset = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                     BaechiDialect::kOffset);
    return offset ? std::optional(offset.getInt() + offsetInRoot(value))
                  : std::nullopt;
  }
  auto result = cast<OpResult>(root);
  auto offsets = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(
      BaechiDialect::kOffset);
  if (!offsets || offsets.size() <= result.getResultNumber())
    return std::nullopt;
  return offsets[result.getResultNumber()] + offsetInRoot(value);
}

SmallVector<bool> baechi::partsInPlace(Operation *op,
                                       SymbolTableCollection &symbols) {
  SmallVector<bool> inPlace(op->getNumOperands(), false);
  ArrayRef<int64_t> parts = partsOf(op, symbols);
  if (parts.empty())
    return inPlace;
  std::optional<int64_t> whole = plannedOffset(op->getResult(0));
  for (auto [index, part] : llvm::enumerate(parts))
    inPlace[index] =
        whole && plannedOffset(op->getOperand(index)) == *whole + part;
  return inPlace;
}

PartsLeft baechi::partsLeft(Operation *op, SymbolTableCollection &symbols) {
  if (op->hasAttr(kJoined))
    return {.copied = 0};
  SmallVector<bool> inPlace = partsInPlace(op, symbols);
  if (!llvm::is_contained(inPlace, true))
    return {};
  PartsLeft left{0, 0};
  for (auto [operand, lies] : llvm::zip_equal(op->getOperands(), inPlace)) {
    int64_t bytes = tensorBytes(operand.getType(), false).value_or(0);
    left.all += bytes;
    left.copied += lies ? 0 : bytes;
  }
  return left;
}
