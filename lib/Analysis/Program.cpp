//===- Program.cpp - A step as operators and tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;

FailureOr<func::FuncOp> baechi::findStep(ModuleOp module) {
  SmallVector<func::FuncOp> found;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && function.isPublic() &&
        !function->hasAttr(BaechiDialect::kKernel))
      found.push_back(function);
  if (found.size() == 1) {
    if (!llvm::hasSingleElement(found[0].getBody())) {
      emitError(found[0].getLoc())
          << "the step has several blocks; unstructured "
             "control flow cannot be placed";
      return failure();
    }
    return found[0];
  }
  InFlightDiagnostic diag = emitError(module.getLoc())
                            << "a program needs one public function, its "
                               "step; this module has ";
  if (found.empty())
    return diag << "none", failure();
  diag << found.size() << ":";
  for (func::FuncOp function : found)
    diag << " @" << function.getName();
  return failure();
}

bool baechi::isView(Operation *op) {
  if (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                      tensor::CastOp>(op))
    return true;
  auto stated = dyn_cast_or_null<BufferOpInterface>(op);
  return stated && stated.isView();
}

Value baechi::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isView(op))
      value = op->getOperand(0);
    else if (auto await = dyn_cast<AwaitOp>(op))
      value = await.getSource();
    else
      break;
  }
  return value;
}

std::optional<int64_t> baechi::tensorBytes(Type type, bool aligned) {
  if (auto future = dyn_cast<FutureType>(type))
    type = future.getValueType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  Type element = tensor.getElementType();
  int64_t width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  int64_t bytes = llvm::divideCeil(width, 8);
  for (int64_t size : tensor.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return aligned ? llvm::alignTo(bytes, kAlignment) : bytes;
}

SmallVector<Operation *> baechi::operatorsOf(func::FuncOp step) {
  SmallVector<Operation *> operators;
  for (Operation &op : step.getBody().front())
    if (!op.hasTrait<OpTrait::IsTerminator>() && !isView(&op) &&
        !matchPattern(&op, m_Constant()) &&
        !isa<SendOp, RecvOp, AwaitOp, CopyOp>(op))
      operators.push_back(&op);
  return operators;
}

SmallVector<Value> baechi::valuesReadBy(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == op->getBlock())
          values.push_back(operand);
    });
  return values;
}

LogicalResult baechi::checkShapes(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments())
    if (!tensorBytes(argument.getType(), true))
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber()
             << " of the step has type " << argument.getType()
             << "; only tensors of static shape can be placed";
  for (Operation *op : operatorsOf(step))
    for (Type type : op->getResultTypes())
      if (!tensorBytes(type, true))
        return op->emitOpError()
               << "has a result of type " << type
               << "; only tensors of static shape can be placed";
  return success();
}

std::string baechi::nameOf(Operation *op) {
  if (auto given = op->getAttrOfType<StringAttr>(BaechiDialect::kName))
    return given.str();
  std::string name;
  op->getLoc()->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

SmallVector<std::string> baechi::namesOf(func::FuncOp step) {
  SmallVector<std::string> names;
  llvm::StringMap<int64_t> used;
  auto add = [&](std::string name) {
    // "name", "name#1", "name#2": a taken name counts on.
    std::string unique = name;
    while (!used.try_emplace(unique, 0).second)
      unique = name + "#" + std::to_string(++used[name]);
    names.push_back(std::move(unique));
  };
  for (BlockArgument argument : step.getArguments()) {
    auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  BaechiDialect::kName);
    add(name ? name.str() : "arg" + std::to_string(argument.getArgNumber()));
  }
  SymbolTableCollection symbols;
  for (Operation *op : operatorsOf(step)) {
    std::string text = nameOf(op);
    if (text.empty()) {
      func::FuncOp kernel = kernelOf(op, symbols);
      text =
          kernel ? kernel.getName().str() : op->getName().getStringRef().str();
    }
    add(text);
  }
  return names;
}

func::FuncOp baechi::kernelOf(Operation *op) {
  SymbolTableCollection symbols;
  return kernelOf(op, symbols);
}

func::FuncOp baechi::kernelOf(Operation *op, SymbolTableCollection &symbols) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return {};
  for (Operation *scope = op->getParentOp(); scope;
       scope = scope->getParentOp()) {
    if (!scope->hasTrait<OpTrait::SymbolTable>())
      continue;
    auto kernel = symbols.lookupSymbolIn<func::FuncOp>(
        scope, call.getCalleeAttr().getAttr());
    if (kernel && kernel->hasAttr(BaechiDialect::kKernel))
      return kernel;
  }
  return {};
}

bool baechi::mayWriteInto(Operation *op, unsigned result, Value root,
                          SymbolTableCollection &symbols) {
  auto stated = dyn_cast<BufferOpInterface>(op);
  func::FuncOp kernel = kernelOf(op, symbols);
  auto allowed = kernel ? kernel.getResultAttrOfType<DenseI64ArrayAttr>(
                              result, BaechiDialect::kMayAlias)
                        : DenseI64ArrayAttr();
  auto allows = [&](size_t operand) {
    return stated
               ? stated.mayWriteInto(result, operand)
               : allowed && llvm::is_contained(allowed.asArrayRef(), operand);
  };
  // Every operand that is this buffer must be one that may be overwritten.
  bool found = false;
  for (auto [position, operand] : llvm::enumerate(op->getOperands())) {
    if (rootOf(operand) != root)
      continue;
    if (!allows(position))
      return false;
    found = true;
  }
  return found;
}

SmallVector<Operation *> baechi::readersOf(BlockArgument argument,
                                           Operation *updater) {
  llvm::SetVector<Operation *> readers;
  SmallVector<Value> aliases{argument};
  while (!aliases.empty())
    for (Operation *inner : aliases.pop_back_val().getUsers()) {
      Operation *user = argument.getOwner()->findAncestorOpInBlock(*inner);
      if (user == inner && isView(user))
        aliases.push_back(user->getResult(0));
      else if (user != updater && !user->hasTrait<OpTrait::IsTerminator>())
        readers.insert(user);
    }
  return readers.takeVector();
}

namespace {
/// Drops updates until the data edges and the edges reader -> updater have a
/// topological order: those whose updater is on or behind a cycle.
void dropCircular(func::FuncOp step, SmallVector<InPlaceUpdate> &updates) {
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
    for (const InPlaceUpdate &update : updates)
      for (Operation *reader :
           readersOf(step.getArgument(update.argument), update.updater))
        addEdge(reader, update.updater);
    SmallVector<Operation *> ready;
    // Constants are producers too, and always ready.
    for (Operation &op : step.getBody().front())
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

SmallVector<InPlaceUpdate> baechi::inPlaceUpdates(func::FuncOp step) {
  SmallVector<InPlaceUpdate> updates;
  Operation *terminator = step.getBody().front().getTerminator();
  llvm::DenseSet<Value> taken;
  SymbolTableCollection symbols;
  for (BlockArgument argument : step.getArguments()) {
    auto by = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                 BaechiDialect::kUpdatedBy);
    if (!by)
      continue;
    Value next = rootOf(terminator->getOperand(by.getInt()));
    auto result = dyn_cast<OpResult>(next);
    if (result &&
        mayWriteInto(result.getOwner(), result.getResultNumber(), argument,
                     symbols) &&
        taken.insert(next).second)
      updates.push_back({argument.getArgNumber(), result.getOwner(),
                         result.getResultNumber()});
  }
  dropCircular(step, updates);
  return updates;
}
