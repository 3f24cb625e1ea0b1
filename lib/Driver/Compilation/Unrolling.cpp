//===- Unrolling.cpp - Loops as they are, or written out ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A loop is one operator of one device. Where several devices could share its
/// turns, or a limit of memory its tensors, the step with its loops written out
/// is planned beside the step as it is, by the roofline and the placer alone,
/// and all that follows is about the one that is predicted to be faster; where
/// other programs are compared by what was measured, so is the step as it is.
/// Where bits must be the same on any machine, and where a person names what is
/// cut, nothing is predicted: the step alone decides.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

/// The roofline may be wrong by this part of what it predicts.
static constexpr double kSurely = 0.05;

/// The shortest that one of \p choices brings; nothing where none fits.
static std::optional<int64_t> predict(const ModelForms &forms, ModuleOp model,
                                      ArrayRef<SplitChoice> choices) {
  std::optional<int64_t> least;
  for (const SplitChoice &choice : choices)
    (void)forms.quietly([&] {
      FailureOr<ModelForms::Compiler> formed = forms.formOf(model, choice);
      FailureOr<int64_t> ns = failure();
      if (succeeded(formed))
        ns = forms.predictFitting(**formed);
      if (succeeded(ns))
        least = std::min(least.value_or(*ns), *ns);
      return LogicalResult(ns);
    });
  return least;
}

/// Whether a step on one device could be short of memory.
static bool mayBeTight(ModuleOp model, const placement::Machine &machine) {
  FailureOr<func::FuncOp> step = findFuncStep(model);
  if (failed(step))
    return false;
  int64_t bytes = 0;
  step->walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      bytes += tensorBytes(type, /*aligned=*/true).value_or(0);
  });
  for (Type type : step->getArgumentTypes())
    bytes += tensorBytes(type, /*aligned=*/true).value_or(0);
  return llvm::any_of(machine.devices, [&](const placement::Device &device) {
    return device.memory < bytes;
  });
}

/// \p inlined with its loops written out, and what became of them; null where
/// that fails.
static OwningOpRef<ModuleOp> writeOut(ModuleOp inlined, LoopReport &report) {
  OwningOpRef<ModuleOp> unrolled = inlined.clone();
  PassManager passes(unrolled->getContext());
  populateUnrolling(passes, report.choice, &report.loops);
  if (failed(passes.run(*unrolled)))
    return {};
  // Unasked, what no step could have otherwise is nothing to tell.
  if (!report.choice.always)
    std::erase_if(report.loops.whole, [](const UnrolledLoops::Whole &each) {
      return !each.isForTurns;
    });
  return unrolled;
}

LogicalResult Compilation::writeOutToFit(ModuleOp inlined,
                                         ArrayRef<SplitChoice> choices,
                                         LoopReport &report,
                                         OwningOpRef<ModuleOp> &unrolled) {
  Phase phase(listener, "comparing loops");
  if (predict(forms, *unrolled, choices))
    return success();
  LoopReport other;
  other.choice = report.choice;
  other.choice.byStepAlone = false;
  other.choice.leastShare = other.choice.leastNs = 0;
  other.choice.mostWrites = other.choice.limit;
  OwningOpRef<ModuleOp> all = writeOut(inlined, other);
  if (!all)
    return failure();
  other.wholeNs = predict(forms, forms.model(), choices);
  other.unrolledNs = predict(forms, *all, choices);
  if (!other.wholeNs && !other.unrolledNs)
    return success(); // As they are: what is cut may fit.
  other.isKept = !other.wholeNs ||
                 (other.unrolledNs && *other.unrolledNs < *other.wholeNs);
  report = std::move(other);
  unrolled = std::move(all);
  return success();
}

