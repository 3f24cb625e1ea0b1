//===- PlaceAndPlan.cpp - Place until the memory plan fits -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Transforms/Passes.h"
#include "FitRemarks.h"
#include "MemoryFitter.h"
#include "PlacerLimits.h"
#include "PlacerOption.h"
#include "PoolRefusal.h"
#include "SpillFitter.h"
#include "TakenOver.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

namespace baechi {
#define GEN_PASS_DEF_PLACEANDPLAN
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

static bool usesSeveral(const SimulatedStep &step) {
  return llvm::count_if(step.operators, [](const auto &operators) {
           return !operators.empty();
         }) > 1;
}

namespace {
constexpr int mostAttempts = 8;
/// So often only the devices that exceeded their limits get lower ones. Then
/// all do: what one device no longer takes moved to the next, in a circle.
constexpr int attemptsApart = 3;

struct PlaceAndPlan : public baechi::impl::PlaceAndPlanBase<PlaceAndPlan> {
  using PlaceAndPlanBase::PlaceAndPlanBase;
  PlaceAndPlan(const PlaceAndPlanOptions &options, PlaceAndPlanReport *report,
               std::function<bool()> stopped)
      : PlaceAndPlanBase(options), report(report), stopped(std::move(stopped)) {
  }

private:
  /// Runs \p what and keeps what it says.
  template <typename Function>
  auto quietly(std::vector<Diagnostic> &said, Function what) {
    ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
      said.push_back(std::move(diagnostic));
      return success();
    });
    return what();
  }

public:
  LogicalResult
  initializeOptions(StringRef options,
                    function_ref<LogicalResult(const Twine &)> error) override {
    return readPlacerOptions(
        options, placer,
        [&](StringRef keyed) { return Pass::initializeOptions(keyed, error); },
        error);
  }

  void runOnOperation() override {
    std::optional<placement::Machine> machine =
        machineOf(getOperation(), this->machine);
    if (!machine)
      return signalPassFailure();
    if (transfers != "lend" && transfers != "copy" && transfers != "network") {
      emitError(getOperation().getLoc()) << "unknown transfers '" << transfers
                                         << "'; known: lend, copy, network";
      return signalPassFailure();
    }
    if (fitMemory != "auto" && fitMemory != "never") {
      emitError(getOperation().getLoc())
          << "unknown fit-memory '" << fitMemory << "'; known: auto, never";
      return signalPassFailure();
    }
    for (std::optional<placement::Link> &link : machine->links)
      if (link)
        link->lends &= transfers == "lend";
    if (transfers == "network")
      getOperation()->setAttr(kSimulatedNetwork, UnitAttr::get(&getContext()));
    OwningOpRef<ModuleOp> untouched = getOperation().clone();
    // A placement that a person asks for stays.
    placement::Budget effort;
    bool asked = placer == "single" || hasPins() ||
                 !placement::parseBudget(budget, effort).empty() ||
                 effort.kind == placement::Budget::Kind::None;
    PlaceAndPlanReport found;
    std::vector<Diagnostic> said;
    LogicalResult planned = quietly(said, [&] {
      return placeUntilItFits(*machine, placer, *untouched, found);
    });
    if (failed(planned) && fitMemory != "never" && !(stopped && stopped()))
      planned = fit(*machine, untouched, said, found);
    tell(said);
    if (failed(planned))
      return signalPassFailure();
    if (!asked && !isSpilled)
      found.givenUp = giveUp(*machine, *untouched, found);
    if (report)
      *report = std::move(found);
  }

private:
  LogicalResult placeUntilItFits(const placement::Machine &machine,
                                 StringRef placer, ModuleOp untouched,
                                 PlaceAndPlanReport &found) {
    ModuleOp module = getOperation();
    MachineAttr truth = toAttr(&getContext(), machine);
    PlacerLimits limits(machine);
    std::vector<Diagnostic> firstRefusal, impossible;
    while (true) {
      ++found.attempts;
      // What waits in a pool is not for a placer to say, but for a person or
      // for what makes a step fit.
      module->setAttr(BaechiDialect::kMachine,
                      toAttr(&getContext(),
                             hasPinsTo(machine)
                                 ? limits.machine()
                                 : placement::withoutPools(limits.machine())));
      std::vector<Diagnostic> said;
      LogicalResult placed = place(placer, said, found);
      module->setAttr(BaechiDialect::kMachine, truth);
      // What is wrong with the program itself, the first placement says.
      if (failed(placed) && found.attempts == 1) {
        // Results in their operands' places need no room, which no placer
        // knows. With as much more, one that finds nothing has a proof.
        if (!limits.allowBeyond(takenOver(module)))
          return stop(said, found);
        impossible = std::move(said);
        replaceBody(untouched);
        continue;
      }
      if (failed(placed) && found.attempts == 2 && !impossible.empty()) {
        found.attempts = 1;
        noteTakenOver(impossible, takenOver(module));
        return stop(impossible, found);
      }
      bool again;
      if (failed(placed)) {
        again = limits.raise();
      } else {
        std::vector<Diagnostic> refusal;
        std::vector<ArenaReport> arenas;
        if (succeeded(plan(machine, refusal, arenas))) {
          tell(said);
          tell(refusal); // remarks
          return success();
        }
        if (firstRefusal.empty())
          firstRefusal = std::move(refusal);
        again = limits.lower(arenas, found.attempts >= attemptsApart);
        remarkPlacedAgain(module.getLoc(), arenas, limits.machine());
      }
      if (!again || found.attempts == mostAttempts)
        return stop(firstRefusal, found);
      replaceBody(untouched);
    }
  }

