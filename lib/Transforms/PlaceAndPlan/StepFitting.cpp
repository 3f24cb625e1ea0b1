//===- StepFitting.cpp - Rewrites that fit the memories -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepFitting.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Placement/Model/Pool.h"
#include "TakenOver.h"
#include "Transforms/FitMemory/FitRefusals.h"
#include "Transforms/FitMemory/FitRemarks.h"
#include "Transforms/FitMemory/MemoryFitter.h"
#include "Transforms/FitMemory/SpillFitter.h"

using namespace mlir;
using namespace baechi;

/// By the runtime's rules a step may take less than by a plan's own times, by
/// no more than this, as far as is known.
static constexpr double kMostSaved = 1.25;

LogicalResult StepFitting::fit(OwningOpRef<ModuleOp> &untouched,
                               std::vector<Diagnostic> &said) {
  OwningOpRef<ModuleOp> original = untouched->clone();
  std::optional<int64_t> stepNs;
  if (succeeded(recompute(untouched, said)))
    stepNs = planner.predictedNs();
  auto isEnough = [&] { return stepNs && planner.anyWillDo(); };
  // A later pool is a slower one.
  for (int32_t pool : placement::poolsOf(planner.machine))
    if (!isSpilled() && !isEnough())
      waitInPool(pool, *original, stepNs, said);
  for (int32_t pool : placement::poolsOf(planner.machine))
    if ((!isSpilled() || !found.memoryFit) && !isEnough())
      recomputeAndWait(pool, *original, stepNs, said);
  if (!stepNs)
    return failure();
  // Of the plan that stays alone.
  if (spillFit)
    remarkSpill(planner.module.getLoc(), *spillFit);
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
  if (placement::numComputing(planner.machine) > 1 &&
      !(stepNs && planner.anyWillDo()))
    spread(*fitter, stepNs, said);
  if (!stepNs && planner.explains())
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
  // Of those that have a plan the shortest by the runtime's rules, which the
  // proposals do not know: less memory leaves out some of them, and finds none
  // that more has not seen.
  const placement::SpillPlan *best = nullptr;
  OwningOpRef<ModuleOp> planned;
  std::vector<Diagnostic> bestSaid;
  for (auto [number, proposal] : llvm::enumerate(proposals)) {
    if (!planner.goesOn(StepPlanner::kPlanning, number, proposals.size()) ||
        (best && planner.anyWillDo()) ||
        (otherwiseNs &&
         double(proposal.makespanNs) >= kMostSaved * double(*otherwiseNs)))
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
    if (failed(planner.plan(spillSaid, arenas))) {
      unfit.add(arenas, fitter);
      continue;
    }
    int64_t ns = planner.predictedNs();
    if (otherwiseNs && ns >= *otherwiseNs)
      continue;
    otherwiseNs = ns;
    best = &proposal;
    planned = planner.module.clone();
    bestSaid = std::move(spillSaid);
  }
  planner.replaceBody(best ? *planned : *before);
  if (best)
    useSpill(fitter, *best, bestSaid, said);
  return success(best != nullptr);
}

