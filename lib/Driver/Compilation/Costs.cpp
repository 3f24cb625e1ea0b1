//===- Costs.cpp - What a model's kernels cost ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Costs/Measure/KernelChoices.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/HostTimes.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Load.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace baechi;

llvm::Error Compilation::measureMachine(bool always) {
  // A short form's links are only assumed.
  bool assumed = StringRef(asked.machine).starts_with("host:") &&
                 asked.costs == "measured";
  if (!assumed && !(always && !target.runtime))
    return llvm::Error::success();
  int64_t cores = runtime::queryHost().cores;
  bool isAnew = always || llvm::cantFail(measureBudgetOf(asked)).all;
  if (const HostTimes *times = kept.findHost(cores);
      times && !isAnew && kept.target == HostJit::hostTarget() &&
      setHostTimes(target, *times))
    return llvm::Error::success();
  Phase phase(listener, "measuring the machine");
  runtime::LoadWatch load;
  llvm::Expected<bool> settled = target.devices.size() > 1
                                     ? measureLinks(target, listener)
                                     : measureRuntime(target, listener);
  if (!settled)
    return settled.takeError();
  // What is kept is taken for good: others' work may slow all of it down alike.
  if (!*settled || asked.otherProcesses ||
      load.isDisturbed(placement::numComputing(target)))
    return llvm::Error::success();
  if (std::optional<HostTimes> times = hostTimesOf(target)) {
    // What was found out about links stays, where there are none now.
    if (const HostTimes *known = kept.findHost(cores); known && !times->link)
      times->link = known->link;
    kept.setHost(*times);
    machineMeasured = true;
  }
  return llvm::Error::success();
}

namespace {
/// Without a budget that was asked for, kernels are measured alone for as long
/// as a step on one device takes, and within steps in one or more after one
/// that warms it: about five steps of two devices. Fast ones get so many
/// seconds each.
constexpr double kSecondsEach = 1.5, kStepsAlone = 1;
/// Small models less: their plans have few choices, and whoever compiles one
/// waits for little else. Seconds an operator, at least those of some.
constexpr double kSecondsPerOperator = 2e-3, kFewestSeconds = 0.02;
/// Which code is best for the cheapest kernels of a step is no matter.
constexpr double kLeastShare = 0.02;

/// What kernels of fast steps of so many operators get alone.
double floorSeconds(size_t operators, StringRef kind) {
  // On GPUs it is libraries that are searched.
  if (kind != "host")
    return kSecondsEach;
  return std::clamp(kSecondsPerOperator * double(operators), kFewestSeconds,
                    kSecondsEach);
}

RoundOptions roundsOf(const MeasureBudget &budget, double floor) {
  RoundOptions rounds;
  if (budget.all)
    return rounds;
  rounds.floorSeconds = budget.seconds ? *budget.seconds / 2 : floor;
  rounds.steps = budget.seconds ? 0 : kStepsAlone;
  if (!budget.seconds)
    // So that more than a few get some of it.
    rounds.secondsEach *= floor / kSecondsEach;
  return rounds;
}

StepSampling samplingOf(const MeasureBudget &budget, double floor,
                        StringRef kind) {
  StepSampling sampling;
  // What GPUs compute is no time of this process.
  if (kind == "host")
    sampling.clocks = Clocks::ofThisProcess();
  if (budget.all)
    return sampling;
  sampling.seconds = budget.seconds ? *budget.seconds / 2 : kSecondsEach;
  sampling.fewest = 1;
  if (!budget.seconds)
    sampling.enoughSeconds = floor / 2;
  return sampling;
}
} // namespace

llvm::Error Compilation::measureKernels(Profile &profile,
                                        const KernelCosts &costs,
                                        bool choicesOnly) {
  Phase phase(listener, costs.phase());
  MeasureOptions options;
  MeasureBudget budget = llvm::cantFail(measureBudgetOf(asked));
  options.rounds = roundsOf(
      budget, floorSeconds(hostCompiler->operatorsFormed(), costs.kind()));
  options.choicesOnly = choicesOnly && !budget.all;
  // So that the bits of one process are those of the next.
  options.keepsCode = budget.later;
  if (options.choicesOnly)
    options.rounds.leastShare = kLeastShare;
  // Who annotates costs says which kernels have none.
  options.warnOfUnmeasured = false;
  options.lowered = lowered.get();
  options.workers = compileThreads;
  // All other kernels are needed whatever the choice; there is a processor for
  // them while one core times.
  if (options.choicesOnly && costs.kind() == "host")
    options.meanwhile = [this] { return hostCompiler->beginKernels(); };
  if (!asked.sanitizeCode)
    options.store = asked.store;
  options.stopped = [this] { return listener.isStopped(); };
  FailureOr<size_t> rows =
      costs.measure(module(), profile, options,
                    [&](size_t done, size_t total) { phase(done, total); });
  if (failed(rows))
    return diagnosed();
  kernelCostCounts.rowsMeasured += *rows;
  return llvm::Error::success();
}

