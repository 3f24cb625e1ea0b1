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

/// What devices that share memory wait for each other where one reads what
/// others make: kernels do not end at once.
static constexpr double kHandoverNs = 10e3;

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

/// Where all read one value, such as the zero of all layers, it is asked for as
/// often as it has readers.
bool Estimate::isFused(Value value) {
  auto [known, isNew] = fused.try_emplace(value, false);
  if (isNew)
    known->second = isElementwise(value.getDefiningOp()) &&
                    llvm::all_of(value.getUsers(), isElementwise);
  return known->second;
}

/// Products pack an operand that they read so often at least.
static constexpr double kReadsToPack = 48;

/// What each piece of a product packs for itself although it is the same for
/// all, as kernels of hosts do: bytes read and written. \p part: of the whole,
/// a piece.
static double packedByEach(Operation *op, const OperationCut &how,
                           double part) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || loops.getNumReductionLoops() == 0 ||
      loops.getNumDpsInputs() < 2 || how.kind == OperationCut::Kind::Partial)
    return 0;
  double steps = part, bytes = 0;
  for (int64_t range : loops.getStaticLoopRanges())
    steps *= double(range);
  for (OpOperand *input : loops.getDpsInputOperands()) {
    unsigned number = input->getOperandNumber();
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (type && !how.operands[number] && !how.windowOf(number) &&
        steps >= kReadsToPack * double(type.getNumElements()))
      bytes += 2 * bytesOf(type);
  }
  return bytes;
}

double Estimate::timeNs(Operation *op) {
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

Estimate::Estimate(func::FuncOp step, const PlanOptions &options)
    : roofline(defaultRooflines().front()) {
  if (options.stored)
    stored.emplace(step);
  exchange = Exchange::of(step, options.sentShare, options.mergeMoments);
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

/// What the largest piece lacks of the whole.
static double smaller(const Cut &cut) {
  double largest = *std::max_element(cut.sizes.begin(), cut.sizes.end());
  return 1 - largest / cut.extent();
}

bool Estimate::isReturnedWhole(Value value, const Cut &cut) const {
  return llvm::any_of(value.getUsers(),
                      [](Operation *user) {
                        return user->hasTrait<OpTrait::IsTerminator>();
                      }) &&
         !(stored && stored->isReturnedInPieces(value, cut));
}

/// Whether an operation that is not cut reads \p value as a whole.
static bool isReadAsWhole(Value value, const Cut &cut) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *reader = value.getParentBlock()->findAncestorOpInBlock(*user);
    return !reader->hasTrait<OpTrait::IsTerminator>() &&
           !cut.operations.contains(reader);
  });
}

double Estimate::copiedFor(Value value, CutPosition at, const Cut &cut) const {
  double bytes = 2 * bytesOf(value.getType());
  Operation *producer = value.getDefiningOp();
  if (!producer || !cut.operations.contains(producer)) {
    bool isFree = isLeading(value, at) || (producer && !isComputed(producer)) ||
                  (stored && !producer &&
                   stored->isStored(cast<BlockArgument>(value), cut));
    return isFree ? 0 : bytes;
  }
  if (isReturnedWhole(value, cut))
    return bytes;
  // Whoever reads the whole makes what holds nothing yet.
  if (!isReadAsWhole(value, cut) || isa<tensor::EmptyOp>(producer))
    return 0;
  // Where memory is shared, the device that puts them together makes its own
  // piece in its place.
  return isMemoryShared() && isLeading(value, at) ? bytes * smaller(cut)
                                                  : bytes;
}

double Estimate::savedNs(Operation *op, const Cut &cut) const {
  return times.lookup(op) * smaller(cut);
}

double Estimate::savedNs(const Cut &cut) const {
  double saved = 0;
  // What adds up partial results does so for each, at the same time.
  for (const auto &[op, how] : cut.operations)
    if (how.kind != OperationCut::Kind::Partial)
      saved += savedNs(op, cut);
  return saved;
}

