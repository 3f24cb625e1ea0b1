//===- StoredArguments.cpp - What a cut leaves in pieces ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredArguments.h"
#include "Baechi/Dialect/Baechi.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

StoredArguments::StoredArguments(func::FuncOp step) {
  Operation *end = step.front().getTerminator();
  for (BlockArgument argument : step.getArguments())
    if (auto by = step.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), BaechiDialect::kUpdatedBy)) {
      Value value = end->getOperand(by.getInt());
      next[argument] = value;
      updated[value].push_back(argument);
    }
}

bool StoredArguments::isStored(BlockArgument argument, const Cut &cut) const {
  if (!cut.isReadInPieces(argument))
    return false;
  Value updates = next.lookup(argument);
  if (!updates)
    return true;
  auto made = cut.values.find(updates);
  return made != cut.values.end() &&
         made->second == cut.values.find(argument)->second &&
         cut.operations.contains(updates.getDefiningOp());
}

bool StoredArguments::isReturnedInPieces(Value value, const Cut &cut) const {
  auto arguments = updated.find(value);
  return arguments != updated.end() &&
         llvm::all_of(arguments->second, [&](BlockArgument argument) {
           return isStored(argument, cut);
         });
}