void StepFitting::useSpill(const SpillFitter &fitter,
                           const placement::SpillPlan &proposal,
                           std::vector<Diagnostic> &spillSaid,
                           std::vector<Diagnostic> &said) {
  spillFit = fitter.describe(proposal);
  found.memoryFit.reset();
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
  StepPlanner::PlannedAlone planned;
  std::optional<size_t> first =
      planner.firstThatFits(proposals.size(), [&](size_t k) {
        return planner.fits(*fitter.rewrite(proposals[k]), planned);
      });
  PlaceAndPlanReport tried;
  std::vector<Diagnostic> spillSaid;
  if (first) {
    placement::SpillPlan &proposal = proposals[*first];
    if (succeeded(planner.unread([&] {
          return planner.placeFitting(*fitter.rewrite(proposal), spillSaid,
                                      tried, &planned);
        }))) {
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

/// Plans \p proposal in its own order, as the module's body, on the one device
/// that computes. \p arenaBytes: what the plan takes there, where there is one.
LogicalResult StepFitting::planAlone(const MemoryFitter &fitter,
                                     const FitProposal &proposal,
                                     std::vector<Diagnostic> &said,
                                     std::optional<int64_t> &arenaBytes) {
  OwningOpRef<ModuleOp> placed = planner.quietly(
      said, [&] { return fitter.placeAlone(proposal, planner.machine); });
  if (!placed)
    return failure();
  planner.replaceBody(*placed);
  std::vector<ArenaReport> arenas;
  LogicalResult planned = planner.plan(said, arenas);
  for (auto [device, arena] : llvm::zip(planner.machine.devices, arenas))
    if (!placement::isPool(device))
      arenaBytes = arena.bytes;
  return planned;
}

/// On one device the order of a rewrite is its placement: the first of
/// \p proposals that has a plan in its own, which is the module's then.
/// \p leanest: becomes what the leanest of their plans takes.
const FitProposal *StepFitting::planInItsOrder(
    const MemoryFitter &fitter, ArrayRef<FitProposal> proposals,
    std::vector<Diagnostic> &said, std::optional<int64_t> &leanest) {
  for (auto [number, proposal] : llvm::enumerate(proposals)) {
    if (!planner.goesOn(StepPlanner::kPlanning, number, proposals.size()))
      break;
    ++found.attempts;
    std::optional<int64_t> bytes;
    if (succeeded(planAlone(fitter, proposal, said, bytes)))
      return &proposal;
    if (bytes)
      leanest = std::min(*bytes, leanest.value_or(*bytes));
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
  int64_t smallest = std::numeric_limits<int64_t>::max();
  placement::Machine computing = placement::withoutPools(planner.machine);
  for (const placement::Device &device : computing.devices)
    smallest = std::min(smallest, device.memory);
  // Then something else is wrong.
  if (fitter->peakBytes() <= smallest)
    return failure();
  bool isAlone = computing.devices.size() == 1;
  // Of one device the plan tells what results in operands' places leave; of
  // several, placers are asked, who do not count with them.
  int64_t most = placement::computingBytes(computing);
  if (FailureOr<func::FuncOp> step = findFuncStep(*untouched);
      isAlone && succeeded(step))
    most += bytesTakenOver(*step);
  std::vector<FitProposal> proposals =
      fitter->proposals(most, [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingAgain, done, total);
      });
  std::optional<int64_t> leanest;
  auto use = [&](const FitProposal &proposal) {
    found.memoryFit = fitter->describe(proposal);
    untouched = fitter->rewrite(proposal);
    said = std::move(ignored);
    return success();
  };
  // What holds least has a plan before others have one.
  if (isAlone && planner.anyWillDo())
    llvm::stable_sort(proposals, [](auto &a, auto &b) {
      return a.order.peakBytes < b.order.peakBytes;
    });
  if (isAlone) {
    if (auto *fits = planInItsOrder(*fitter, proposals, ignored, leanest))
      return use(*fits);
    // A placer may find an order of the leanest that has one.
    if (!proposals.empty())
      proposals = {*llvm::min_element(proposals, [](auto &a, auto &b) {
        return a.order.peakBytes < b.order.peakBytes;
      })};
  }
  StepPlanner::PlannedAlone alone;
  std::optional<size_t> first =
      planner.firstThatFits(proposals.size(), [&](size_t k) {
        return planner.fits(*fitter->rewrite(proposals[k]), alone);
      });
  if (planner.isStopped())
    return failure();
  PlaceAndPlanReport tried;
  if (first && succeeded(planner.unread([&] {
        return planner.placeFitting(*fitter->rewrite(proposals[*first]),
                                    ignored, tried, &alone);
      }))) {
    tried.attempts += found.attempts;
    found = std::move(tried);
    return use(proposals[*first]);
  }
  if (Diagnostic *error = findError(said);
      error && planner.explains() && !planner.isStopped()) {
    if (!leanest)
      leanest = needOfLeanest(*fitter);
    refuseToRecompute(*fitter, planner.machine, leanest, *error);
  }
  return failure();
}

/// What the leanest rewrite that is found for any memory takes: on one device
/// its plan, on several all together as the replay of its runs counts.
std::optional<int64_t> StepFitting::needOfLeanest(const MemoryFitter &fitter) {
  std::vector<FitProposal> proposals = fitter.proposals(
      std::numeric_limits<int64_t>::max(), [&](size_t done, size_t total) {
        return planner.goesOn(kSeekingAgain, done, total);
      });
  if (proposals.empty())
    return std::nullopt;
  const FitProposal &least =
      *llvm::min_element(proposals, [](auto &a, auto &b) {
        return a.order.peakBytes < b.order.peakBytes;
      });
  if (placement::numComputing(planner.machine) > 1)
    return least.order.peakBytes;
  std::vector<Diagnostic> ignored;
  std::optional<int64_t> bytes;
  (void)planAlone(fitter, least, ignored, bytes);
  return bytes;
}
