//===- StepFitting.cpp - Rewrites that fit the memories -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepFitting.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "FitRemarks.h"
#include "MemoryFitter.h"
#include "PoolRefusal.h"
#include "SpillFitter.h"

using namespace mlir;
using namespace baechi;

// What is told of, each in many parts.
static constexpr StringRef kSeekingAgain = "looking for what to compute again",
                           kSeekingStays = "looking for what can wait";

LogicalResult StepFitting::fit(OwningOpRef<ModuleOp> &untouched,
                               std::vector<Diagnostic> &said) {
  OwningOpRef<ModuleOp> original = untouched->clone();
  std::optional<int64_t> stepNs;
  if (succeeded(recompute(untouched, said)))
    stepNs = planner.predictedNs();
  // A later pool is a slower one.
  for (int32_t pool : placement::poolsOf(planner.machine))
    if (!isSpilled)
      waitInPool(pool, *original, stepNs, said);
  if (!stepNs)
    return failure();
  if (found.memoryFit)
    remarkFit(planner.module.getLoc(), *found.memoryFit);
  return success();
}

/// Lets tensors of \p original wait in the pool, where that takes less than
/// \p stepNs, which it then is.
void StepFitting::waitInPool(int32_t pool, ModuleOp original,
                             std::optional<int64_t> &stepNs,
                             std::vector<Diagnostic> &said) {
  std::vector<Diagnostic> ignored;
  std::optional<SpillFitter> fitter = planner.quietly(ignored, [&] {
    return SpillFitter::create(original, planner.machine, pool);
  });
  // Then something else is wrong.
  if (!fitter ||
      (fitter->peakBytes() <= fitter->deviceBytes() && found.attempts == 1))
    return;
  UnfitPlans unfit;
  if (succeeded(spill(*fitter, stepNs, unfit, said)))
    stepNs = planner.predictedNs();
  if (placement::numComputing(planner.machine) > 1)
    spread(*fitter, stepNs, said);
  if (!stepNs)
    refuseWithPool(*fitter, unfit, said);
}

/// All is computed on one device.
LogicalResult StepFitting::spill(const SpillFitter &fitter,
                                 std::optional<int64_t> otherwiseNs,
                                 UnfitPlans &unfit,
                                 std::vector<Diagnostic> &said) {
  OwningOpRef<ModuleOp> before = planner.module.clone();
  MachineAttr truth = toAttr(planner.module.getContext(), planner.machine);
  std::vector<Diagnostic> spillSaid;
  std::vector<placement::SpillPlan> proposals =
      fitter.proposals(fitter.deviceBytes(), [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingStays, done, total);
      });
  for (auto [number, proposal] : llvm::enumerate(proposals)) {
    if (!planner.goesOn(StepPlanner::kPlanning, number, proposals.size()) ||
        (otherwiseNs && proposal.makespanNs >= *otherwiseNs))
      break;
    spillSaid.clear();
    OwningOpRef<ModuleOp> placed =
        planner.quietly(spillSaid, [&] { return fitter.place(proposal); });
    if (!placed)
      continue;
    planner.replaceBody(*placed);
    planner.module->setAttr(BaechiDialect::kMachine, truth);
    std::vector<ArenaReport> arenas;
    ++found.attempts;
    if (succeeded(planner.plan(spillSaid, arenas))) {
      // By the runtime's rules, which the proposal does not know.
      if (otherwiseNs && planner.predictedNs() >= *otherwiseNs)
        break;
      useSpill(fitter, proposal, spillSaid, said);
      return success();
    }
    unfit.add(arenas, fitter);
  }
  planner.replaceBody(*before);
  return failure();
}

void StepFitting::useSpill(const SpillFitter &fitter,
                           const placement::SpillPlan &proposal,
                           std::vector<Diagnostic> &spillSaid,
                           std::vector<Diagnostic> &said) {
  fitter.remark(proposal);
  found.memoryFit.reset();
  isSpilled = true;
  said = std::move(spillSaid);
}

