//===- TakenOver.cpp - Results in their operands' places ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TakenOver.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

/// Not a value's that stays where it is.
static std::optional<int64_t> bytesOfMade(Value root) {
  if (isa<BlockArgument>(root) ||
      matchPattern(root.getDefiningOp(), m_Constant()))
    return std::nullopt;
  return tensorBytes(root.getType(), true);
}

/// Of the operands of what puts them together.
static int64_t bytesOfParts(Operation *op) {
  int64_t bytes = 0;
  llvm::SmallDenseSet<Value> seen;
  for (Value operand : op->getOperands())
    if (Value root = rootOf(operand); seen.insert(root).second)
      bytes += bytesOfMade(root).value_or(0);
  return bytes;
}

int64_t baechi::bytesTakenOver(FunctionOpInterface step) {
  int64_t most = 0;
  SymbolTableCollection symbols;
  for (Operation *op : operatorsOf(step)) {
    int64_t bytes = partsOf(op, symbols).empty() ? 0 : bytesOfParts(op);
    llvm::SmallDenseSet<Value> taken;
    for (OpResult result : op->getResults())
      for (Value operand : op->getOperands()) {
        Value root = rootOf(operand);
        std::optional<int64_t> held = tensorBytes(result.getType(), true);
        if (taken.contains(root) || !held || bytesOfMade(root) != held ||
            !mayWriteInto(op, result.getResultNumber(), root, symbols))
          continue;
        taken.insert(root);
        bytes += *held;
        break;
      }
    most = std::max(most, bytes);
  }
  return most;
}