  int64_t takenOver(ModuleOp module) {
    std::vector<Diagnostic> ignored;
    auto step = quietly(ignored, [&] { return findStep(module); });
    return failed(step) ? 0 : bytesTakenOver(*step);
  }

  /// A placer counts results that take the places of operands beside them: what
  /// it says of bytes is no proof by itself.
  void noteTakenOver(std::vector<Diagnostic> &said, int64_t bytes) {
    Diagnostic *error = findError(said);
    if (error)
      error->attachNote(getOperation().getLoc())
          << "bytes are counted as if no result took its operand's place; with "
          << placement::bytesText(bytes, 2)
          << " more on each device, as much as one operator's results can take "
             "over, there is no placement either";
  }

  /// The rewrite of \p untouched with the shortest step that has a plan which
  /// fits, in whose place it comes; else \p said, why there is no plan, says
  /// what would help.
  LogicalResult fit(const placement::Machine &machine,
                    OwningOpRef<ModuleOp> &untouched,
                    std::vector<Diagnostic> &said, PlaceAndPlanReport &found) {
    OwningOpRef<ModuleOp> original = untouched->clone();
    std::optional<int64_t> stepNs;
    if (succeeded(recompute(machine, untouched, said, found)))
      stepNs = predictedNs(machine);
    // A later pool is a slower one.
    for (int32_t pool : placement::poolsOf(machine))
      if (!isSpilled)
        waitInPool(machine, pool, *original, stepNs, said, found);
    if (!stepNs)
      return failure();
    if (found.memoryFit)
      remarkFit(getOperation().getLoc(), *found.memoryFit);
    return success();
  }

  /// What the planned module is predicted to take.
  int64_t predictedNs(const placement::Machine &machine) {
    std::vector<Diagnostic> ignored;
    FailureOr<StepProgram> step = quietly(
        ignored, [&] { return readStepProgram(getOperation(), machine); });
    std::optional<SimulatedStep> simulated;
    if (succeeded(step))
      simulated = simulateStep(
          *step, machine.runtime.value_or(placement::RuntimeCosts()));
    return simulated ? simulated->makespanNs
                     : std::numeric_limits<int64_t>::max();
  }