/// Most classes are followed again in every round.
ArrayRef<Operation *> Estimate::betterWhole(const Cut &cut) const {
  std::vector<Found> &sameStart = found[cut.operations.front().first];
  auto operations = llvm::map_range(
      cut.operations, [](const auto &entry) { return entry.first; });
  for (const Found &known : sameStart)
    if (known.sizes == cut.sizes && llvm::equal(known.operations, operations) &&
        llvm::equal(known.values, cut.values))
      return known.betterWhole;
  Found &result = sameStart.emplace_back();
  result.sizes = cut.sizes;
  result.operations = llvm::to_vector(operations);
  result.values.assign(cut.values.begin(), cut.values.end());
  result.betterWhole = exchange->betterWhole(
      cut, [&](Operation *op) { return savedNs(op, cut); });
  return result.betterWhole;
}

void Estimate::keepBetterWhole(Cut &cut) const {
  if (!exchange || cut.chained || cut.operations.empty())
    return;
  llvm::SmallDenseSet<Operation *> whole;
  for (Operation *op : betterWhole(cut)) {
    whole.insert(op);
    cut.whole.push_back(
        {op, "its pieces would send each other more than they save"});
  }
  cut.operations.remove_if(
      [&](const auto &entry) { return whole.contains(entry.first); });
  // What only those make and read is in no pieces any more.
  cut.values.remove_if([&](const auto &entry) {
    Value value = entry.first;
    return !cut.operations.contains(value.getDefiningOp()) &&
           llvm::none_of(value.getUsers(), [&](Operation *user) {
             return cut.operations.contains(readerOf(value, user));
           });
  });
}

Worth Estimate::worthOf(const Cut &cut, const SplitPlan &plan) const {
  double copied = 0, pieces = double(cut.sizes.size());
  // Where a whole is packed once, pieces share none of that work.
  double again = 1 - 1 / pieces;
  for (const auto &[op, how] : cut.operations) {
    if (roofline.kind == "host" && !cut.chained)
      copied += again * packedByEach(op, how, 1 - smaller(cut));
    // Where pieces follow each other, each adds to what it finds.
    bool isJoined = how.kind != OperationCut::Kind::Parallel &&
                    (!cut.chained || cut.meetings.contains(op));
    if (isJoined)
      for (Value partial : op->getResults())
        if (!cut.staysPartial(partial))
          copied += 3 * (pieces - 1) * bytesOf(partial.getType());
    for (auto [operand, at] : llvm::zip(op->getOperands(), how.operands))
      if (at && cut.isCutElsewhere(operand, *at))
        copied += 4 * bytesOf(operand.getType());
    for (const auto &[number, window] : how.windows)
      if (Value read = op->getOperand(number); !isLeading(read, {window.dim}))
        copied += 2 * bytesOf(read.getType());
  }
  // What another cut makes in partial results is added up in pieces, too; of an
  // update that is returned whole that is lost again.
  double joined = 0;
  bool isUpdate = false;
  for (const auto &[value, at] : cut.values) {
    copied += copiedFor(value, at, cut);
    isUpdate |= isReturnedWhole(value, cut);
    if (plan.isJoined(value) && cut.isReadInPieces(value)) {
      const Cut &other = plan.cuts[plan.cutOf.lookup(value.getDefiningOp())];
      joined +=
          again * 3 * double(other.sizes.size() - 1) * bytesOf(value.getType());
    }
  }
  if (!isUpdate)
    copied -= joined;
  // Pieces that follow each other are where their operation is.
  double sent = exchange && !cut.chained ? exchange->sentNs(cut) : 0;
  return {savedNs(cut), copied / roofline.bytesPerSecond * 1e9, sent};
}

double Estimate::waitedNs(const Cut &cut) const {
  size_t handed = 0;
  for (const auto &[op, how] : cut.operations)
    for (Value result : op->getResults())
      handed += how.kind == OperationCut::Kind::Parallel
                    ? cut.values.contains(result) && isReadAsWhole(result, cut)
                    : !cut.staysPartial(result);
  return kHandoverNs * double(handed);
}
