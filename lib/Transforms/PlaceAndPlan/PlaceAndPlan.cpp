//===- PlaceAndPlan.cpp - The pass that places and plans memory -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Dialect/SimulatedNetwork.h"
#include "Baechi/Transforms/PlanWatch.h"
#include "StepFitting.h"
#include "StepPlanner.h"
#include "Transforms/PlacerOption.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace baechi {
#define GEN_PASS_DEF_PLACEANDPLAN
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct PlaceAndPlan : public baechi::impl::PlaceAndPlanBase<PlaceAndPlan> {
  using PlaceAndPlanBase::PlaceAndPlanBase;
  PlaceAndPlan(const PlaceAndPlanOptions &options, PlaceAndPlanReport *report,
               PlanWatch watch)
      : PlaceAndPlanBase(options), report(report), watch(std::move(watch)) {}

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
    if (std::string mistake = wrongObjective(objective, &*machine);
        !mistake.empty()) {
      emitError(getOperation().getLoc()) << mistake;
      return signalPassFailure();
    }
    if (fitMemory != "auto" && fitMemory != "whole" && fitMemory != "never") {
      emitError(getOperation().getLoc()) << "unknown fit-memory '" << fitMemory
                                         << "'; known: auto, whole, never";
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
    StepPlanner planner(
        getOperation(), *machine, placeOptions(),
        [&](OpPassManager &passes) {
          return runPipeline(passes, getOperation());
        },
        watch);
    StepFitting fitting(planner, found);
    LogicalResult planned = planner.placeFitting(*untouched, said, found);
    if (failed(planned) && fitMemory != "never" && !planner.isStopped())
      planned = fitting.fit(untouched, said);
    planner.tell(said);
    if (failed(planned)) {
      if (watch.leftOut)
        *watch.leftOut = planner.hasLeftOut();
      return signalPassFailure();
    }
    if (!asked && !fitting.isSpilled())
      found.givenUp = giveUp(planner, *untouched, found);
    if (report)
      *report = std::move(found);
  }

private:
  PlaceOptions placeOptions() const {
    PlaceOptions options;
    options.placer = placer;
    options.budget = budget;
    options.grouping = grouping;
    options.expert = expert;
    options.objective = objective;
    return options;
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
  /// takes the time of the device that does it, and with operators one after
  /// the other, while a GPU runs several at once (StepSimulation.h).
  std::optional<GivenUp> giveUp(StepPlanner &planner, ModuleOp untouched,
                                PlaceAndPlanReport &found) {
    const placement::Machine &machine = planner.machine;
    ModuleOp module = getOperation();
    PlacementCertificateAttr certificate = findCertificate(module);
    // 0: the whole does not fit one device.
    if (!certificate || certificate.getSingleDevice() == 0)
      return std::nullopt;
    std::vector<Diagnostic> said;
    FailureOr<StepProgram> step =
        planner.quietly(said, [&] { return readStepProgram(module, machine); });
    if (failed(step))
      return std::nullopt;
    auto costs = machine.runtime.value_or(placement::RuntimeCosts());
    std::optional<int64_t> stepNs = planner.predictedNs(*step);
    // What runs at once on a GPU shows where it is planned alone.
    bool anyGpu = !step->ofGpus.empty();
    int64_t aloneNs =
        anyGpu ? leastOnOneGpuNs(*step) : singleDeviceNs(*step, costs);
    if (!stepNs || *stepNs < aloneNs || numComputing(*step) < 2)
      return std::nullopt;
    GivenUp worse{certificate.getWinner().str(), *stepNs};
    OwningOpRef<ModuleOp> placed = module.clone();
    planner.replaceBody(untouched);
    PlaceAndPlanReport alone;
    LogicalResult fits = planner.quietly(said, [&] {
      return planner.placeUntilItFits("single", untouched, alone);
    });
    if (succeeded(fits) && anyGpu)
      aloneNs = planner.predictedNs();
    if (failed(fits) || aloneNs > *stepNs) {
      planner.replaceBody(*placed);
      return std::nullopt;
    }
    found.placeSeconds += alone.placeSeconds;
    remarkGivenUp(worse, aloneNs);
    return worse;
  }

  void remarkGivenUp(const GivenUp &worse, int64_t aloneNs) {
    if (auto remark = remark::missed(getOperation().getLoc(),
                                     remark::RemarkOpts::name("given-up")
                                         .category("baechi-place-and-plan")))
      remark << remark::metric("Winner", worse.winner)
             << remark::metric("StepNs", worse.stepNs)
             << remark::metric("SingleDeviceNs", aloneNs);
  }

  PlaceAndPlanReport *report = nullptr;
  PlanWatch watch;
};
} // namespace

std::unique_ptr<Pass>
baechi::createPlaceAndPlan(const PlaceAndPlanOptions &options,
                           PlaceAndPlanReport *report, PlanWatch watch) {
  return std::make_unique<PlaceAndPlan>(options, report, std::move(watch));
}
