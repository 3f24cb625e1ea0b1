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
#include "Moments.h"
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

std::optional<Exchange> Exchange::of(func::FuncOp step, double share,
                                     bool mergesMoments) {
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
  exchange.share = share;
  if (!mergesMoments)
    return exchange;
  for (Operation &op : step.front().without_terminator())
    if (std::optional<Moments> moments = momentsOf(&op))
      if (bytesOf(op.getResult(0).getType()) <=
          double(exchange.bytesOfLatency()))
        exchange.sumOfSquares[&op] = moments->sum;
  return exchange;
}

double Exchange::timeNs(double transfers, double bytes, double devices) const {
  // One transfer occupies both of its devices, or one side of each.
  bool isSequential = model == placement::LinkModel::Sequential;
  double atOnce = isSequential ? std::max(1.0, devices / 2) : devices;
  return share * transfers * (latencyNs + bytes * nsPerByte) / atOnce;
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

/// What follows a sum that is computed for each piece, in operations.
static constexpr unsigned kLongest = 8;

SetVector<Value> Exchange::wholesReadBy(Operation *op, const OperationCut &how,
                                        const Cut &cut) const {
  SetVector<Value> read, captured, wholes;
  if (how.kind == OperationCut::Kind::Partial)
    return wholes;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (!how.operands[number] && !how.windowOf(number) && isSent(operand))
      read.insert(sourceOf(operand));
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (!how.captures.contains(value) && isSent(value))
      read.insert(sourceOf(value));
  for (Value value : read)
    addSources(value, cut, kLongest, wholes);
  return wholes;
}

/// Statistics, and what is computed of them and of parameters alone, are
/// computed on each piece's device (RepeatSums.cpp).
void Exchange::addSources(Value value, const Cut &cut, unsigned longest,
                          SetVector<Value> &sources) const {
  Operation *op = value.getDefiningOp();
  auto isSmall = [&](Value value) {
    return bytesOf(value.getType()) <= double(bytesOfLatency());
  };
  SetVector<Value> operands;
  if (op && longest > 0 && !cut.operations.contains(op) &&
      op->getNumRegions() < 2 && llvm::all_of(op->getResults(), isSmall) &&
      llvm::all_of(op->getOperands(), isSmall))
    for (Value operand : op->getOperands())
      if (isSent(operand))
        operands.insert(sourceOf(operand));
  if (operands.empty())
    sources.insert(value);
  for (Value operand : operands)
    addSources(operand, cut, longest - 1, sources);
}

Operation *split::readerOf(Value value, Operation *user) {
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

bool Exchange::isMoved(Value value) const {
  return value.getDefiningOp() && isSent(value) &&
         !isa<BlockArgument>(sourceOf(value));
}

double Exchange::movedNs(Value value, double pieces) const {
  return timeNs(pieces - 1, bytesOf(value.getType()) / pieces, pieces);
}

double Exchange::sentToAllNs(Value whole, double pieces) const {
  return timeNs(pieces - 1, bytesOf(whole.getType()), pieces);
}

bool Exchange::isSentBefore(Operation *op, const Cut &cut) const {
  Operation *sum = sumOfSquares.lookup(op);
  return sum && !cut.chained && cut.operations.contains(sum);
}

double Exchange::sentByNs(Operation *op, const OperationCut &how,
                          const Cut &cut) const {
  double pieces = double(cut.sizes.size()), others = pieces - 1, ns = 0;
  // Partial results, to one of the devices.
  if (how.kind != OperationCut::Kind::Parallel && !isSentBefore(op, cut))
    for (Value partial : op->getResults())
      if (!cut.staysPartial(partial))
        ns += timeNs(others, bytesOf(partial.getType()), pieces);
  for (auto [operand, at] : llvm::zip(op->getOperands(), how.operands))
    if (at && cut.isCutElsewhere(operand, *at))
      ns +=
          timeNs(pieces * others, bytesOf(operand.getType()) / pieces, pieces);
  for (const auto &[number, window] : how.windows)
    ns += movedNs(op->getOperand(number), pieces);
  return ns;
}

double Exchange::sentNs(const Cut &cut) const {
  double pieces = double(cut.sizes.size()), ns = 0;
  llvm::DenseSet<Value> wholes;
  for (const auto &[op, how] : cut.operations) {
    ns += sentByNs(op, how, cut);
    // To all devices: a parameter, or a sum.
    for (Value whole : wholesReadBy(op, how, cut))
      if (wholes.insert(whole).second)
        ns += sentToAllNs(whole, pieces);
  }
  for (const auto &[value, at] : cut.values) {
    if (!isMoved(value))
      continue;
    bool isMade = cut.operations.contains(value.getDefiningOp());
    if (isMade ? isReadAsWhole(value, cut) : isReadInPieces(value, cut))
      ns += movedNs(value, pieces);
  }
  return ns;
}
