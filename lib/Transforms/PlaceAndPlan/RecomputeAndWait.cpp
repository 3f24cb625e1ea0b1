//===- RecomputeAndWait.cpp - Computing again and a pool together ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Pool.h"
#include "StepFitting.h"
#include "Transforms/FitMemory/FitRefusals.h"
#include "Transforms/FitMemory/MemoryFitter.h"
#include "Transforms/FitMemory/SpillFitter.h"

using namespace mlir;
using namespace baechi;

/// So many rewrites are tried with a pool, ...
static constexpr size_t mostRewrites = 4;
/// ... where the step is longer than its work by this.
static constexpr double clearlyLonger = 1.02;

/// Of \p all as many, from the mildest to the leanest. Not of what a person
/// asks for, so that less memory never finds what more has not seen.
static SmallVector<const FitProposal *> pickEvenly(ArrayRef<FitProposal> all) {
  SmallVector<const FitProposal *> some;
  size_t count = std::min(all.size(), mostRewrites);
  for (size_t k = 1; k <= count; ++k)
    some.push_back(&all[all.size() * k / count - 1]);
  return some;
}

void StepFitting::recomputeAndWait(int32_t pool, ModuleOp original,
                                   std::optional<int64_t> &stepNs,
                                   std::vector<Diagnostic> &said) {
  if (placement::numComputing(planner.machine) > 1)
    return;
  std::vector<Diagnostic> ignored;
  FailureOr<MemoryFitter> fitter = planner.quietly(
      ignored, [&] { return MemoryFitter::create(original, planner.machine); });
  // Then something else is wrong.
  if (failed(fitter) ||
      (!stepNs &&
       fitter->peakBytes() <= placement::computingBytes(planner.machine)) ||
      (stepNs && double(*stepNs) <= clearlyLonger * double(fitter->workNs())))
    return;
  std::vector<FitProposal> proposals = fitter->proposals(
      std::numeric_limits<int64_t>::max(), [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingAgain, done, total);
      });
  for (const FitProposal *proposal : pickEvenly(proposals)) {
    OwningOpRef<ModuleOp> rewritten = fitter->rewrite(*proposal);
    std::optional<SpillFitter> rest = planner.quietly(ignored, [&] {
      return SpillFitter::create(*rewritten, planner.machine, pool);
    });
    UnfitPlans unfit;
    if (!rest || failed(spill(*rest, stepNs, unfit, said)))
      continue;
    stepNs = planner.predictedNs();
    found.memoryFit = fitter->describe(*proposal);
    if (planner.anyWillDo())
      break;
  }
}
