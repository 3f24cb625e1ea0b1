//===- StepPlanner.cpp - Place until the memory plan fits -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepPlanner.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "PlacerLimits.h"
#include "TakenOver.h"
#include "Transforms/FitMemory/FitRefusals.h"
#include "Transforms/FitMemory/FitRemarks.h"
#include "Transforms/PlanPasses.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;
using namespace baechi;

static constexpr int mostAttempts = 8;
/// So often only the devices that exceeded their limits get lower ones. Then
/// all do: what one device no longer takes moved to the next, in a circle.
static constexpr int attemptsApart = 3;
/// So often the whole budget goes into a placement whose plan may not fit. Then
/// the placer alone says with which limits a plan does.
static constexpr int attemptsSearched = 2;
/// So many more are made in all before a refusal, where several devices
/// compute: limits close to ones that are too high, too.
static constexpr int attemptsBeforeRefusal = 24;
/// Where the placer finds nothing after more attempts, nobody hears of it.
static constexpr int attemptsTold = 2;

/// Above the limits, over all devices.
static int64_t bytesMissing(ArrayRef<ArenaReport> arenas) {
  int64_t bytes = 0;
  for (const ArenaReport &arena : arenas)
    bytes += std::max<int64_t>(arena.bytes - arena.limit, 0);
  return bytes;
}

LogicalResult StepPlanner::placeUntilItFits(StringRef placer,
                                            ModuleOp untouched,
                                            PlaceAndPlanReport &found) {
  PlacerLimits limits(machine);
  std::vector<Diagnostic> firstRefusal, leanestRefusal, impossible;
  int64_t leastMissing = std::numeric_limits<int64_t>::max();
  const std::string budget = options.budget;
  auto restore = llvm::make_scope_exit([&] { options.budget = budget; });
  while (true) {
    if (++found.attempts > attemptsSearched)
      options.budget = "0";
    std::vector<Diagnostic> said;
    LogicalResult placed =
        limits.areInVain() ? failure()
                           : placeWithin(placer, limits.machine(), said, found);
    // What is wrong with the program itself, the first placement says.
    if (failed(placed) && found.attempts == 1) {
      // Results in their operands' places need no room, which no placer
      // knows. With as much more, one that finds nothing has a proof.
      if (!limits.allowBeyond(takenOver()))
        return stop(said, found);
      impossible = std::move(said);
      replaceBody(untouched);
      continue;
    }
    if (failed(placed) && found.attempts == 2 && !impossible.empty()) {
      found.attempts = 1;
      // The same words with other memories are about something else.
      Diagnostic *first = findError(impossible), *second = findError(said);
      if (first && second && first->str() != second->str())
        noteTakenOver(impossible, takenOver());
      return stop(impossible, found);
    }
    bool again;
    bool isLate = found.attempts >= mostAttempts;
    if (failed(placed)) {
      isLate |= limits.areClose();
      again = limits.raise();
    } else {
      std::vector<Diagnostic> refusal;
      std::vector<ArenaReport> arenas;
      if (succeeded(plan(refusal, arenas))) {
        if (found.attempts > attemptsSearched) {
          options.budget = budget;
          if (searches())
            searchWithin(placer, limits.machine(), untouched, said, refusal,
                         found);
        }
        tell(said);
        tell(refusal); // remarks
        return success();
      }
      if (int64_t missing = bytesMissing(arenas);
          !impossible.empty() && missing > 0 && missing < leastMissing) {
        leastMissing = missing;
        leanestRefusal = std::move(refusal);
      } else if (firstRefusal.empty()) {
        firstRefusal = std::move(refusal);
      }
      again = limits.lower(arenas, found.attempts >= attemptsApart);
      remarkPlacedAgain(module.getLoc(), arenas, limits.machine());
    }
    if (isLate && again)
      again = mayTryLast() && numMore++ < attemptsBeforeRefusal;
    if (!again) {
      // Nothing else was placed within the true limits either.
      if (impossible.empty() && succeeded(planInTurn(placer, untouched, found)))
        return success();
      if (leanestRefusal.empty())
        return stop(firstRefusal, found);
      refuseBeyond(leanestRefusal, takenOver());
      return stop(leanestRefusal, found);
    }
    replaceBody(untouched);
  }
}