  /// Lets tensors of \p original wait in the pool, where that takes less than
  /// \p stepNs, which it then is.
  void waitInPool(const placement::Machine &machine, int32_t pool,
                  ModuleOp original, std::optional<int64_t> &stepNs,
                  std::vector<Diagnostic> &said, PlaceAndPlanReport &found) {
    std::vector<Diagnostic> ignored;
    std::optional<SpillFitter> fitter = quietly(
        ignored, [&] { return SpillFitter::create(original, machine, pool); });
    // Then something else is wrong.
    if (!fitter ||
        (fitter->peakBytes() <= fitter->deviceBytes() && found.attempts == 1))
      return;
    UnfitPlans unfit;
    if (succeeded(spill(machine, *fitter, stepNs, unfit, said, found)))
      stepNs = predictedNs(machine);
    if (placement::numComputing(machine) > 1)
      spread(machine, *fitter, stepNs, said, found);
    if (!stepNs)
      refuseWithPool(*fitter, unfit, said);
  }

  /// All is computed on one device.
  LogicalResult spill(const placement::Machine &machine,
                      const SpillFitter &fitter,
                      std::optional<int64_t> otherwiseNs, UnfitPlans &unfit,
                      std::vector<Diagnostic> &said,
                      PlaceAndPlanReport &found) {
    OwningOpRef<ModuleOp> before = getOperation().clone();
    MachineAttr truth = toAttr(&getContext(), machine);
    std::vector<Diagnostic> spillSaid;
    for (const placement::SpillPlan &proposal :
         fitter.proposals(fitter.deviceBytes())) {
      if ((stopped && stopped()) ||
          (otherwiseNs && proposal.makespanNs >= *otherwiseNs))
        break;
      spillSaid.clear();
      OwningOpRef<ModuleOp> placed =
          quietly(spillSaid, [&] { return fitter.place(proposal); });
      if (!placed)
        continue;
      replaceBody(*placed);
      getOperation()->setAttr(BaechiDialect::kMachine, truth);
      std::vector<ArenaReport> arenas;
      ++found.attempts;
      if (succeeded(plan(machine, spillSaid, arenas))) {
        // By the runtime's rules, which the proposal does not know.
        if (otherwiseNs && predictedNs(machine) >= *otherwiseNs)
          break;
        useSpill(fitter, proposal, spillSaid, said, found);
        return success();
      }
      unfit.add(arenas, fitter);
    }
    replaceBody(*before);
    return failure();
  }

  void useSpill(const SpillFitter &fitter, const placement::SpillPlan &proposal,
                std::vector<Diagnostic> &spillSaid,
                std::vector<Diagnostic> &said, PlaceAndPlanReport &found) {
    fitter.remark(proposal);
    found.memoryFit.reset();
    isSpilled = true;
    said = std::move(spillSaid);
  }

  /// The placer says which device computes what; the rewrites are those of one
  /// device with the memory of all. The first that has a plan is taken where
  /// its step is shorter than \p stepNs, which it then is.
  void spread(const placement::Machine &machine, const SpillFitter &fitter,
              std::optional<int64_t> &stepNs, std::vector<Diagnostic> &said,
              PlaceAndPlanReport &found) {
    OwningOpRef<ModuleOp> before = getOperation().clone();
    std::vector<placement::SpillPlan> proposals =
        fitter.proposals(fitter.computingBytes());
    OwningOpRef<ModuleOp> rewritten;
    std::optional<size_t> first =
        firstThatFits(machine, proposals.size(), [&](size_t k) {
          rewritten = fitter.rewrite(proposals[k]);
          return fits(machine, *rewritten);
        });
    PlaceAndPlanReport tried;
    std::vector<Diagnostic> spillSaid;
    if (first) {
      placement::SpillPlan &proposal = proposals[*first];
      rewritten = fitter.rewrite(proposal);
      if (succeeded(placeFitting(machine, *rewritten, spillSaid, tried))) {
        int64_t ns = predictedNs(machine);
        if (!stepNs || ns < *stepNs) {
          stepNs = proposal.makespanNs = ns;
          tried.attempts += found.attempts;
          found = std::move(tried);
          return useSpill(fitter, proposal, spillSaid, said, found);
        }
      }
    }
    replaceBody(*before);
  }

