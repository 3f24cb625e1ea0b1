//===- Estimate.cpp - What a cut saves ------------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Estimate.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

double split::bytesOf(Type type) {
  return tensorBytes(type, /*aligned=*/false).value_or(0);
}

bool split::isComputed(Operation *op) {
  return op && !op->hasTrait<OpTrait::ConstantLike>() &&
         !isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
              linalg::FillOp>(op);
}

static bool isElementwise(Operation *op) {
  auto loops = dyn_cast_or_null<linalg::LinalgOp>(op);
  return loops && loops.getNumReductionLoops() == 0;
}

/// An elementwise result that only elementwise operations read stays in
/// registers.
static bool isFused(Value value) {
  return isElementwise(value.getDefiningOp()) &&
         llvm::all_of(value.getUsers(), isElementwise);
}

double Estimate::timeNs(Operation *op) const {
  if (!isComputed(op))
    return 0;
  Work work = workOf(op);
  if (isElementwise(op)) {
    work.bytes = 0;
    for (Value operand : op->getOperands())
      if (!isFused(operand) && isComputed(operand.getDefiningOp()))
        work.bytes += bytesOf(operand.getType());
    for (Value result : op->getResults())
      if (!isFused(result))
        work.bytes += bytesOf(result.getType());
  }
  // Each device launches its own piece.
  return roofline.timeNs(work) - roofline.launchNs;
}

Estimate::Estimate(func::FuncOp step) : roofline(defaultRooflines().front()) {
  exchange = Exchange::of(step);
  std::string kind = kindFor(step);
  for (const Roofline &known : defaultRooflines())
    if (known.kind == kind)
      roofline = known;
  for (Operation &op : step.front().without_terminator()) {
    total += times[&op] = timeNs(&op);
    operations.push_back(&op);
  }
  llvm::stable_sort(operations, [&](Operation *a, Operation *b) {
    return times[a] > times[b];
  });
}

/// Leading parts are views.
static bool isLeading(Value value, CutPosition at) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return at.outer == 1 && llvm::all_of(shape.take_front(at.dim),
                                       [](int64_t size) { return size == 1; });
}

/// Bytes read and written to cut a whole value, or to put its pieces together.
static double copiedFor(Value value, CutPosition at, const Cut &cut) {
  Operation *producer = value.getDefiningOp();
  if (producer && cut.operations.contains(producer)) {
    bool isReadAsWhole = llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *reader = producer->getBlock()->findAncestorOpInBlock(*user);
      return !cut.operations.contains(reader);
    });
    return isReadAsWhole ? 2 * bytesOf(value.getType()) : 0;
  }
  bool isFree = isLeading(value, at) || (producer && !isComputed(producer));
  return isFree ? 0 : 2 * bytesOf(value.getType());
}

double Estimate::savedNs(Operation *op, const Cut &cut) const {
  double largest = *std::max_element(cut.sizes.begin(), cut.sizes.end());
  return times.lookup(op) * (1 - largest / cut.extent());
}

double Estimate::savedNs(const Cut &cut) const {
  double saved = 0;
  // What adds up partial results does so for each, at the same time.
  for (const auto &[op, how] : cut.operations)
    if (how.kind != OperationCut::Kind::Partial)
      saved += savedNs(op, cut);
  return saved;
}

void Estimate::keepBetterWhole(Cut &cut) const {
  if (!exchange || cut.chained)
    return;
  for (Operation *op : exchange->betterWhole(
           cut, [&](Operation *op) { return savedNs(op, cut); })) {
    cut.operations.erase(op);
    cut.whole.push_back(
        {op, "its pieces would send each other more than they save"});
  }
}

double Estimate::gainNs(const Cut &cut) const {
  double copied = 0;
  for (const auto &[op, how] : cut.operations) {
    // Where pieces follow each other, each adds to what it finds.
    bool isJoined = how.kind != OperationCut::Kind::Parallel &&
                    (!cut.chained || cut.meetings.contains(op));
    if (isJoined)
      for (Value partial : op->getResults())
        if (!cut.staysPartial(partial))
          copied += 3.0 * (cut.sizes.size() - 1) * bytesOf(partial.getType());
    for (auto [operand, at] : llvm::zip(op->getOperands(), how.operands))
      if (at && cut.values.find(operand)->second != *at)
        copied += 4 * bytesOf(operand.getType());
    for (const auto &[number, window] : how.windows)
      if (Value read = op->getOperand(number); !isLeading(read, {window.dim}))
        copied += 2 * bytesOf(read.getType());
  }
  for (const auto &[value, at] : cut.values)
    copied += copiedFor(value, at, cut);
  // Pieces that follow each other are where their operation is.
  double sent = exchange && !cut.chained ? exchange->sentNs(cut) : 0;
  return savedNs(cut) - copied / roofline.bytesPerSecond * 1e9 - sent;
}
