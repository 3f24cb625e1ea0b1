//===- ModelCosts.cpp - What a model's kernels take -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation/ModelCosts.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Costs/Measure/KernelChoices.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Costs/Measure/StepRows.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace baechi;

bool baechi::canRunSteps(ModuleOp module) {
  return llvm::none_of(module.getOps<func::FuncOp>(), isHostCall);
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

llvm::Error ModelCosts::measureKernels(HostCompiler &compiler,
                                       const KernelCosts &costs,
                                       bool choicesOnly) {
  Phase phase(listener, costs.phase());
  MeasureOptions options;
  MeasureBudget budget = llvm::cantFail(measureBudgetOf(asked));
  options.rounds =
      roundsOf(budget, floorSeconds(compiler.operatorsFormed(), costs.kind()));
  options.choicesOnly = choicesOnly && !budget.all;
  // So that the bits of one process are those of the next.
  options.keepsCode = budget.later;
  if (options.choicesOnly)
    options.rounds.leastShare = kLeastShare;
  // Who annotates costs says which kernels have none.
  options.warnOfUnmeasured = false;
  options.lowered = lowered.get();
  options.workers = threads;
  // All other kernels are needed whatever the choice; there is a processor for
  // them while one core times.
  if (options.choicesOnly && costs.kind() == "host")
    options.meanwhile = [&compiler] { return compiler.beginKernels(); };
  if (!asked.sanitizeCode)
    options.store = asked.store;
  options.stopped = [this] { return listener.isStopped(); };
  FailureOr<size_t> rows =
      costs.measure(compiler.module(), kept, options,
                    [&](size_t done, size_t total) { phase(done, total); });
  if (failed(rows))
    return diagnosed();
  counted.rowsMeasured += *rows;
  return llvm::Error::success();
}

void ModelCosts::readProfile() {
  if (asked.profile.empty() || !llvm::sys::fs::exists(asked.profile))
    return;
  llvm::Expected<Profile> read = baechi::readProfile(asked.profile);
  if (!read) {
    keptError = llvm::toString(read.takeError());
    return;
  }
  kept = std::move(*read);
  noteScratch(kept, *lowered);
}

void ModelCosts::measurePeaks() {
  if (asked.costs != "measured" || kept.peaks || !asked.measuresPeaks ||
      !hasDeviceOf(target, "host"))
    return;
  kept.peaks = measureHostPeaks();
  peaksMeasured = bool(kept.peaks);
}

void ModelCosts::keep() {
  bool isChanged =
      counted.rowsMeasured || stepsMeasured || peaksMeasured || machineMeasured;
  if (asked.profile.empty() || kept.rows.empty() ||
      (!isChanged && llvm::sys::fs::exists(asked.profile)))
    return;
  // The run has what it needs of it.
  if (llvm::Error error = addToProfile(asked.profile, kept))
    listener.warn("what was measured is not kept: " +
                  llvm::toString(std::move(error)));
}

llvm::Error ModelCosts::find(HostCompiler &compiler, const SingleSteps &steps) {
  SmallVector<const KernelCosts *> measured;
  for (const KernelCosts *costs : kernelCosts()) {
    if (asked.costs != "measured" || !hasDeviceOf(target, costs->kind()))
      continue;
    if (llvm::Error error = costs->adopt(compiler.module(), kept))
      listener.note(
          "kernels of GPUs are not measured: " +
          llvm::toString(std::move(error)) + "; their costs are " +
          (kept.cudaTarget.empty() ? "the roofline's" : "the profile's"));
    else
      measured.push_back(costs);
  }
  if (measured.empty() && kept.rows.empty()) {
    asked.costs = "roofline";
    return failed(compiler.annotate(nullptr)) ? diagnosed()
                                              : llvm::Error::success();
  }
  llvm::Expected<bool> given = takeGivenTimes();
  if (!given)
    return given.takeError();
  if (*given) {
    stepsMeasured = true;
    // They are of the whole step, with which exact pieces are compared.
    if (compiler.splits().classes.empty())
      measured.clear();
  }
  KernelChoices choices = choicesOf(compiler.module());
  // Times of steps are of the code that these ran.
  if (*given)
    choices = KernelChoices(ModuleOp());
  takeKeptChoice(choices);
  for (const KernelCosts *costs : measured)
    // Steps tell the times of all kernels; which code is best, they do not.
    if (llvm::Error error =
            measureKernels(compiler, *costs,
                           /*choicesOnly=*/canRunSteps(compiler.module())))
      return error;
  {
    // Selects the implementations. What lacks costs is told in the end.
    ScopedDiagnosticHandler noWarnings(
        compiler.module().getContext(), [](Diagnostic &diagnostic) {
          return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
        });
    if (failed(compiler.annotate(&kept)) ||
        failed(settleChoice(compiler, choices)))
      return diagnosed();
  }
  for (const KernelCosts *costs : measured)
    if (lacksStepCosts(compiler.module(), costs->kind(), kept)) {
      llvm::Expected<bool> ran = measureSteps(compiler, costs->kind(), steps);
      if (!ran)
        return ran.takeError();
      stepsMeasured |= *ran;
      // Without the memory for it, what is measured alone has to do.
      if (!*ran)
        if (llvm::Error error =
                measureKernels(compiler, *costs, /*choicesOnly=*/false))
          return error;
    }
  count(compiler.module());
  return failed(compiler.annotate(&kept)) ? diagnosed()
                                          : llvm::Error::success();
}

KernelChoices ModelCosts::choicesOf(ModuleOp module) {
  KernelChoices choices(module);
  if (choiceName.empty())
    choiceName = choices.program().str();
  return choices;
}

void ModelCosts::takeKeptChoice(KernelChoices &choices) {
  // Who asks for all measurements chooses again by them.
  if (llvm::cantFail(measureBudgetOf(asked)).all)
    return;
  const ProgramChoice *known = kept.findChoice(choices.program());
  if (known && choices.canHave(*known))
    choices.apply(*known, kept);
}

LogicalResult ModelCosts::settleChoice(HostCompiler &compiler,
                                       KernelChoices &choices) {
  if (choices.empty() || !hasDeviceOf(target, "host"))
    return success();
  ProgramChoice chosen = choices.chosen();
  std::optional<ProgramChoice> known;
  if (const ProgramChoice *found = kept.findChoice(chosen.program))
    known = *found;
  if (known == chosen)
    return success();
  // A file may name what this version lacks, or never had.
  bool isAnew = known && (llvm::cantFail(measureBudgetOf(asked)).all ||
                          !choices.canHave(*known));
  const ProgramChoice *replaced = isAnew ? &*known : nullptr;
  if (!asked.profile.empty()) {
    llvm::Expected<ProgramChoice> settled =
        keepChoice(asked.profile, kept, chosen, replaced);
    if (settled)
      chosen = *settled;
    else
      listener.warn("which code computes products is not kept, so the next "
                    "compilation may choose other code: " +
                    llvm::toString(settled.takeError()));
  }
  // Another process may have replaced what was read.
  llvm::erase_if(kept.choices, [&](const ProgramChoice &choice) {
    return choice.program == chosen.program;
  });
  kept.choices.push_back(chosen);
  if (chosen == choices.chosen())
    return success();
  choices.apply(chosen, kept);
  return compiler.annotate(&kept);
}

void ModelCosts::recount(ModuleOp module) {
  llvm::StringMap<bool> measured; // by hashes of kernels
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) && !isHostCall(kernel))
      measured.try_emplace(kernelHash(kernel), false);
  counted.measured = counted.estimated = counted.disturbed = 0;
  for (const ProfileRow &row : kept.rows)
    if (auto found = measured.find(row.hash); found != measured.end()) {
      found->second |= hasDeviceOf(target, row.kind);
      counted.disturbed += row.disturbed || row.stepDisturbed;
    }
  for (const auto &kernel : measured)
    ++(kernel.second ? counted.measured : counted.estimated);
}