void Compilation::readKeptProfile() {
  if (asked.profile.empty() || !llvm::sys::fs::exists(asked.profile))
    return;
  llvm::Expected<Profile> read = readProfile(asked.profile);
  if (!read) {
    keptError = llvm::toString(read.takeError());
    return;
  }
  kept = std::move(*read);
  noteScratch(kept, *lowered);
}

llvm::Error Compilation::findCosts(SetArguments setArguments) {
  if (!keptError.empty())
    return llvm::createStringError(keptError);
  addAsWritten(firstChoice);
  addOtherCuts();
  addMicroBatches();
  Profile profile = std::move(kept);
  auto start = std::chrono::steady_clock::now();
  for (const std::unique_ptr<HostCompiler> &compiler : compilers) {
    use(*compiler);
    if (llvm::Error error = findCosts(profile, setArguments))
      return error;
  }
  bool newPeaks = false;
  if (asked.costs == "measured" && !profile.peaks && asked.measuresPeaks &&
      hasDeviceOf("host")) {
    profile.peaks = measureHostPeaks();
    newPeaks = bool(profile.peaks);
  }
  profileSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!asked.profile.empty() && !profile.rows.empty() &&
      (kernelCostCounts.rowsMeasured || stepsMeasured || newPeaks ||
       machineMeasured || !llvm::sys::fs::exists(asked.profile)))
    if (llvm::Error error = addToProfile(asked.profile, profile))
      // The run has what it needs of it.
      listener.warn("what was measured is not kept: " +
                    llvm::toString(std::move(error)));
  kept = std::move(profile);
  return llvm::Error::success();
}

llvm::Error Compilation::findCosts(Profile &profile,
                                   SetArguments setArguments) {
  SmallVector<const KernelCosts *> measured;
  for (const KernelCosts *costs : kernelCosts()) {
    if (asked.costs != "measured" || !hasDeviceOf(costs->kind()))
      continue;
    if (llvm::Error error = costs->adopt(module(), profile))
      listener.note(
          "kernels of GPUs are not measured: " +
          llvm::toString(std::move(error)) + "; their costs are " +
          (profile.cudaTarget.empty() ? "the roofline's" : "the profile's"));
    else
      measured.push_back(costs);
  }
  if (measured.empty() && profile.rows.empty()) {
    asked.costs = "roofline";
    return failed(hostCompiler->annotate(nullptr)) ? diagnosed()
                                                   : llvm::Error::success();
  }
  llvm::Expected<bool> given = takeGivenTimes(profile);
  if (!given)
    return given.takeError();
  if (*given) {
    stepsMeasured = true;
    measured.clear();
  }
  KernelChoices choices = choicesOf();
  // Times of steps are of the code that these ran.
  if (*given)
    choices = KernelChoices(ModuleOp());
  takeKeptChoice(choices, profile);
  for (const KernelCosts *costs : measured)
    // Steps tell the times of all kernels; which code is best, they do not.
    if (llvm::Error error = measureKernels(profile, *costs,
                                           /*choicesOnly=*/canRunSteps()))
      return error;
  {
    // Selects the implementations. What lacks costs is told in the end.
    ScopedDiagnosticHandler noWarnings(
        source->context(), [](Diagnostic &diagnostic) {
          return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
        });
    if (failed(hostCompiler->annotate(&profile)) ||
        failed(settleChoice(choices, profile)))
      return diagnosed();
  }
  for (const KernelCosts *costs : measured)
    if (lacksStepCosts(module(), costs->kind(), profile)) {
      llvm::Expected<bool> ran =
          refineCosts(costs->kind(), profile, setArguments);
      if (!ran)
        return ran.takeError();
      stepsMeasured |= *ran;
      // Without the memory for it, what is measured alone has to do.
      if (!*ran)
        if (llvm::Error error =
                measureKernels(profile, *costs, /*choicesOnly=*/false))
          return error;
    }
  countCosts(profile);
  return failed(hostCompiler->annotate(&profile)) ? diagnosed()
                                                  : llvm::Error::success();
}

