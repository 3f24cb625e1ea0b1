//===- SplitPlan.cpp - Which operations are cut, and how ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitPlan.h"
#include "Baechi/Analysis/Program.h"
#include "Estimate.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The heaviest operations that are not cut yet are looked at in each round.
static constexpr size_t kSeeds = 8;
static constexpr unsigned kMostCuts = 512;
/// Of the whole step's time: a class that saves less stays whole.
static constexpr double kLeastGain = 0.002;

namespace {
void commit(SplitPlan &plan, Cut cut) {
  for (const auto &[op, how] : cut.operations)
    plan.cutOf[op] = plan.cuts.size();
  plan.cuts.push_back(std::move(cut));
}

/// One value along whose dimension cutting \p op's loop is cutting it.
std::optional<std::pair<Value, CutPosition>> valueAlong(Operation *op,
                                                        unsigned loop) {
  std::optional<OperationCut> cut = cutAlongLoop(op, loop);
  if (!cut)
    return std::nullopt;
  for (auto [operand, at] : llvm::zip(op->getOperands(), cut->operands))
    if (at)
      return std::pair(operand, *at);
  return std::nullopt;
}
} // namespace

/// Cuts along \p wish, which stands on what makes \p value.
static LogicalResult cutAsAsked(SplitPlan &plan, Value value, SplitAttr wish,
                                bool reductions,
                                function_ref<InFlightDiagnostic()> error) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || wish.getDim() >= type.getRank())
    return error() << "asks to be cut along dimension " << wish.getDim()
                   << ", which " << value.getType() << " does not have";
  unsigned dim = wish.getDim();
  int64_t extent = 0;
  for (int64_t size : wish.getSizes())
    extent += size;
  if (extent != type.getDimSize(dim))
    return error() << "asks for pieces of " << extent
                   << " elements in all, and dimension " << dim << " of "
                   << type << " has " << type.getDimSize(dim);
  if (Operation *op = value.getDefiningOp()) {
    if (auto found = plan.cutOf.find(op); found != plan.cutOf.end()) {
      const Cut &cut = plan.cuts[found->second];
      auto at = cut.values.find(value);
      if (at != cut.values.end() && at->second == CutPosition{dim} &&
          cut.sizes == wish.getSizes())
        return success(); // It asks for what it has.
      return error() << "follows another 'baechi.split' already; keep one of "
                        "them";
    }
    std::string why;
    if (!cutAlongResult(cast<OpResult>(value), {dim}, extent, why))
      return error() << "cannot be cut along dimension " << dim << ": " << why;
  }
  commit(plan, followCut(value, {dim}, wish.getSizes(), reductions, plan));
  return success();
}

/// Before anything is cut, as cuts end at them.
static LogicalResult keepWhole(SplitPlan &plan, func::FuncOp step) {
  for (unsigned number = 0; number < step.getNumArguments(); ++number)
    if (auto wish =
            step.getArgAttrOfType<SplitAttr>(number, BaechiDialect::kSplit);
        wish && wish.getSizes().size() == 1)
      return step.emitError("argument ")
             << number << " asks for one piece; what reads it can";
  for (Operation &op : step.front().without_terminator())
    if (auto wish = op.getAttrOfType<SplitAttr>(BaechiDialect::kSplit);
        wish && wish.getSizes().size() == 1) {
      plan.kept.insert(&op);
      op.removeAttr(BaechiDialect::kSplit);
    }
  return success();
}

static LogicalResult cutAllAsAsked(SplitPlan &plan, func::FuncOp step,
                                   bool reductions) {
  for (BlockArgument argument : step.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto wish = step.getArgAttrOfType<SplitAttr>(number, BaechiDialect::kSplit);
    if (!wish)
      continue;
    step.removeArgAttr(number, BaechiDialect::kSplit);
    if (failed(cutAsAsked(plan, argument, wish, reductions, [&] {
          return step.emitError("argument ") << number << " ";
        })))
      return failure();
  }
  for (Operation &op : step.front().without_terminator()) {
    auto wish = op.getAttrOfType<SplitAttr>(BaechiDialect::kSplit);
    if (!wish)
      continue;
    op.removeAttr(BaechiDialect::kSplit);
    if (op.getNumResults() == 0)
      return op.emitOpError("asks to be cut, and has no result");
    if (failed(cutAsAsked(plan, op.getResult(0), wish, reductions,
                          [&] { return op.emitOpError(); })))
      return failure();
  }
  return success();
}

/// The class that saves the most among those of the heaviest operations.
static std::optional<Cut> chooseCut(const SplitPlan &plan,
                                    const Estimate &estimate,
                                    const PlanOptions &options) {
  std::optional<Cut> best;
  double most = kLeastGain * estimate.totalNs();
  size_t seeds = 0;
  for (Operation *op : estimate.heaviest()) {
    auto loops = dyn_cast<linalg::LinalgOp>(op);
    if (!loops || plan.isTaken(op))
      continue;
    if (++seeds > kSeeds)
      break;
    for (auto [loop, range] : llvm::enumerate(loops.getStaticLoopRanges())) {
      auto seed = valueAlong(op, loop);
      if (!seed || range < options.pieces)
        continue;
      Cut cut = followCut(seed->first, seed->second,
                          evenPieces(range, options.pieces), options.reductions,
                          plan);
      double gain = estimate.gainNs(cut);
      if (gain > most) {
        most = gain;
        best = std::move(cut);
      }
    }
  }
  return best;
}

/// Every operation that is not cut yet, along the first loop that can be; which
/// comes first is another from operation to operation.
static void cutAll(SplitPlan &plan, func::FuncOp step,
                   const PlanOptions &options) {
  for (auto [number, op] : llvm::enumerate(step.front().without_terminator())) {
    auto loops = dyn_cast<linalg::LinalgOp>(&op);
    if (!loops)
      continue;
    SmallVector<int64_t> ranges = loops.getStaticLoopRanges();
    for (size_t turn = 0; turn < ranges.size(); ++turn) {
      size_t loop = (number + turn) % ranges.size();
      if (plan.isTaken(&op) || ranges[loop] < options.pieces)
        continue;
      if (auto seed = valueAlong(&op, loop))
        commit(plan, followCut(seed->first, seed->second,
                               evenPieces(ranges[loop], options.pieces),
                               options.reductions, plan));
    }
  }
}

FailureOr<SplitPlan> split::planSplits(func::FuncOp step,
                                       const PlanOptions &options) {
  SplitPlan plan;
  if (failed(keepWhole(plan, step)) ||
      failed(cutAllAsAsked(plan, step, options.reductions)))
    return failure();
  if (options.pieces < 2)
    return plan;
  if (options.forced) {
    cutAll(plan, step, options);
    return plan;
  }
  Estimate estimate(step);
  while (plan.cuts.size() < kMostCuts)
    if (std::optional<Cut> best = chooseCut(plan, estimate, options))
      commit(plan, std::move(*best));
    else
      break;
  return plan;
}
