//===- PartPlaces.cpp - Which tensors are written into wholes -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartPlaces.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

/// Whether an operation of this device writes all of what \p operand is.
static bool isMadeHere(Value operand) {
  Value root = rootOf(operand);
  Operation *producer = root.getDefiningOp();
  auto recv = dyn_cast_or_null<RecvOp>(producer);
  return producer && !matchPattern(producer, m_Constant()) &&
         !(recv && recv.getLent()) && offsetInRoot(operand) == 0 &&
         tensorBytes(operand.getType(), false) ==
             tensorBytes(root.getType(), false);
}

llvm::DenseMap<Value, PartPlace>
baechi::findPartPlaces(func::FuncOp step,
                       const llvm::SmallPtrSetImpl<Operation *> &joined,
                       const llvm::DenseMap<Value, BlockArgument> &inArgument) {
  llvm::DenseMap<Value, PartPlace> places;
  SymbolTableCollection symbols;
  // What is put together may itself be a part of what comes later.
  for (Operation &op : llvm::reverse(step.getBody().front())) {
    if (!joined.contains(&op))
      continue;
    ArrayRef<int64_t> parts = partsOf(&op, symbols);
    PartPlace whole{op.getResult(0), 0};
    if (auto outer = places.find(op.getResult(0)); outer != places.end())
      whole = outer->second;
    for (auto [operand, part] : llvm::zip_equal(op.getOperands(), parts))
      if (Value root = rootOf(operand);
          isMadeHere(operand) && !inArgument.contains(root))
        places.try_emplace(root, PartPlace{whole.whole, whole.offset + part});
  }
  return places;
}
