//===- TakenOver.cpp - Results in their operands' places ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TakenOver.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

int64_t baechi::bytesTakenOver(FunctionOpInterface step) {
  int64_t most = 0;
  SymbolTableCollection symbols;
  for (Operation *op : operatorsOf(step)) {
    int64_t bytes = 0;
    llvm::SmallDenseSet<Value> taken;
    for (OpResult result : op->getResults())
      for (Value operand : op->getOperands()) {
        Value root = rootOf(operand);
        std::optional<int64_t> held = tensorBytes(result.getType(), true);
        if (isa<BlockArgument>(root) || taken.contains(root) || !held ||
            tensorBytes(root.getType(), true) != held ||
            matchPattern(root.getDefiningOp(), m_Constant()) ||
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
