//===- InPlace.cpp - Values computed in the buffers of others ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Recomputation.h"
#include "Baechi/Dialect/Parts.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

//===----------------------------------------------------------------------===//
// Within a kernel
//===----------------------------------------------------------------------===//

OpOperand *baechi::changedOperand(OpResult result) {
  Operation *op = result.getOwner();
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return &insert.getDestMutable();
  if (auto insert = dyn_cast<tensor::InsertOp>(op))
    return &insert.getDestMutable();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopInit(result);
  return nullptr;
}

std::optional<ArgumentChange> baechi::changeOf(func::FuncOp kernel,
                                               unsigned result) {
  // Of several blocks a result may come from more than one.
  if (!kernel.getBody().hasOneBlock())
    return std::nullopt;
  ArgumentChange change;
  Value value = kernel.front().getTerminator()->getOperand(result);
  // Nobody else sees what lies between.
  while (value.hasOneUse()) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      change.argument = argument.getArgNumber();
      return change.by.empty() ? std::nullopt : std::optional(change);
    }
    Operation *op = value.getDefiningOp();
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    OpOperand *before = changedOperand(cast<OpResult>(value));
    if (!before)
      return std::nullopt;
    change.by.push_back(before);
    value = before->get();
  }
  return std::nullopt;
}

static bool mayAlias(func::FuncOp kernel, unsigned result, int64_t argument) {
  auto allowed = kernel.getResultAttrOfType<DenseI64ArrayAttr>(
      result, BaechiDialect::kMayAlias);
  return allowed && llvm::is_contained(allowed.asArrayRef(), argument);
}

std::optional<ArgumentChange> baechi::inPlaceChangeOf(func::FuncOp kernel,
                                                      unsigned result) {
  std::optional<ArgumentChange> change = changeOf(kernel, result);
  if (change && !mayAlias(kernel, result, change->argument))
    return std::nullopt;
  return change;
}

//===----------------------------------------------------------------------===//
// Within a step
//===----------------------------------------------------------------------===//

/// True when a slice is among the views that make `value`.
static bool isPartOfRoot(Value value) {
  for (Operation *op = value.getDefiningOp(); op && isView(op);
       op = op->getOperand(0).getDefiningOp())
    if (isa<tensor::ExtractSliceOp>(op))
      return true;
  return false;
}

bool baechi::mayWriteInto(Operation *op, unsigned result, Value root,
                          SymbolTableCollection &symbols) {
  auto stated = dyn_cast<BufferOpInterface>(op);
  func::FuncOp kernel = kernelOf(op, symbols);
  auto allows = [&](size_t operand) {
    return stated ? stated.mayWriteInto(result, operand)
                  : kernel && mayAlias(kernel, result, operand);
  };
  // Every operand that is this buffer must be one that may be overwritten.
  bool found = false;
  for (auto [position, operand] : llvm::enumerate(op->getOperands())) {
    if (rootOf(operand) != root)
      continue;
    if (!allows(position) || isPartOfRoot(operand))
      return false;
    found = true;
  }
  return found;
}

SmallVector<Operation *> baechi::readersOf(Value value, Operation *updater) {
  llvm::SetVector<Operation *> readers;
  SmallVector<Value> aliases{value};
  while (!aliases.empty())
    for (Operation *inner : aliases.pop_back_val().getUsers()) {
      Operation *user = value.getParentBlock()->findAncestorOpInBlock(*inner);
      if (user == inner && isView(user))
        aliases.push_back(user->getResult(0));
      else if (user != updater && !user->hasTrait<OpTrait::IsTerminator>())
        readers.insert(user);
      // Whose result is where its operands are.
      if (user == inner && user->hasAttr(kJoined))
        aliases.push_back(user->getResult(0));
    }
  return readers.takeVector();
}