  /// The first of \p count rewrites, ever leaner ones, for which \p fits holds.
  /// On one device all before it are looked at. On several, where each takes a
  /// search, it is sought as if all fitted that come after one which does, and
  /// among the others only where that finds none.
  std::optional<size_t> firstThatFits(const placement::Machine &machine,
                                      size_t count,
                                      function_ref<bool(size_t)> fits) {
    std::optional<size_t> found;
    SmallVector<bool> seen(count, false);
    auto isOver = [&] { return stopped && stopped(); };
    size_t from = 0, to = placement::numComputing(machine) > 1 ? count : 0;
    while (from < to && !isOver()) {
      size_t middle = (from + to) / 2;
      seen[middle] = true;
      if (fits(middle)) {
        found = to = middle;
      } else {
        from = middle + 1;
      }
    }
    for (size_t k = 0; k < count && !found && !isOver(); ++k)
      if (!seen[k] && fits(k))
        found = k;
    return found;
  }

  /// Whether the placer alone finds a plan of \p rewritten that fits.
  bool fits(const placement::Machine &machine, ModuleOp rewritten) {
    std::vector<Diagnostic> ignored;
    PlaceAndPlanReport tried;
    return succeeded(
        placeRewritten(machine, rewritten, /*effort=*/"0", ignored, tried));
  }

  /// Places a rewrite that fits by the whole budget, or, where a search leads
  /// to no plan, by the placer alone.
  LogicalResult placeFitting(const placement::Machine &machine,
                             ModuleOp rewritten, std::vector<Diagnostic> &said,
                             PlaceAndPlanReport &tried) {
    if (succeeded(placeRewritten(machine, rewritten, budget, said, tried)))
      return success();
    return placeRewritten(machine, rewritten, /*effort=*/"0", said, tried);
  }

  LogicalResult placeRewritten(const placement::Machine &machine,
                               ModuleOp rewritten, std::string effort,
                               std::vector<Diagnostic> &said,
                               PlaceAndPlanReport &tried) {
    std::string wanted = std::exchange(budget.getValue(), std::move(effort));
    replaceBody(rewritten);
    said.clear();
    LogicalResult planned = quietly(said, [&] {
      return placeUntilItFits(machine, placer, rewritten, tried);
    });
    budget = wanted;
    return planned;
  }

  /// The mildest rewrite in which values are computed again.
  LogicalResult recompute(const placement::Machine &machine,
                          OwningOpRef<ModuleOp> &untouched,
                          std::vector<Diagnostic> &said,
                          PlaceAndPlanReport &found) {
    std::vector<Diagnostic> ignored;
    FailureOr<MemoryFitter> fitter = quietly(
        ignored, [&] { return MemoryFitter::create(*untouched, machine); });
    if (failed(fitter))
      return failure();
    int64_t all = 0, smallest = std::numeric_limits<int64_t>::max();
    placement::Machine computing = placement::withoutPools(machine);
    for (const placement::Device &device : computing.devices) {
      all += device.memory;
      smallest = std::min(smallest, device.memory);
    }
    // Then something else is wrong.
    if (fitter->peakBytes() <= smallest)
      return failure();
    std::vector<FitProposal> proposals = fitter->proposals(all);
    OwningOpRef<ModuleOp> rewritten;
    std::optional<size_t> first =
        firstThatFits(machine, proposals.size(), [&](size_t k) {
          rewritten = fitter->rewrite(proposals[k]);
          return fits(machine, *rewritten);
        });
    if (stopped && stopped())
      return failure();
    PlaceAndPlanReport tried;
    if (first)
      rewritten = fitter->rewrite(proposals[*first]);
    if (first && succeeded(placeFitting(machine, *rewritten, ignored, tried))) {
      tried.attempts += found.attempts;
      found = std::move(tried);
      found.memoryFit = fitter->describe(proposals[*first]);
      untouched = std::move(rewritten);
      said = std::move(ignored);
      return success();
    }
    Diagnostic *error = findError(said);
    if (!error)
      return failure();
    *error << "\n"
           << "computing values again does not help: '"
           << fitter->floorOperator() << "' by itself needs "
           << placement::bytesText(fitter->floor().bytes, 2) << ", of them "
           << placement::bytesText(fitter->residentBytes(), 2)
           << " of arguments";
    *error << (fitter->floor().bytes > all
                   ? "; cut into pieces (--split) it would need less"
                   : "; with more than that, too, no rewrite that was tried "
                     "has a plan that fits");
    return failure();
  }