/// The last plan before a refusal, where several devices compute: one after the
/// other, so that what is posted early or awaited late holds nothing.
LogicalResult StepPlanner::planInTurn(StringRef placer, ModuleOp untouched,
                                      PlaceAndPlanReport &found) {
  if (!mayTryLast())
    return failure();
  replaceBody(untouched);
  Said said, refusal;
  std::vector<ArenaReport> arenas;
  inTurn = true;
  LogicalResult placed = placeWithin(placer, machine, said, found);
  inTurn = false;
  if (failed(placed) || failed(plan(refusal, arenas)))
    return failure();
  ++found.attempts;
  tell(said);
  tell(refusal); // remarks
  return success();
}

/// What is left out where something else is tried instead.
bool StepPlanner::mayTryLast() {
  bool isOfSeveral = placement::numComputing(machine) > 1;
  leftOut |= isOfSeveral && !watch.isLast;
  return isOfSeveral && watch.isLast;
}

/// The module is planned by the placer alone for \p limits: replaces the plan
/// by one of the whole budget, where that has one there, too.
void StepPlanner::searchWithin(StringRef placer,
                               const placement::Machine &limits,
                               ModuleOp untouched, Said &said, Said &saidOfPlan,
                               PlaceAndPlanReport &found) {
  OwningOpRef<ModuleOp> alone = module.clone();
  Said searchSaid, planSaid;
  std::vector<ArenaReport> arenas;
  replaceBody(untouched);
  if (succeeded(placeWithin(placer, limits, searchSaid, found)) &&
      succeeded(plan(planSaid, arenas))) {
    said = std::move(searchSaid);
    saidOfPlan = std::move(planSaid);
    return;
  }
  replaceBody(*alone);
}

/// What waits in a pool is not for a placer to say, but for a person or for
/// what makes a step fit.
LogicalResult StepPlanner::placeWithin(StringRef placer,
                                       const placement::Machine &limits,
                                       Said &said, PlaceAndPlanReport &found) {
  module->setAttr(
      BaechiDialect::kMachine,
      toAttr(module.getContext(),
             hasPinsToPools() ? limits : placement::withoutPools(limits)));
  LogicalResult placed = place(placer, said, found);
  module->setAttr(BaechiDialect::kMachine,
                  toAttr(module.getContext(), machine));
  return placed;
}

/// The most bytes that one operator's results can take over.
int64_t StepPlanner::takenOver() {
  std::vector<Diagnostic> ignored;
  auto step = quietly(ignored, [&] { return findStep(module); });
  return failed(step) ? 0 : bytesTakenOver(*step);
}

/// A placer counts results that take the places of operands beside them: what
/// it says of bytes is no proof by itself.
void StepPlanner::noteTakenOver(std::vector<Diagnostic> &said, int64_t bytes) {
  Diagnostic *error = findError(said);
  if (error)
    error->attachNote(module.getLoc())
        << "bytes are counted as if no result took its operand's place; with "
        << placement::bytesText(bytes, 2)
        << " more on each device, as much as one operator's results can take "
           "over, there is no placement either";
}

/// No placer found anything within the memories, and no plan of what was found
/// beyond them fits: \p said, of the leanest of these, is not of a placement
/// that meets them.
void StepPlanner::refuseBeyond(std::vector<Diagnostic> &said, int64_t bytes) {
  Diagnostic *error = findError(said);
  if (!error)
    return;
  Diagnostic refusal(error->getLocation(), DiagnosticSeverity::Error);
  refusal << "no placement was found that fits the memories, with each result "
             "beside its operands; of those with "
          << placement::bytesText(bytes, 2)
          << " more on each device, as much as one operator's results can "
             "take over, this is the leanest plan: "
          << error->str();
  for (const Diagnostic &note : error->getNotes())
    refusal.attachNote(note.getLocation()) << note.str();
  *error = std::move(refusal);
}