namespace {
/// Drops updates until the data edges and the edges reader -> updater have a
/// topological order: those whose updater is on or behind a cycle.
void dropCircular(FunctionOpInterface step,
                  SmallVector<InPlaceUpdate> &updates) {
  SmallVector<Operation *> operators = operatorsOf(step);
  while (!updates.empty()) {
    llvm::DenseMap<Operation *, int64_t> waits;
    llvm::DenseMap<Operation *, SmallVector<Operation *>> next;
    auto addEdge = [&](Operation *from, Operation *to) {
      next[from].push_back(to);
      ++waits[to];
    };
    for (Operation *op : operators)
      for (Value value : valuesReadBy(op))
        if (Operation *producer = rootOf(value).getDefiningOp())
          addEdge(producer, op);
    for (const LateClone &late : lateClones(step))
      addEdge(late.before, late.clone);
    for (const InPlaceUpdate &update : updates)
      for (Operation *reader : readersOf(update.previous, update.updater))
        addEdge(reader, update.updater);
    SmallVector<Operation *> ready;
    // Constants are producers too, and always ready.
    for (Operation &op : step.getFunctionBody().front())
      if (waits.lookup(&op) == 0)
        ready.push_back(&op);
    while (!ready.empty())
      for (Operation *op : next[ready.pop_back_val()])
        if (--waits[op] == 0)
          ready.push_back(op);
    size_t before = updates.size();
    llvm::erase_if(updates, [&](const InPlaceUpdate &update) {
      return waits.lookup(update.updater) > 0;
    });
    if (updates.size() == before)
      return;
  }
}
} // namespace

static bool isReturned(Value root) {
  return llvm::any_of(root.getParentBlock()->getTerminator()->getOperands(),
                      [&](Value value) { return rootOf(value) == root; });
}

func::FuncOp baechi::definitionOf(Operation *op,
                                  SymbolTableCollection &symbols) {
  func::FuncOp kernel = kernelOf(op, symbols);
  for (Operation *scope = kernel ? kernel->getParentOp() : nullptr;
       scope && kernel.isDeclaration(); scope = scope->getParentOp())
    if (scope->hasTrait<OpTrait::SymbolTable>())
      if (auto found = symbols.lookupSymbolIn<func::FuncOp>(
              scope, kernel.getSymNameAttr()))
        kernel = found;
  return kernel;
}

/// The operator's result that the kernel's result \p next is, but for some
/// elements, where its buffer may hold both; null when there is none.
static OpResult changedBy(OpResult next, SymbolTableCollection &symbols) {
  Operation *op = next.getOwner();
  unsigned number = next.getResultNumber();
  func::FuncOp kernel = definitionOf(op, symbols);
  auto change = kernel ? inPlaceChangeOf(kernel, number)
                       : std::optional<ArgumentChange>();
  if (!change)
    return {};
  auto before = dyn_cast<OpResult>(rootOf(op->getOperand(change->argument)));
  if (!before || matchPattern(before.getOwner(), m_Constant()) ||
      !mayWriteInto(op, number, before, symbols) || isReturned(before))
    return {};
  return before;
}

SmallVector<InPlaceUpdate> baechi::inPlaceUpdates(FunctionOpInterface step) {
  SmallVector<InPlaceUpdate> updates;
  Operation *terminator = step.getFunctionBody().front().getTerminator();
  llvm::DenseSet<Value> taken;
  SymbolTableCollection symbols;
  for (BlockArgument argument : step.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto by =
        step.getArgAttrOfType<IntegerAttr>(number, BaechiDialect::kUpdatedBy);
    if (!by)
      continue;
    // From the next value back to the argument.
    SmallVector<InPlaceUpdate> chain;
    auto next = dyn_cast<OpResult>(rootOf(terminator->getOperand(by.getInt())));
    while (next && !taken.contains(next)) {
      Operation *op = next.getOwner();
      if (mayWriteInto(op, next.getResultNumber(), argument, symbols)) {
        chain.push_back({number, argument, op, next.getResultNumber()});
        for (const InPlaceUpdate &update : llvm::reverse(chain)) {
          taken.insert(update.updater->getResult(update.result));
          updates.push_back(update);
        }
        break;
      }
      OpResult before = changedBy(next, symbols);
      chain.push_back({number, before, op, next.getResultNumber()});
      next = before;
    }
  }
  dropCircular(step, updates);
  return updates;
}

int64_t baechi::bytesCopied(Operation *op, ArrayRef<InPlaceUpdate> updates,
                            SymbolTableCollection &symbols) {
  func::FuncOp kernel = kernelOf(op, symbols);
  int64_t bytes = 0;
  for (unsigned result = 0; kernel && result < kernel.getNumResults();
       ++result) {
    if (!inPlaceChangeOf(kernel, result) ||
        llvm::any_of(updates, [&](const InPlaceUpdate &update) {
          return update.updater == op && update.result == result;
        }))
      continue;
    OpResult before = changedBy(op->getResult(result), symbols);
    if (!before || !readersOf(before, op).empty())
      bytes += tensorBytes(op->getResult(result).getType(), false).value_or(0);
  }
  return bytes;
}