llvm::Error Compilation::unrollLoops() {
  llvm::Expected<std::optional<UnrollChoice>> asksFor = unrollChoiceOf(asked);
  if (!asksFor)
    return asksFor.takeError();
  if (!*asksFor || !hasLoops(forms.model()))
    return llvm::Error::success();
  LoopReport report;
  report.choice = **asksFor;
  // A placement's names are those of the step as it was placed.
  report.isPlaced = !report.choice.always && !asked.placement.empty();
  if (report.isPlaced && !placesParts(asked.placement, ".turn"))
    return llvm::Error::success();
  bool isSaid =
      report.choice.always || report.choice.byStepAlone || report.isPlaced;
  size_t devices = placement::numComputing(target);
  OwningOpRef<ModuleOp> inlined = forms.model().clone();
  PassManager inlining(inlined->getContext());
  inlining.addPass(createInlineStep());
  if (failed(inlining.run(*inlined)))
    return diagnosed();
  bool isExact = report.choice.byStepAlone && asked.splits == "exact",
       isTight = (!isSaid || isExact) && mayBeTight(*inlined, target);
  if (!isSaid && devices < 2 && !isTight)
    return llvm::Error::success();
  // What fits is not left for being quick.
  if ((isTight && !isExact) || report.isPlaced)
    report.choice.leastShare = report.choice.leastNs = 0;
  OwningOpRef<ModuleOp> unrolled = writeOut(*inlined, report);
  if (!unrolled)
    return diagnosed();
  // Replicas that a program is written for compute at once already.
  if (!report.choice.always && (*findFuncStep(*unrolled))->hasAttr(kReplicas))
    return llvm::Error::success();
  std::optional<Phase> phase;
  if (!isSaid)
    phase.emplace(listener, "comparing loops");
  llvm::Expected<SplitChoice> splits = splitChoiceOf(asked, devices);
  if (!splits)
    return splits.takeError();
  SmallVector<SplitChoice> choices = {*splits};
  // Pieces are compared with none.
  if (asked.splits == "any" || asked.splits == "exact")
    choices.emplace_back().exact = splits->exact;
  bool hasWhole = !report.loops.whole.empty();
  if (!isSaid && (!report.loops.unrolled.empty() || (isTight && hasWhole)))
    report.wholeNs = predict(forms, forms.model(), choices);
  // Nor for taking long to be compiled, where nothing fits.
  if (isTight && !isExact && hasWhole && !report.wholeNs) {
    report.choice.mostWrites = report.choice.limit;
    if (!(unrolled = writeOut(*inlined, report)))
      return diagnosed();
  }
  bool hasChosen = false;
  if (isExact && isTight) {
    if (failed(writeOutToFit(*inlined, choices, report, unrolled)))
      return diagnosed();
    hasChosen = !report.choice.byStepAlone;
  }
  if (report.loops.unrolled.empty()) {
    if (!report.loops.whole.empty())
      loops = std::move(report);
    return llvm::Error::success();
  }
  if (!hasChosen)
    report.isKept = isSaid;
  if (!isSaid) {
    report.unrolledNs = predict(forms, *unrolled, choices);
    report.isKept =
        report.unrolledNs &&
        (!report.wholeNs ||
         double(*report.unrolledNs) * (1 + kSurely) < double(*report.wholeNs));
  }
  if (report.isKept) {
    OwningOpRef<ModuleOp> whole = forms.setModel(std::move(unrolled));
    if (asked.splits == "any" && report.wholeNs)
      wholeLoops = std::move(whole);
  }
  loops = std::move(report);
  return llvm::Error::success();
}

LogicalResult Compilation::addWholeLoops(const SplitChoice &choice) {
  if (!wholeLoops)
    return success();
  FailureOr<std::unique_ptr<HostCompiler>> formed =
      forms.formOf(*wholeLoops, choice);
  if (failed(formed))
    return failure();
  withWholeLoops = compilers.size();
  compilers.push_back(std::move(*formed));
  return success();
}

void Compilation::settleLoops(size_t &best,
                              std::vector<Candidate> &candidates) {
  if (!withWholeLoops)
    return;
  size_t at = *std::exchange(withWholeLoops, std::nullopt);
  loops->isKept = best != at;
  // What it is predicted to take in pieces is less, or nothing.
  if (candidates[at].predictedNs)
    loops->wholeNs = candidates[at].predictedNs;
  loops->triedWholeNs = candidates[at].triedNs;
  auto nsOf = [](const Candidate &each) {
    return each.triedNs ? each.triedNs : each.predictedNs;
  };
  const Candidate *other = nullptr;
  for (auto [number, each] : llvm::enumerate(candidates))
    if (number != at && each.predictedNs &&
        (!other || *nsOf(each) < *nsOf(*other)))
      other = &each;
  loops->unrolledNs = other ? other->predictedNs : std::nullopt;
  loops->triedUnrolledNs = other ? other->triedNs : std::nullopt;
  use(*compilers[best]);
  if (best == at) {
    std::swap(compilers.front(), compilers[at]);
    std::swap(candidates.front(), candidates[at]);
    best = 0;
  }
  compilers.erase(compilers.begin() + at);
  candidates.erase(candidates.begin() + at);
  best -= best > at;
  microCompiler -= microCompiler > at;
  for (KeptCheckpoints &each : withCheckpoints)
    each.compiler -= each.compiler > at;
}