void ModelCosts::count(ModuleOp module) {
  recount(module);
  if (counted.disturbed > 0)
    listener.note("other work kept the processors from " +
                  llvm::Twine(counted.disturbed) +
                  " measurements of kernels, also when they were repeated: the "
                  "plan may be worse for it; the next compilation measures "
                  "them again, and --measure=all also chooses code anew");
}

llvm::Expected<bool> ModelCosts::measureSteps(HostCompiler &compiler,
                                              StringRef kind,
                                              const SingleSteps &steps) {
  // What is wrong with them is told; that they do not fit one device is not.
  if (kind == "host" && failed(compiler.compileKernels()))
    return diagnosed();
  endPhases();
  Phase phase(listener, "measuring steps");
  llvm::Expected<std::unique_ptr<Execution>> alone = steps.create(kind);
  if (!alone)
    return alone.takeError();
  if (!*alone)
    return false;
  if (llvm::Error error = steps.setArguments(**alone))
    return std::move(error);
  Execution &single = **alone;
  single.repeatOperators();
  auto runStep = [&]() -> llvm::Expected<const runtime::Timeline *> {
    if (llvm::Error error = single.step(/*counted=*/false))
      return std::move(error);
    return &single.timeline();
  };
  if (llvm::Error error = measureStepCosts(
          single.program(), runStep, compiler.module(), kept,
          samplingOf(llvm::cantFail(measureBudgetOf(asked)),
                     floorSeconds(compiler.operatorsFormed(), kind), kind),
          [&](size_t done, size_t total) {
            phase(done, total);
            return !listener.isStopped();
          }))
    return std::move(error);
  return true;
}

