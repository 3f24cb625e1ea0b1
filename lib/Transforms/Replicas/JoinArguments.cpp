//===- JoinArguments.cpp - Slices read where they lie ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter in slices is read as a whole. Where all of its slices have
// places for good, their own or those of copies that others send, the whole is
// these places, if they lie behind each other. Then a slice must not get its
// next value before the whole was read: of copies placeAroundReaders sees to
// that, of updates it is looked for here.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Parts.h"
#include "Messages.h"

using namespace mlir;
using namespace baechi;

SmallVector<InPlaceUpdate> baechi::updatesInPlace(func::FuncOp step,
                                                  unsigned argument) {
  auto by =
      step.getArgAttrOfType<IntegerAttr>(argument, BaechiDialect::kUpdatedBy);
  if (!by)
    return {};
  SmallVector<InPlaceUpdate> updates = inPlaceUpdates(step);
  llvm::erase_if(updates, [&](const InPlaceUpdate &update) {
    return update.argument != argument;
  });
  for (const InPlaceUpdate &update : updates)
    for (Operation *reader : readersOf(update.previous, update.updater))
      if (!reader->isBeforeInBlock(update.updater))
        return {};
  Value next =
      rootOf(step.getBody().front().getTerminator()->getOperand(by.getInt()));
  if (updates.empty() ||
      updates.back().updater->getResult(updates.back().result) != next)
    return {};
  return updates;
}

/// Whether \p join puts arguments together, each once, and no other whole has
/// one of them that is put together otherwise.
static bool mayJoin(func::CallOp join,
                    const llvm::DenseMap<Value, Operation *> &joins) {
  llvm::SmallDenseSet<Value> seen;
  return llvm::all_of(join.getOperands(), [&](Value operand) {
    Operation *other = joins.lookup(operand);
    return isa<BlockArgument>(operand) && seen.insert(operand).second &&
           (!other || other->getOperands() == join.getOperands());
  });
}

/// Whether what \p join makes is read on this device alone, within the step.
static bool staysHere(Operation *join) {
  Value whole = join->getResult(0);
  return llvm::none_of(join->getBlock()->getTerminator()->getOperands(),
                       [&](Value value) { return rootOf(value) == whole; }) &&
         llvm::none_of(readersOf(whole, nullptr), llvm::IsaPred<SendOp>);
}

/// Whether each slice keeps its value until all have read \p join, which reads
/// it where it lies.
static bool keepsParts(func::FuncOp step, Operation *join) {
  SmallVector<Operation *> readers = readersOf(join->getResult(0), nullptr);
  return llvm::all_of(join->getOperands(), [&](Value operand) {
    unsigned number = cast<BlockArgument>(operand).getArgNumber();
    if (step.getArgAttr(number, kMirror))
      return true;
    SmallVector<InPlaceUpdate> updates = updatesInPlace(step, number);
    return !updates.empty() &&
           llvm::none_of(updates, [&](const InPlaceUpdate &update) {
             return llvm::is_contained(readers, update.updater);
           });
  });
}

void baechi::joinArguments(func::FuncOp step) {
  SymbolTableCollection symbols;
  llvm::DenseMap<Value, Operation *> joins;
  for (auto join : step.getOps<func::CallOp>()) {
    if (partsOf(join, symbols).empty() || !staysHere(join) ||
        !mayJoin(join, joins))
      continue;
    join->setAttr(kJoined, UnitAttr::get(step.getContext()));
    if (!keepsParts(step, join)) {
      join->removeAttr(kJoined);
      continue;
    }
    for (Value operand : join.getOperands())
      joins[operand] = join;
  }
}
