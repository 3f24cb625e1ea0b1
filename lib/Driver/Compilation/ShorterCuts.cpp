//===- ShorterCuts.cpp - Pieces against computing again and pools ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A step that does not fit as it is may fit where values are computed again or
/// wait in a pool, and where it is cut, or with both. Where the first takes
/// clearly longer than the step with ample memory, cuts are predicted, too, by
/// the roofline, and the shortest is compiled; it is kept where its step, by
/// the costs that are asked for, is the shorter one.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Cuts/FittingCuts.h"
#include "Baechi/Driver/Report/SpillReport.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"

using namespace mlir;
using namespace baechi;
using placement::millisecondsText;

/// So many cuts are compiled at most before the whole step stays.
static constexpr int kMostCompiled = 3;

/// Whether \p ns is clearly longer than \p other.
static bool isLonger(int64_t ns, int64_t other) {
  return double(ns) > kAboutAsLong * double(other);
}

static placement::Machine withAmpleMemory(placement::Machine machine) {
  constexpr int64_t kAmple = int64_t(1) << 50;
  for (placement::Device &device : machine.devices)
    device.memory = std::max(device.memory, kAmple);
  return machine;
}

std::optional<Compilation::WholeStep>
Compilation::findWholeStep(const CompiledProgram *fitted) {
  WholeStep step;
  LogicalResult known = forms.quietly([&]() -> LogicalResult {
    HostCompiler *whole = compilers.front().get();
    // Cuts are predicted before their kernels are measured.
    std::unique_ptr<HostCompiler> unmeasured;
    if (asked.costs == "measured") {
      FailureOr<std::unique_ptr<HostCompiler>> formed = forms.form(firstChoice);
      if (failed(formed))
        return failure();
      unmeasured = std::move(*formed);
      whole = unmeasured.get();
    }
    FailureOr<int64_t> ample =
        forms.predictFitting(*whole, withAmpleMemory(target));
    if (failed(ample))
      return failure();
    step.ampleNs = *ample;
    if (!fitted)
      return success();
    if (!unmeasured) {
      // By the plan's own times, or where the step that runs takes longer.
      const llvm::json::Object *plan = fitted->manifest.getObject("predicted");
      step.fittingNs =
          std::max(fitted->predictedNs,
                   plan ? plan->getInteger("makespan_ns").value_or(0) : 0);
      return success();
    }
    FailureOr<int64_t> fitting = forms.predictFitting(*whole);
    if (succeeded(fitting))
      step.fittingNs = *fitting;
    return LogicalResult(fitting);
  });
  return succeeded(known) ? std::optional(step) : std::nullopt;
}

void Compilation::addShorterCut(std::vector<Candidate> &candidates,
                                SetArguments setArguments) {
  if (cutReport || !mayCutToFit() || listener.isStopped())
    return;
  const Candidate *best = nullptr;
  for (const Candidate &each : candidates)
    if (each.program && (!best || *each.predictedNs < *best->predictedNs))
      best = &each;
  if (!best ||
      (!best->program->memoryFit && !spillsOf(best->program->manifest)))
    return;
  std::optional<WholeStep> whole = findWholeStep(&*best->program);
  if (!whole || !isLonger(whole->fittingNs, whole->ampleNs))
    return;
  int64_t otherwiseNs = *best->predictedNs;
  // Pieces that were asked for may be what fits.
  const HostCompiler &fitting = *compilers[best - candidates.data()];
  bool isWhole = fitting.splits().classes.empty();
  std::string otherwise =
      isWhole ? " and the whole step " : " and the step in other pieces ";
  FittingCuts cuts(forms, *compilers.front(), firstChoice);
  if (!cuts.neediest())
    return;
  cuts.compareUntil(whole->ampleNs, /*instead=*/true,
                    int64_t(double(whole->fittingNs) / kAboutAsLong));
  for (int compiled = 0; compiled < kMostCompiled; ++compiled) {
    std::optional<FittingCut> cut = cuts.next();
    if (std::optional<int64_t> workNs = cuts.leastLongWorkNs();
        !cut && workNs && otherCuts.empty())
      otherCuts = "cut into pieces its operators alone are predicted to take " +
                  millisecondsText(*workNs) + otherwise +
                  millisecondsText(whole->fittingNs);
    if (!cut)
      return;
    if (!isLonger(whole->fittingNs, cut->predictedNs)) {
      if (otherCuts.empty())
        otherCuts = "cut into pieces it is predicted to take " +
                    millisecondsText(cut->predictedNs) + otherwise +
                    millisecondsText(whole->fittingNs);
      return;
    }
    std::string why;
    FailureOr<CompiledProgram> program =
        takeCut(*cut, *cuts.neediest(), setArguments,
                int64_t(double(otherwiseNs) / kAboutAsLong), why);
    otherCosts |= asked.costs == "measured";
    if (succeeded(program)) {
      int64_t piecesNs = aimedNs(*program);
      cutReport->instead = {otherwiseNs, piecesNs, isWhole};
      Candidate &added = candidates.emplace_back();
      added.predictedNs = piecesNs;
      added.program = std::move(*program);
      return;
    }
    std::string times = "; it is predicted to take " +
                        millisecondsText(cut->predictedNs) + " instead of " +
                        millisecondsText(whole->fittingNs);
    if (!why.empty() && otherCuts.empty())
      otherCuts = why + times;
    cuts.preferProven();
  }
}