int64_t StepPlanner::predictedNs() {
  std::vector<Diagnostic> ignored;
  FailureOr<StepProgram> step =
      quietly(ignored, [&] { return readStepProgram(module, machine); });
  std::optional<int64_t> ns;
  if (succeeded(step))
    ns = predictedNs(*step);
  return ns.value_or(std::numeric_limits<int64_t>::max());
}

std::optional<int64_t> StepPlanner::predictedNs(const StepProgram &step) const {
  auto costs = machine.runtime.value_or(placement::RuntimeCosts());
  if (options.objective == "period")
    return simulatePeriod(step, costs);
  std::optional<SimulatedStep> simulated = simulateStep(step, costs);
  return simulated ? std::optional(simulated->makespanNs) : std::nullopt;
}

std::optional<size_t>
StepPlanner::firstThatFits(size_t count,
                           function_ref<bool(size_t)> fits) const {
  std::optional<size_t> found;
  SmallVector<bool> seen(count, false);
  bool areMany = placement::numComputing(machine) > 1;
  size_t from = 0, to = areMany ? count : 0;
  size_t tried = 0;
  while (from < to && goesOn(kPlanning, tried++, count)) {
    size_t middle = (from + to) / 2;
    seen[middle] = true;
    if (fits(middle)) {
      found = to = middle;
    } else {
      from = middle + 1;
    }
  }
  if (areMany && !explains())
    return found;
  for (size_t k = 0; k < count && !found; ++k)
    if (!seen[k] && goesOn(kPlanning, tried++, count) && fits(k))
      found = k;
  return found;
}

bool StepPlanner::fits(ModuleOp rewritten, PlannedAlone &planned) {
  std::vector<Diagnostic> said;
  PlaceAndPlanReport tried;
  if (failed(unread([&] {
        return placeRewritten(rewritten, /*effort=*/"0", said, tried);
      })))
    return false;
  planned = {module.clone(), std::move(said), std::move(tried)};
  return true;
}

void StepPlanner::use(PlannedAlone &known, std::vector<Diagnostic> &said,
                      PlaceAndPlanReport &tried) {
  replaceBody(*known.module);
  said = std::move(known.said);
  tried = std::move(known.report);
}

/// Whether what is asked for is more than the placer alone.
bool StepPlanner::searches() const {
  placement::Budget effort;
  return placement::parseBudget(options.budget, effort).empty() &&
         effort.kind != placement::Budget::Kind::None;
}

LogicalResult StepPlanner::placeFitting(ModuleOp rewritten,
                                        std::vector<Diagnostic> &said,
                                        PlaceAndPlanReport &tried,
                                        PlannedAlone *known) {
  if (known && !searches()) {
    use(*known, said, tried);
    return success();
  }
  if (succeeded(placeRewritten(rewritten, options.budget, said, tried)))
    return success();
  if (!searches() || isStopped())
    return failure();
  PlannedAlone alone;
  if (!known && fits(rewritten, alone))
    known = &alone;
  if (!known)
    return failure();
  use(*known, said, tried);
  return success();
}

LogicalResult StepPlanner::placeRewritten(ModuleOp rewritten,
                                          std::string effort,
                                          std::vector<Diagnostic> &said,
                                          PlaceAndPlanReport &tried) {
  std::string wanted = std::exchange(options.budget, std::move(effort));
  replaceBody(rewritten);
  said.clear();
  LogicalResult planned = quietly(
      said, [&] { return placeUntilItFits(options.placer, rewritten, tried); });
  options.budget = wanted;
  return planned;
}

void StepPlanner::replaceBody(ModuleOp by) {
  OwningOpRef<ModuleOp> fresh = by.clone();
  module.getBodyRegion().takeBody(fresh->getBodyRegion());
}