llvm::Expected<bool> ModelCosts::chooseCode(HostCompiler &compiler) {
  ModuleOp module = compiler.module();
  const KernelCosts &costs = hostCosts();
  if (llvm::Error error = costs.adopt(module, kept))
    return std::move(error);
  KernelChoices choices = choicesOf(module);
  takeKeptChoice(choices);
  if (llvm::Error error = measureKernels(compiler, costs, /*choicesOnly=*/true))
    return std::move(error);
  // Without a word: it is only for the first steps.
  ScopedDiagnosticHandler quiet(
      module.getContext(), [](Diagnostic &diagnostic) {
        return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
      });
  if (failed(compiler.annotate(&kept)) ||
      failed(settleChoice(compiler, choices)))
    return diagnosed();
  return lacksStepCosts(module, costs.kind(), kept);
}

llvm::Expected<bool> ModelCosts::takeGivenTimes() {
  if (asked.stepTimes.empty())
    return false;
  llvm::Expected<Profile> steps = baechi::readProfile(asked.stepTimes);
  if (!steps)
    return steps.takeError();
  if (!steps->isComparable(kept))
    return llvm::createStringError(
        asked.stepTimes + ": of '" + steps->target + "' by '" +
        steps->compiler + "', but this is '" + kept.target + "' by '" +
        kept.compiler +
        "': run the first steps here, of a library of this compiler");
  takeStepRows(kept, *steps);
  return true;
}

bool ModelCosts::isSettled(ModuleOp module) const {
  // Without a profile nobody knows whether a measurement would be the same.
  if (asked.profile.empty())
    return asked.costs != "measured";
  bool assumed = StringRef(asked.machine).starts_with("host:");
  MeasureBudget budget = llvm::cantFail(measureBudgetOf(asked));
  bool measured = counted.rowsMeasured > 0 || stepsMeasured;
  return asked.costs == "measured" && counted.estimated == 0 &&
         counted.disturbed == 0 && !lacksStepCosts(module, "host", kept) &&
         (!assumed || kept.findHost(runtime::queryHost().cores)) &&
         !(budget.seconds && measured);
}

bool ModelCosts::isKnown(ModuleOp module) const {
  return asked.costs != "measured" || !lacksStepCosts(module, "host", kept);
}
