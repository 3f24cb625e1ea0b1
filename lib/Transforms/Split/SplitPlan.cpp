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
#include "ChooseCuts.h"
#include "Reshaped.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <numeric>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

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

bool SplitPlan::isJoined(Value value) const {
  auto made = cutOf.find(value.getDefiningOp());
  if (made == cutOf.end())
    return false;
  const Cut &cut = cuts[made->second];
  return !cut.chained && !cut.staysPartial(value) &&
         cut.operations.find(made->first)->second.kind !=
             OperationCut::Kind::Parallel;
}

bool SplitPlan::isJoinedInPieces(Value value) const {
  if (!isJoined(value) || value.use_empty())
    return false;
  auto reader = cutOf.find(*value.user_begin());
  return reader != cutOf.end() && cuts[reader->second].isReadInPieces(value);
}

/// Whether a cut runs through \p value in just these pieces of its dimension
/// \p dim.
static bool hasCut(const SplitPlan &plan, Value value, unsigned dim,
                   ArrayRef<int64_t> sizes) {
  return llvm::any_of(plan.cuts, [&](const Cut &cut) {
    auto at = cut.values.find(value);
    Operation *producer = value.getDefiningOp();
    return at != cut.values.end() && at->second.dim == dim &&
           (at->second.outer == 1
                ? llvm::equal(cut.sizesAt(at->second), sizes)
                : llvm::all_equal(sizes) && llvm::all_equal(cut.sizes) &&
                      cut.sizes.size() == sizes.size()) &&
           (!producer || cut.operations.contains(producer));
  });
}

/// The largest units that pieces of \p sizes are made of. What reshapes a
/// dimension into parts of which each piece has whole ones is cut by them.
static int64_t unitOf(ArrayRef<int64_t> sizes) {
  int64_t unit = 0;
  for (int64_t size : sizes)
    unit = std::gcd(unit, size);
  return unit;
}

/// The cut of dimension \p dim into pieces of \p sizes, element by element, as
/// windows are read, or by units, or where it is reshaped as many pieces of
/// each of its parts, whichever most operations follow.
static Cut followWish(Value value, unsigned dim, ArrayRef<int64_t> sizes,
                      const PlanOptions &options, const SplitPlan &plan) {
  Cut cut = followCut(value, {dim}, sizes, options, plan);
  for (const ReshapedPart &part : reshapedParts(value, dim))
    if (llvm::all_equal(sizes) && part.extent % int64_t(sizes.size()) == 0) {
      Cut inParts =
          followCut(value, part.position, evenPieces(part.extent, sizes.size()),
                    options, plan);
      if (inParts.operations.size() > cut.operations.size())
        cut = std::move(inParts);
    }
  int64_t unit = unitOf(sizes);
  if (unit == 1)
    return cut;
  Cut byUnits = followCut(
      value, {dim, 1, unit},
      llvm::map_to_vector(sizes, [&](int64_t size) { return size / unit; }),
      options, plan);
  byUnits.unit = unit;
  return byUnits.operations.size() > cut.operations.size() ? std::move(byUnits)
                                                           : std::move(cut);
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
  if (hasCut(plan, value, dim, wish.getSizes()))
    return success(); // It asks for what it has.
  if (Operation *op = value.getDefiningOp()) {
    if (plan.cutOf.contains(op))
      return error() << "follows another 'baechi.split' already; keep one of "
                        "them";
    auto result = cast<OpResult>(value);
    int64_t unit = unitOf(wish.getSizes());
    std::string why, ignored;
    if (!cutAlongResult(result, {dim}, extent, why) &&
        !cutAlongResult(result, {dim, 1, unit}, extent / unit, ignored))
      return error() << "cannot be cut along dimension " << dim << ": " << why;
  }
  Cut cut = followWish(value, dim, wish.getSizes(), options, plan);
  if (cut.operations.empty()) {
    InFlightDiagnostic message = error()
                                 << "asks to be cut along dimension " << dim
                                 << ", and nothing that reads it can be";
    if (!cut.whole.empty())
      message << ": " << cut.whole.front().why;
    for (const Whole &whole : cut.whole)
      message.attachNote(whole.op->getLoc()) << "stays whole: " << whole.why;
    return message;
  }
  commit(plan, std::move(cut), "a person asks for it");
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

FailureOr<func::FuncOp> split::findStepToCut(ModuleOp module) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (succeeded(step) && !llvm::hasSingleElement(step->getBody()))
    return step->emitError("the step has several blocks; control flow must be "
                           "structured (scf.if, scf.while)");
  return step;
}