/// A person says what is on a pool.
bool StepPlanner::hasPinsToPools() {
  auto isPool = [&](Attribute pin) {
    return llvm::any_of(machine.devices, [&](const auto &device) {
      return placement::isPool(device) &&
             pin == StringAttr::get(module.getContext(), device.name);
    });
  };
  return module
      .walk([&](Operation *op) {
        auto function = dyn_cast<FunctionOpInterface>(op);
        bool pinned = isPool(op->getAttr(BaechiDialect::kPin));
        for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
          pinned |= isPool(function.getArgAttr(i, BaechiDialect::kPin));
        return pinned ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Runs \p pipeline and keeps what it says.
LogicalResult StepPlanner::runQuietly(OpPassManager &pipeline,
                                      std::vector<Diagnostic> &said) {
  return quietly(said, [&] { return run(pipeline); });
}

LogicalResult StepPlanner::place(StringRef placer,
                                 std::vector<Diagnostic> &said,
                                 PlaceAndPlanReport &found) {
  PlaceOptions chosen = options;
  chosen.placer = placer.str();
  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addPass(createPlace(
      chosen, watch.stopped,
      /*explains=*/watch.explains && found.attempts <= attemptsTold, inTurn));
  auto start = std::chrono::steady_clock::now();
  LogicalResult placed = runQuietly(pipeline, said);
  found.placeSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return placed;
}

/// \p onlyFits: arenas that are within their limits are small enough.
static void populatePlanning(OpPassManager &manager,
                             std::vector<ArenaReport> *arenas,
                             ArrayRef<std::string> copiedFrom, bool onlyFits) {
  PartitionOptions partition;
  llvm::append_range(partition.copiedFrom, copiedFrom);
  manager.addPass(createVerifyPlaced());
  manager.addPass(createPartition(partition));
  manager.addPass(createCarryParameters());
  manager.addPass(createVerifyPartitioned());
  manager.addPass(createPlanMemory(arenas, onlyFits));
  // Planning moves waits: freedom from deadlock is proven again.
  manager.addPass(createVerifyPartitioned());
}

LogicalResult StepPlanner::plan(std::vector<Diagnostic> &said,
                                std::vector<ArenaReport> &arenas) {
  bool lends = llvm::any_of(machine.links,
                            [](auto &link) { return link && link->lends; });
  OwningOpRef<ModuleOp> placed = lends ? module.clone() : nullptr;
  std::vector<std::string> copiedFrom;
  while (true) {
    said.clear();
    arenas.clear();
    OpPassManager pipeline(ModuleOp::getOperationName());
    populatePlanning(pipeline, &arenas, copiedFrom, onlyCompares);
    if (succeeded(runQuietly(pipeline, said)))
      return success();
    if (!lends || copiedFrom.size() == machine.devices.size())
      return failure();
    size_t before = copiedFrom.size();
    for (auto [device, arena] : llvm::zip(machine.devices, arenas))
      if (arena.bytes > arena.limit &&
          !llvm::is_contained(copiedFrom, device.name))
        copiedFrom.push_back(device.name);
    if (copiedFrom.size() == before) {
      copiedFrom.clear();
      for (const placement::Device &device : machine.devices)
        copiedFrom.push_back(device.name);
    }
    remarkCopies(copiedFrom);
    replaceBody(*placed);
  }
}

void StepPlanner::remarkCopies(ArrayRef<std::string> copiedFrom) {
  if (auto remark = remark::missed(module.getLoc(),
                                   remark::RemarkOpts::name("lends-nothing")
                                       .category("baechi-place-and-plan")))
    remark << remark::metric("Devices", llvm::join(copiedFrom, ", "));
}

void StepPlanner::tell(std::vector<Diagnostic> &said) {
  for (Diagnostic &diagnostic : said)
    module.getContext()->getDiagEngine().emit(std::move(diagnostic));
}

LogicalResult StepPlanner::stop(std::vector<Diagnostic> &said,
                                const PlaceAndPlanReport &found) {
  // Of the true limits, not of the lowered ones.
  Diagnostic *error = findError(said);
  if (found.attempts > 1 && error)
    error->attachNote(module.getLoc())
        << "placed " << found.attempts
        << " times with lower limits, none of the plans fits";
  tell(said);
  return failure();
}

void baechi::addPlanPasses(OpPassManager &manager,
                           std::vector<ArenaReport> *arenas,
                           ArrayRef<std::string> copiedFrom) {
  populatePlanning(manager, arenas, copiedFrom, /*onlyFits=*/false);
}