/// The placer says which device computes what; the rewrites are those of one
/// device with the memory of all. The first that has a plan is taken where
/// its step is shorter than \p stepNs, which it then is.
void StepFitting::spread(const SpillFitter &fitter,
                         std::optional<int64_t> &stepNs,
                         std::vector<Diagnostic> &said) {
  OwningOpRef<ModuleOp> before = planner.module.clone();
  std::vector<placement::SpillPlan> proposals =
      fitter.proposals(fitter.computingBytes(), [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingStays, done, total);
      });
  OwningOpRef<ModuleOp> rewritten;
  std::optional<size_t> first =
      planner.firstThatFits(proposals.size(), [&](size_t k) {
        rewritten = fitter.rewrite(proposals[k]);
        return planner.fits(*rewritten);
      });
  PlaceAndPlanReport tried;
  std::vector<Diagnostic> spillSaid;
  if (first) {
    placement::SpillPlan &proposal = proposals[*first];
    rewritten = fitter.rewrite(proposal);
    if (succeeded(planner.placeFitting(*rewritten, spillSaid, tried))) {
      int64_t ns = planner.predictedNs();
      if (!stepNs || ns < *stepNs) {
        stepNs = proposal.makespanNs = ns;
        tried.attempts += found.attempts;
        found = std::move(tried);
        return useSpill(fitter, proposal, spillSaid, said);
      }
    }
  }
  planner.replaceBody(*before);
}

/// On one device the order of a rewrite is its placement: the first of
/// \p proposals that has a plan in its own, which is the module's then.
const FitProposal *StepFitting::planInItsOrder(const MemoryFitter &fitter,
                                               ArrayRef<FitProposal> proposals,
                                               std::vector<Diagnostic> &said) {
  for (auto [number, proposal] : llvm::enumerate(proposals)) {
    if (!planner.goesOn(StepPlanner::kPlanning, number, proposals.size()))
      break;
    OwningOpRef<ModuleOp> placed = planner.quietly(
        said, [&] { return fitter.placeAlone(proposal, planner.machine); });
    if (!placed)
      break;
    planner.replaceBody(*placed);
    ++found.attempts;
    std::vector<ArenaReport> arenas;
    if (succeeded(planner.plan(said, arenas)))
      return &proposal;
  }
  return nullptr;
}

/// The mildest rewrite in which values are computed again.
LogicalResult StepFitting::recompute(OwningOpRef<ModuleOp> &untouched,
                                     std::vector<Diagnostic> &said) {
  std::vector<Diagnostic> ignored;
  FailureOr<MemoryFitter> fitter = planner.quietly(ignored, [&] {
    return MemoryFitter::create(*untouched, planner.machine);
  });
  if (failed(fitter))
    return failure();
  int64_t all = 0, smallest = std::numeric_limits<int64_t>::max();
  placement::Machine computing = placement::withoutPools(planner.machine);
  for (const placement::Device &device : computing.devices) {
    all += device.memory;
    smallest = std::min(smallest, device.memory);
  }
  // Then something else is wrong.
  if (fitter->peakBytes() <= smallest)
    return failure();
  std::vector<FitProposal> proposals =
      fitter->proposals(all, [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingAgain, done, total);
      });
  auto use = [&](const FitProposal &proposal) {
    found.memoryFit = fitter->describe(proposal);
    untouched = fitter->rewrite(proposal);
    said = std::move(ignored);
    return success();
  };
  if (placement::numComputing(planner.machine) == 1) {
    if (auto *fits = planInItsOrder(*fitter, proposals, ignored))
      return use(*fits);
    // A placer may find an order of the leanest that has one.
    if (!proposals.empty())
      proposals = {*llvm::min_element(proposals, [](auto &a, auto &b) {
        return a.order.peakBytes < b.order.peakBytes;
      })};
  }
  std::optional<size_t> first =
      planner.firstThatFits(proposals.size(), [&](size_t k) {
        return planner.fits(*fitter->rewrite(proposals[k]));
      });
  if (planner.isStopped())
    return failure();
  PlaceAndPlanReport tried;
  if (first && succeeded(planner.placeFitting(
                   *fitter->rewrite(proposals[*first]), ignored, tried))) {
    tried.attempts += found.attempts;
    found = std::move(tried);
    return use(proposals[*first]);
  }
  Diagnostic *error = findError(said);
  if (!error)
    return failure();
  *error << "\n"
         << "computing values again does not help: '" << fitter->floorOperator()
         << "' by itself needs "
         << placement::bytesText(fitter->floor().bytes, 2) << ", of them "
         << placement::bytesText(fitter->residentBytes(), 2) << " of arguments";
  *error << (fitter->floor().bytes > all
                 ? "; cut into pieces (--split) it would need less"
                 : "; with more than that, too, no rewrite that was tried "
                   "has a plan that fits");
  // With a pool, what lacks there is told.
  if (placement::poolsOf(planner.machine).empty() &&
      fitter->floor().bytes <= all)
    *error << ": it takes more memory, or a pool beside it (+pool:SIZE in the "
              "machine), where tensors wait";
  return failure();
}