KernelChoices Compilation::choicesOf() {
  KernelChoices choices(module());
  if (choiceName.empty())
    choiceName = choices.program().str();
  return choices;
}

void Compilation::takeKeptChoice(KernelChoices &choices,
                                 const Profile &profile) {
  // Who asks for all measurements chooses again by them.
  if (llvm::cantFail(measureBudgetOf(asked)).all)
    return;
  const ProgramChoice *known = profile.findChoice(choices.program());
  if (known && choices.canHave(*known))
    choices.apply(*known, profile);
}

LogicalResult Compilation::settleChoice(KernelChoices &choices,
                                        Profile &profile) {
  if (choices.empty() || !hasDeviceOf("host"))
    return success();
  ProgramChoice chosen = choices.chosen();
  std::optional<ProgramChoice> known;
  if (const ProgramChoice *found = profile.findChoice(chosen.program))
    known = *found;
  if (known == chosen)
    return success();
  // A file may name what this version lacks, or never had.
  bool isAnew = known && (llvm::cantFail(measureBudgetOf(asked)).all ||
                          !choices.canHave(*known));
  const ProgramChoice *replaced = isAnew ? &*known : nullptr;
  if (!asked.profile.empty()) {
    llvm::Expected<ProgramChoice> settled =
        keepChoice(asked.profile, profile, chosen, replaced);
    if (settled)
      chosen = *settled;
    else
      listener.warn("which code computes products is not kept, so the next "
                    "compilation may choose other code: " +
                    llvm::toString(settled.takeError()));
  }
  // Another process may have replaced what was read.
  llvm::erase_if(profile.choices, [&](const ProgramChoice &choice) {
    return choice.program == chosen.program;
  });
  profile.choices.push_back(chosen);
  if (chosen == choices.chosen())
    return success();
  choices.apply(chosen, profile);
  return hostCompiler->annotate(&profile);
}

bool Compilation::canRunSteps() {
  return llvm::none_of(module().getOps<func::FuncOp>(), isHostCall);
}

void Compilation::countCosts(const Profile &profile) {
  llvm::StringMap<bool> measured; // by hashes of kernels
  for (auto kernel : module().getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) && !isHostCall(kernel))
      measured.try_emplace(kernelHash(kernel), false);
  KernelCostCounts &counts = kernelCostCounts;
  counts.measured = counts.estimated = counts.disturbed = 0;
  for (const ProfileRow &row : profile.rows)
    if (auto found = measured.find(row.hash); found != measured.end()) {
      found->second |= hasDeviceOf(row.kind);
      counts.disturbed += row.disturbed || row.stepDisturbed;
    }
  for (const auto &kernel : measured)
    ++(kernel.second ? counts.measured : counts.estimated);
  if (counts.disturbed > 0)
    listener.note("other work kept the processors from " +
                  llvm::Twine(counts.disturbed) +
                  " measurements of kernels, also when they were repeated: the "
                  "plan may be worse for it; the next compilation measures "
                  "them again, and --measure=all also chooses code anew");
}

llvm::Expected<bool> Compilation::refineCosts(StringRef kind, Profile &profile,
                                              SetArguments setArguments) {
  // What is wrong with them is told; that they do not fit one device is not.
  if (kind == "host" && failed(hostCompiler->compileKernels()))
    return diagnosed();
  endPhases();
  Phase phase(listener, "measuring steps");
  llvm::Expected<std::unique_ptr<Execution>> alone = createSingle(kind);
  if (!alone)
    return alone.takeError();
  if (!*alone)
    return false;
  if (llvm::Error error = setArguments(**alone))
    return std::move(error);
  Execution &single = **alone;
  single.repeatOperators();
  auto runStep = [&]() -> llvm::Expected<const runtime::Timeline *> {
    if (llvm::Error error = single.step(/*counted=*/false))
      return std::move(error);
    return &single.timeline();
  };
  if (llvm::Error error = measureStepCosts(
          single.program(), runStep, module(), profile,
          samplingOf(llvm::cantFail(measureBudgetOf(asked)),
                     floorSeconds(hostCompiler->operatorsFormed(), kind), kind),
          [&](size_t done, size_t total) {
            phase(done, total);
            return !listener.isStopped();
          }))
    return std::move(error);
  return true;
}

LogicalResult Compilation::quietly(llvm::function_ref<LogicalResult()> run) {
  ScopedDiagnosticHandler quiet(source->context(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
  });
  return run();
}