  void replaceBody(ModuleOp by) {
    OwningOpRef<ModuleOp> fresh = by.clone();
    getOperation().getBodyRegion().takeBody(fresh->getBodyRegion());
  }

  /// A person says what is on a pool of \p machine.
  bool hasPinsTo(const placement::Machine &machine) {
    auto isPool = [&](Attribute pin) {
      return llvm::any_of(machine.devices, [&](const auto &device) {
        return placement::isPool(device) &&
               pin == StringAttr::get(&getContext(), device.name);
      });
    };
    return getOperation()
        .walk([&](Operation *op) {
          auto function = dyn_cast<FunctionOpInterface>(op);
          bool pinned = isPool(op->getAttr(BaechiDialect::kPin));
          for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
            pinned |= isPool(function.getArgAttr(i, BaechiDialect::kPin));
          return pinned ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  bool hasPins() {
    return getOperation()
        .walk([](Operation *op) {
          auto function = dyn_cast<FunctionOpInterface>(op);
          bool pinned = op->hasAttr(BaechiDialect::kPin);
          for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
            pinned |= bool(function.getArgAttr(i, BaechiDialect::kPin));
          return pinned ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Places on one device where that is as fast as what was placed: placers
  /// count with transfers that overlap computing, while on host devices a copy
  /// takes the time of the device that does it (StepSimulation.h).
  std::optional<GivenUp> giveUp(const placement::Machine &machine,
                                ModuleOp untouched, PlaceAndPlanReport &found) {
    ModuleOp module = getOperation();
    PlacementCertificateAttr certificate = findCertificate(module);
    // GPUs copy beside their computing. 0: the whole does not fit one device.
    bool anyGpu = llvm::any_of(
        machine.devices, [](auto &device) { return device.kind == "cuda"; });
    if (anyGpu || !certificate || certificate.getSingleDevice() == 0)
      return std::nullopt;
    std::vector<Diagnostic> said;
    FailureOr<StepProgram> step =
        quietly(said, [&] { return readStepProgram(module, machine); });
    if (failed(step))
      return std::nullopt;
    auto costs = machine.runtime.value_or(placement::RuntimeCosts());
    std::optional<SimulatedStep> simulated = simulateStep(*step, costs);
    int64_t aloneNs = singleDeviceNs(*step, costs);
    if (!simulated || simulated->makespanNs < aloneNs ||
        !usesSeveral(*simulated))
      return std::nullopt;
    GivenUp worse{certificate.getWinner().str(), simulated->makespanNs};
    OwningOpRef<ModuleOp> placed = module.clone();
    replaceBody(untouched);
    PlaceAndPlanReport alone;
    LogicalResult fits = quietly(said, [&] {
      return placeUntilItFits(machine, "single", untouched, alone);
    });
    if (failed(fits)) {
      replaceBody(*placed);
      return std::nullopt;
    }
    found.placeSeconds += alone.placeSeconds;
    remarkGivenUp(worse, aloneNs);
    return worse;
  }

  /// Runs \p pipeline and keeps what it says.
  LogicalResult runQuietly(OpPassManager &pipeline,
                           std::vector<Diagnostic> &said) {
    return quietly(said, [&] { return runPipeline(pipeline, getOperation()); });
  }

  LogicalResult place(StringRef placer, std::vector<Diagnostic> &said,
                      PlaceAndPlanReport &found) {
    PlaceOptions options;
    options.placer = placer.str();
    options.budget = budget;
    options.grouping = grouping;
    options.expert = expert;
    OpPassManager pipeline(ModuleOp::getOperationName());
    pipeline.addPass(createPlace(options, stopped));
    auto start = std::chrono::steady_clock::now();
    LogicalResult placed = runQuietly(pipeline, said);
    found.placeSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return placed;
  }

  /// A tensor that is lent stays until its last use elsewhere. Where a device
  /// has no room for that, it lends nothing; where that does not help, nobody
  /// does, and it is the plan that the placer counted with.
  LogicalResult plan(const placement::Machine &machine,
                     std::vector<Diagnostic> &said,
                     std::vector<ArenaReport> &arenas) {
    bool lends = llvm::any_of(machine.links,
                              [](auto &link) { return link && link->lends; });
    OwningOpRef<ModuleOp> placed = lends ? getOperation().clone() : nullptr;
    std::vector<std::string> copiedFrom;
    while (true) {
      said.clear();
      arenas.clear();
      OpPassManager pipeline(ModuleOp::getOperationName());
      addPlanPasses(pipeline, &arenas, copiedFrom);
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

  void remarkCopies(ArrayRef<std::string> copiedFrom) {
    if (auto remark = remark::missed(getOperation().getLoc(),
                                     remark::RemarkOpts::name("lends-nothing")
                                         .category("baechi-place-and-plan")))
      remark << remark::metric("Devices", llvm::join(copiedFrom, ", "));
  }

  void tell(std::vector<Diagnostic> &said) {
    for (Diagnostic &diagnostic : said)
      getContext().getDiagEngine().emit(std::move(diagnostic));
  }

  void remarkGivenUp(const GivenUp &worse, int64_t aloneNs) {
    if (auto remark = remark::missed(getOperation().getLoc(),
                                     remark::RemarkOpts::name("given-up")
                                         .category("baechi-place-and-plan")))
      remark << remark::metric("Winner", worse.winner)
             << remark::metric("StepNs", worse.stepNs)
             << remark::metric("SingleDeviceNs", aloneNs);
  }

  LogicalResult stop(std::vector<Diagnostic> &said,
                     const PlaceAndPlanReport &found) {
    // Of the true limits, not of the lowered ones.
    Diagnostic *error = findError(said);
    if (found.attempts > 1 && error)
      error->attachNote(getOperation().getLoc())
          << "placed " << found.attempts
          << " times with lower limits, none of the plans fits";
    tell(said);
    return failure();
  }

  PlaceAndPlanReport *report = nullptr;
  std::function<bool()> stopped;
  bool isSpilled = false; ///< tensors wait in a pool
};
} // namespace

void baechi::addPlanPasses(OpPassManager &manager,
                           std::vector<ArenaReport> *arenas,
                           ArrayRef<std::string> copiedFrom) {
  PartitionOptions partition;
  llvm::append_range(partition.copiedFrom, copiedFrom);
  manager.addPass(createVerifyPlaced());
  manager.addPass(createPartition(partition));
  manager.addPass(createVerifyPartitioned());
  manager.addPass(createPlanMemory(arenas));
  // Planning moves waits: freedom from deadlock is proven again.
  manager.addPass(createVerifyPartitioned());
}

std::unique_ptr<Pass>
baechi::createPlaceAndPlan(const PlaceAndPlanOptions &options,
                           PlaceAndPlanReport *report,
                           std::function<bool()> stopped) {
  return std::make_unique<PlaceAndPlan>(options, report, std::move(stopped));
}