FailureOr<func::FuncOp> split::findStepToStore(ModuleOp module) {
  FailureOr<func::FuncOp> step = findStepToCut(module);
  if (failed(step))
    return failure();
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(*step, module);
  if (uses && uses->empty())
    return step;
  InFlightDiagnostic diag =
      step->emitError("the step is called within its module, and its arguments "
                      "would become others: take what calls it away");
  if (uses)
    for (SymbolTable::SymbolUse use : *uses)
      diag.attachNote(use.getUser()->getLoc()) << "called here";
  return diag;
}

/// Of a step's time, what is cut where micro-batches are asked for and a loop
/// goes through what is given.
static constexpr double kLeastInMicroBatches = 0.05;

/// Micro-batches were asked for, and what is cut is next to nothing beside a
/// loop that the batch is in.
static LogicalResult checkMicroBatches(func::FuncOp step, const SplitPlan &plan,
                                       const Estimate &estimate,
                                       const PlanOptions &options) {
  std::optional<LoopOverInput> loop = findLoopOverInput(step);
  if (!loop)
    return success();
  double inPieces = 0;
  for (const Cut &cut : plan.cuts) {
    double pieces = cut.sizes.size();
    inPieces += estimate.savedNs(cut) * pieces / (pieces - 1);
  }
  double share = inPieces / estimate.totalNs();
  if (share >= kLeastInMicroBatches)
    return success();
  InFlightDiagnostic diag =
      step.emitError() << "nothing is as heavy as a batch that could be "
                          "cut in "
                       << options.pieces << " micro-batches: what can be is "
                       << int64_t(100 * share)
                       << " % of the step; compile it whole "
                          "(splits=none), or name what is to be cut "
                          "(split)";
  noteLoop(diag, step, *loop);
  return diag;
}

static FailureOr<SplitPlan> planCuts(func::FuncOp step,
                                     const PlanOptions &options) {
  SplitPlan plan;
  plan.mergeMoments = options.mergeMoments;
  PlanOptions asked = options;
  if (options.ordered)
    asked.reductions = asked.chained = asked.ordered = false;
  if (failed(keepWhole(plan, step)) || failed(cutAllAsAsked(plan, step, asked)))
    return failure();
  for (Cut &cut : plan.cuts)
    cut.isApart = options.ordered;
  bool isNamed = !plan.cuts.empty();
  if (options.pieces < 2)
    return plan;
  if (options.forced) {
    cutAll(plan, step, options);
    return plan;
  }
  Estimate estimate(step, options);
  if (options.batch)
    while (std::optional<Cut> next = chooseBatch(plan, step, estimate, options,
                                                 estimate.leastGainNs()))
      commit(plan, std::move(*next), kIsTheBatch);
  else
    chooseCuts(plan, step, estimate, options);
  if (options.restPieces >= 2) {
    PlanOptions rest = options;
    rest.pieces = options.restPieces;
    rest.sentShare = options.restSentShare;
    chooseCuts(plan, step, Estimate(step, rest), rest);
  }
  if (options.batch && plan.cuts.empty() && !options.batchIsOptional)
    return refuseReplicas(step, estimate, options);
  if (options.chained &&
      llvm::all_of(plan.cuts, [](const Cut &cut) { return cut.isApart; })) {
    InFlightDiagnostic diag =
        step.emitError("nothing is as heavy as a batch that could be cut in ");
    // In fewer pieces a loop is one operator, too.
    std::optional<LoopOverInput> loop = findLoopOverInput(step);
    diag << options.pieces << " micro-batches; "
         << (options.pieces > 2 && !loop
                 ? "ask for fewer, or name"
                 : "compile it whole (splits=none), or name")
         << " what is to be cut (split)";
    if (loop)
      noteLoop(diag, step, *loop);
    return diag;
  }
  if (options.needsBatch && !isNamed &&
      failed(checkMicroBatches(step, plan, estimate, options)))
    return failure();
  return plan;
}

FailureOr<SplitPlan> split::planSplits(func::FuncOp step,
                                       const PlanOptions &options) {
  FailureOr<SplitPlan> plan = planCuts(step, options);
  if (failed(plan) || plan->cuts.empty())
    return plan;
  Estimate estimate(step, options);
  plan->totalNs = estimate.totalNs();
  for (Cut &cut : plan->cuts) {
    cut.worth = estimate.worthOf(cut, *plan);
    // It may save more of other classes' sums than it costs.
    if (cut.worth.copiedNs < 0) {
      cut.worth.savedNs -= cut.worth.copiedNs;
      cut.worth.copiedNs = 0;
    }
  }
  return plan;
}
