//===- SplitPlan.cpp - Which operations are cut, and how ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitPlan.h"
#include "Baechi/Analysis/Program.h"
#include "ChooseBatch.h"
#include "Estimate.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The heaviest operations that are not cut yet are looked at in each round.
static constexpr size_t kOperations = 8;
static constexpr unsigned kMostCuts = 512;
/// Of the whole step's time: a class that saves less stays whole.
static constexpr double kLeastGain = 0.002;

namespace {
void commit(SplitPlan &plan, Cut cut) {
  for (const auto &[op, how] : cut.operations)
    plan.cutOf[op] = plan.cuts.size();
  plan.cuts.push_back(std::move(cut));
}

/// A value along whose dimension a cut can start.
struct Seed {
  Value value;
  CutPosition position;
  int64_t extent;
};

/// For each loop of \p op, or dimension of its result, that can be cut: a value
/// along whose dimension that is. Storage and constants are cut as their
/// readers are.
SmallVector<Seed> seedsOf(Operation *op) {
  SmallVector<Seed> seeds;
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    for (auto [loop, range] : llvm::enumerate(loops.getStaticLoopRanges())) {
      std::optional<OperationCut> cut = cutAlongLoop(op, loop);
      if (!cut)
        continue;
      for (auto [operand, at] : llvm::zip(op->getOperands(), cut->operands))
        if (at) {
          seeds.push_back({operand, *at, range});
          break;
        }
    }
    return seeds;
  }
  if (op->getNumResults() == 0 || isa<tensor::EmptyOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return seeds;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  for (unsigned dim = 0, rank = type ? type.getRank() : 0; dim < rank; ++dim) {
    std::string why;
    CutPosition position{dim};
    int64_t extent = type.getDimSize(dim);
    if (!ShapedType::isDynamic(extent) &&
        cutAlongResult(op->getResult(0), position, extent, why))
      seeds.push_back({op->getResult(0), position, extent});
  }
  return seeds;
}
} // namespace

bool SplitPlan::isPaddedInParts(Operation *op) const {
  auto pad = dyn_cast<tensor::PadOp>(op);
  if (!pad || isTaken(op) || pad.getResult().use_empty() ||
      !pad.getType().hasStaticShape() ||
      !pad.getSourceType().hasStaticShape() || !pad.getConstantPaddingValue() ||
      llvm::is_contained(pad.getStaticLow(), ShapedType::kDynamic) ||
      llvm::is_contained(pad.getStaticHigh(), ShapedType::kDynamic))
    return false;
  return llvm::all_of(pad.getResult().getUses(), [&](OpOperand &use) {
    auto found = cutOf.find(use.getOwner());
    return found != cutOf.end() &&
           cuts[found->second]
               .operations.find(use.getOwner())
               ->second.windowOf(use.getOperandNumber());
  });
}

/// Whether a cut runs through \p value in just these pieces.
static bool hasCut(const SplitPlan &plan, Value value, CutPosition position,
                   ArrayRef<int64_t> sizes) {
  return llvm::any_of(plan.cuts, [&](const Cut &cut) {
    auto at = cut.values.find(value);
    Operation *producer = value.getDefiningOp();
    return at != cut.values.end() && at->second == position &&
           cut.sizes == sizes &&
           (!producer || cut.operations.contains(producer));
  });
}

