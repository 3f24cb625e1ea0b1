//===- RepeatSums.cpp - Small sums, computed where they are read ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The statistics of a batch are small, and all pieces wait for them. Computed
/// on one device they are sent twice, there and back; where sending takes what
/// a message takes, whatever its size, each piece's device adds the partial
/// results itself, and computes what follows of them.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Pieces.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// What follows a sum, in operations.
static constexpr unsigned kLongest = 8;

static bool isSmall(Type type, int64_t most) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor ||
         tensorBytes(tensor, /*aligned=*/false).value_or(most + 1) <= most;
}

bool PieceTable::isSmallSum(Value value) const {
  auto parts = partial.find(value);
  return repeatedBytes > 0 && parts != partial.end() &&
         !parts->second.chained && isSmall(value.getType(), repeatedBytes);
}

/// Whether \p value is a small sum, or small and computed of one by operations
/// that are not cut.
bool PieceTable::isRepeated(Value value, unsigned depth) const {
  if (repeatedBytes == 0 || depth > kLongest ||
      !isSmall(value.getType(), repeatedBytes))
    return false;
  if (isSmallSum(value) || repeated.contains(value) || sumOf.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !kept.contains(op) || !isMemoryEffectFree(op))
    return false;
  auto isLittle = [&](Type type) { return isSmall(type, repeatedBytes); };
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return captured.empty() && llvm::all_of(op->getOperandTypes(), isLittle) &&
         llvm::all_of(op->getResultTypes(), isLittle) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isRepeated(operand, depth + 1);
         });
}

const SmallVector<Value> &PieceTable::repeatSum(Value value) {
  SmallVector<Value> &sums = repeated[value];
  if (sums.empty()) {
    const Partials &parts = partial.find(value)->second;
    sums = joinForEach(builder, value.getLoc(), nameOf(value.getDefiningOp()),
                       parts.values, parts.combiner);
  }
  return sums;
}

SmallVector<Value> PieceTable::repeat(Value value, size_t count) {
  if (isSmallSum(value)) {
    SmallVector<Value> sums = repeatSum(value);
    return sums.size() == count ? sums
                                : SmallVector<Value>(count, whole(value));
  }
  if (auto sum = sumOf.find(value); sum != sumOf.end())
    return repeat(sum->second, count);
  if (!isRepeated(value)) {
    SmallVector<Value> same(count, value);
    // Storage is each one's own.
    if (Operation *made = value.getDefiningOp();
        isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(made))
      for (Value &own : same)
        own = builder.clone(*made)->getResult(0);
    return same;
  }
  if (auto known = repeated.find(value); known != repeated.end())
    return known->second.size() == count ? known->second
                                         : SmallVector<Value>(count, value);
  Operation *op = value.getDefiningOp();
  SmallVector<SmallVector<Value>> operands;
  for (Value operand : op->getOperands())
    operands.push_back(repeat(operand, count));
  for (size_t number = 0; number < count; ++number) {
    Operation *own = builder.clone(*op);
    own->setLoc(namedAfter(op, ".piece" + Twine(number)));
    for (auto [index, all] : llvm::enumerate(operands))
      own->setOperand(index, all[number]);
    for (auto [result, mine] : llvm::zip(op->getResults(), own->getResults()))
      repeated[result].push_back(mine);
  }
  return repeated[value];
}

SmallVector<Value> PieceTable::wholeForEach(Value value, size_t count) {
  if (isRepeated(value))
    return repeat(value, count);
  return SmallVector<Value>(count, whole(value));
}
