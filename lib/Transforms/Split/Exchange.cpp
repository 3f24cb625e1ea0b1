//===- Exchange.cpp - What pieces send each other -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Placement/Model/Pool.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

static std::optional<placement::Machine> machineFor(func::FuncOp step) {
  auto attr = step->getParentOfType<ModuleOp>()->getAttrOfType<MachineAttr>(
      BaechiDialect::kMachine);
  return attr ? std::optional(fromAttr(attr)) : std::nullopt;
}

std::string split::kindFor(func::FuncOp step) {
  if (std::optional<placement::Machine> machine = machineFor(step))
    for (const placement::Device &device : machine->devices)
      if (!placement::isPool(device))
        return device.kind;
  return "host";
}

std::optional<Exchange> Exchange::of(func::FuncOp step) {
  std::optional<placement::Machine> machine = machineFor(step);
  if (!machine)
    return std::nullopt;
  Exchange exchange;
  double links = 0;
  for (const std::optional<placement::Link> &link : machine->links) {
    if (!link)
      continue;
    if (link->lends)
      return std::nullopt;
    ++links;
    exchange.latencyNs += double(link->latencyNs);
    exchange.nsPerByte += 1e3 / double(link->bytesPerUs);
  }
  if (links == 0)
    return std::nullopt;
  exchange.latencyNs /= links;
  exchange.nsPerByte /= links;
  exchange.model = machine->linkModel;
  return exchange;
}

double Exchange::timeNs(double transfers, double bytes, double devices) const {
  // One transfer occupies both of its devices, or one side of each.
  bool isSequential = model == placement::LinkModel::Sequential;
  double atOnce = isSequential ? std::max(1.0, devices / 2) : devices;
  return transfers * (latencyNs + bytes * nsPerByte) / atOnce;
}

/// What reshapes show in another form.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Sent as it is, not made again where it is read.
static bool isSent(Value value) {
  value = sourceOf(value);
  return isa<RankedTensorType>(value.getType()) &&
         (isa<BlockArgument>(value) || isComputed(value.getDefiningOp()));
}

/// What each piece of \p op reads all of.
static SetVector<Value> wholesReadBy(Operation *op, const OperationCut &how) {
  SetVector<Value> wholes, captured;
  if (how.kind == OperationCut::Kind::Partial)
    return wholes;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (!how.operands[number] && !how.windowOf(number) && isSent(operand))
      wholes.insert(sourceOf(operand));
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (!how.captures.contains(value) && isSent(value))
      wholes.insert(sourceOf(value));
  return wholes;
}

static Operation *readerOf(Value value, Operation *user) {
  return value.getParentBlock()->findAncestorOpInBlock(*user);
}

static bool isReadInPieces(Value value, const Cut &cut) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return cut.operations.contains(readerOf(value, user));
  });
}

/// What is returned stays in pieces.
static bool isReadAsWhole(Value value, const Cut &cut) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *reader = readerOf(value, user);
    return !reader->hasTrait<OpTrait::IsTerminator>() &&
           !cut.operations.contains(reader);
  });
}

double Exchange::sentNs(const Cut &cut) const {
  double pieces = double(cut.sizes.size()), others = pieces - 1, ns = 0;
  auto add = [&](double transfers, double bytes) {
    ns += timeNs(transfers, bytes, pieces);
  };
  llvm::DenseSet<Value> wholes;
  for (const auto &[op, how] : cut.operations) {
    // Partial results, to one of the devices.
    if (how.kind != OperationCut::Kind::Parallel)
      for (Value partial : op->getResults())
        if (!cut.staysPartial(partial))
          add(others, bytesOf(partial.getType()));
    // To all devices: a parameter, or a sum.
    for (Value whole : wholesReadBy(op, how))
      if (wholes.insert(whole).second)
        add(others, bytesOf(whole.getType()));
    for (auto [operand, at] : llvm::zip(op->getOperands(), how.operands))
      if (at && cut.isCutElsewhere(operand, *at))
        add(pieces * others, bytesOf(operand.getType()) / pieces);
    for (const auto &[number, window] : how.windows)
      add(others, bytesOf(op->getOperand(number).getType()) / pieces);
  }
  for (const auto &[value, at] : cut.values) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !isSent(value) || isa<BlockArgument>(sourceOf(value)))
      continue;
    bool isMade = cut.operations.contains(producer);
    if (isMade ? isReadAsWhole(value, cut) : isReadInPieces(value, cut))
      add(others, bytesOf(value.getType()) / pieces);
  }
  return ns;
}

bool Exchange::isBetterWhole(Operation *op, const OperationCut &how,
                             const Cut &cut, double savedNs) const {
  if (how.kind == OperationCut::Kind::Partial ||
      llvm::any_of(op->getResults(),
                   [&](Value result) { return cut.staysPartial(result); }))
    return false;
  double pieces = double(cut.sizes.size()), others = pieces - 1;
  double inPieces = 0, asWhole = savedNs;
  for (Value whole : wholesReadBy(op, how)) {
    bool readByOthers = llvm::any_of(whole.getUsers(), [&](Operation *user) {
      Operation *reader = readerOf(whole, user);
      return reader != op && cut.operations.contains(reader);
    });
    if (!readByOthers)
      inPieces += timeNs(others, bytesOf(whole.getType()), pieces);
  }
  for (auto [operand, at] : llvm::zip(op->getOperands(), how.operands))
    if (Operation *producer = operand.getDefiningOp();
        at && producer && cut.operations.contains(producer) &&
        isSent(operand) && !isa<BlockArgument>(sourceOf(operand)))
      asWhole += timeNs(others, bytesOf(operand.getType()) / pieces, pieces);
  for (Value result : op->getResults()) {
    if (how.kind == OperationCut::Kind::Reduction)
      inPieces += timeNs(others, bytesOf(result.getType()), pieces);
    else if (isReadInPieces(result, cut))
      asWhole += timeNs(others, bytesOf(result.getType()) / pieces, pieces);
  }
  return asWhole < inPieces;
}

SmallVector<Operation *>
Exchange::betterWhole(const Cut &cut,
                      function_ref<double(Operation *)> savedNs) const {
  SmallVector<Operation *> found;
  for (const auto &[op, how] : cut.operations)
    if (isBetterWhole(op, how, cut, savedNs(op)))
      found.push_back(op);
  return found;
}