/// Cuts along \p wish, which stands on what makes \p value.
static LogicalResult cutAsAsked(SplitPlan &plan, Value value, SplitAttr wish,
                                const PlanOptions &options,
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
  if (hasCut(plan, value, {dim}, wish.getSizes()))
    return success(); // It asks for what it has.
  if (Operation *op = value.getDefiningOp()) {
    if (plan.cutOf.contains(op))
      return error() << "follows another 'baechi.split' already; keep one of "
                        "them";
    std::string why;
    if (!cutAlongResult(cast<OpResult>(value), {dim}, extent, why))
      return error() << "cannot be cut along dimension " << dim << ": " << why;
  }
  Cut cut = followCut(value, {dim}, wish.getSizes(), options, plan);
  if (cut.operations.empty()) {
    InFlightDiagnostic message = error()
                                 << "asks to be cut along dimension " << dim
                                 << ", and nothing that reads it can be";
    for (const Whole &whole : cut.whole)
      message.attachNote(whole.op->getLoc()) << "stays whole: " << whole.why;
    return message;
  }
  commit(plan, std::move(cut));
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
                                   const PlanOptions &options) {
  for (BlockArgument argument : step.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto wish = step.getArgAttrOfType<SplitAttr>(number, BaechiDialect::kSplit);
    if (!wish)
      continue;
    step.removeArgAttr(number, BaechiDialect::kSplit);
    if (failed(cutAsAsked(plan, argument, wish, options, [&] {
          InFlightDiagnostic message = emitError(step.getLoc())
                                       << "argument " << number << " ";
          if (auto name = step.getArgAttrOfType<StringAttr>(
                  number, BaechiDialect::kName))
            message << "('" << name.getValue() << "') ";
          return message;
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
    if (failed(cutAsAsked(plan, op.getResult(0), wish, options,
                          [&] { return op.emitOpError(); })))
      return failure();
  }
  return success();
}

bool split::isExtentOf(const SplitPlan &plan, int64_t extent) {
  return llvm::all_of(plan.cuts, [&](const Cut &cut) {
    return cut.isApart || cut.extent() == extent;
  });
}

/// The class that saves the most among those of the heaviest operations.
static std::optional<Cut> chooseCut(const SplitPlan &plan,
                                    const Estimate &estimate,
                                    const PlanOptions &options) {
  std::optional<Cut> best;
  double most = kLeastGain * estimate.totalNs();
  size_t looked = 0;
  for (Operation *op : estimate.heaviest()) {
    if (plan.isTaken(op))
      continue;
    SmallVector<Seed> seeds = seedsOf(op);
    if (seeds.empty())
      continue;
    if (++looked > kOperations)
      break;
    for (const Seed &seed : seeds) {
      if (seed.extent < options.pieces ||
          (options.even && seed.extent % options.pieces != 0) ||
          (options.chained && !isExtentOf(plan, seed.extent)))
        continue;
      Cut cut =
          followCut(seed.value, seed.position,
                    evenPieces(seed.extent, options.pieces), options, plan);
      estimate.keepBetterWhole(cut);
      double gain = estimate.gainNs(cut);
      if (gain > most) {
        most = gain;
        best = std::move(cut);
      }
    }
  }
  return best;
}

/// Every operation that is not cut yet, along the first loop or dimension that
/// can be; which comes first is another from operation to operation.
static void cutAll(SplitPlan &plan, func::FuncOp step,
                   const PlanOptions &options) {
  for (auto [number, op] : llvm::enumerate(step.front().without_terminator())) {
    if (plan.isTaken(&op))
      continue;
    SmallVector<Seed> seeds = seedsOf(&op);
    for (size_t turn = 0; turn < seeds.size(); ++turn) {
      const Seed &seed = seeds[(number + turn) % seeds.size()];
      if (plan.isTaken(&op) || seed.extent < options.pieces)
        continue;
      commit(plan,
             followCut(seed.value, seed.position,
                       evenPieces(seed.extent, options.pieces), options, plan));
    }
  }
}

FailureOr<func::FuncOp> split::findStepToCut(ModuleOp module) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (succeeded(step) && !llvm::hasSingleElement(step->getBody()))
    return step->emitError("the step has several blocks; control flow must be "
                           "structured (scf.if, scf.while)");
  return step;
}

FailureOr<SplitPlan> split::planSplits(func::FuncOp step,
                                       const PlanOptions &options) {
  SplitPlan plan;
  PlanOptions asked = options;
  if (options.ordered)
    asked.reductions = asked.chained = asked.ordered = false;
  if (failed(keepWhole(plan, step)) || failed(cutAllAsAsked(plan, step, asked)))
    return failure();
  for (Cut &cut : plan.cuts)
    cut.isApart = options.ordered;
  if (options.pieces < 2)
    return plan;
  if (options.forced) {
    cutAll(plan, step, options);
    return plan;
  }
  Estimate estimate(step);
  while (plan.cuts.size() < kMostCuts)
    if (std::optional<Cut> best =
            options.batch ? chooseBatch(plan, step, estimate, options,
                                        kLeastGain * estimate.totalNs())
                          : chooseCut(plan, estimate, options))
      commit(plan, std::move(*best));
    else
      break;
  if (options.batch && plan.cuts.empty())
    return refuseReplicas(step, estimate, options);
  if (options.chained &&
      llvm::all_of(plan.cuts, [](const Cut &cut) { return cut.isApart; }))
    return step.emitError(
               "nothing is as heavy as a batch that could be cut in ")
           << options.pieces << " micro-batches; "
           << (options.pieces > 2 ? "ask for fewer, or name"
                                  : "compile it whole (splits=none), or name")
           << " what is to be cut (split)";
  return plan;
}
