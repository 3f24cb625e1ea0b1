//===- Costs.cpp - What a model's kernels cost ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Driver/Compilation.h"
#include "Baechi/Driver/Errors.h"
#include "Baechi/Driver/QueryMachine.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>

using namespace mlir;
using namespace baechi;

llvm::Error Compilation::measureMachine(bool always) {
  // A short form's links are only assumed.
  bool assumed = StringRef(asked.machine).starts_with("host:") &&
                 asked.costs == "measured";
  if (!assumed && !(always && !target.runtime))
    return llvm::Error::success();
  Phase phase(listener, "measuring the machine");
  return target.devices.size() > 1 ? measureLinks(target, listener)
                                   : measureRuntime(target, listener);
}

llvm::Error Compilation::measureKernels(Profile &profile,
                                        const KernelCosts &costs) {
  Phase phase(listener, costs.phase());
  MeasureOptions options;
  // Who annotates costs says which kernels have none.
  options.warnOfUnmeasured = false;
  options.lowered = lowered.get();
  options.stopped = [this] { return listener.isStopped(); };
  FailureOr<size_t> rows =
      costs.measure(module(), profile, options,
                    [&](size_t done, size_t total) { phase(done, total); });
  if (failed(rows))
    return diagnosed();
  rowsMeasured += *rows;
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
  addMicroBatches();
  Profile profile = std::move(kept);
  auto start = std::chrono::steady_clock::now();
  for (const std::unique_ptr<HostCompiler> &compiler : compilers) {
    use(*compiler);
    if (llvm::Error error = findCosts(profile, setArguments))
      return error;
  }
  profileSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!asked.profile.empty() && !profile.rows.empty() &&
      (rowsMeasured || stepsMeasured || !llvm::sys::fs::exists(asked.profile)))
    if (llvm::Error error = addToProfile(asked.profile, profile))
      // The run has what it needs of it.
      listener.warn("what was measured is not kept: " +
                    llvm::toString(std::move(error)));
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
  for (const KernelCosts *costs : measured)
    if (llvm::Error error = measureKernels(profile, *costs))
      return error;
  {
    // Selects the implementations. What lacks costs is told in the end.
    ScopedDiagnosticHandler noWarnings(
        source->context(), [](Diagnostic &diagnostic) {
          return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
        });
    if (failed(hostCompiler->annotate(&profile)))
      return diagnosed();
  }
  for (const KernelCosts *costs : measured)
    if (lacksStepCosts(module(), costs->kind(), profile)) {
      if (llvm::Error error = refineCosts(costs->kind(), profile, setArguments))
        return error;
      stepsMeasured = true;
    }
  return failed(hostCompiler->annotate(&profile)) ? diagnosed()
                                                  : llvm::Error::success();
}

llvm::Error Compilation::refineCosts(StringRef kind, Profile &profile,
                                     SetArguments setArguments) {
  // What is wrong with them is told; that they do not fit one device is not.
  if (kind == "host" && failed(hostCompiler->compileKernels()))
    return diagnosed();
  endPhases();
  Phase phase(listener, "measuring steps");
  llvm::Expected<std::unique_ptr<Execution>> alone = createSingle(kind);
  if (!alone)
    return alone.takeError();
  // Without the memory for it, what was measured alone has to do.
  if (!*alone)
    return llvm::Error::success();
  if (llvm::Error error = setArguments(**alone))
    return error;
  Execution &single = **alone;
  auto runStep = [&]() -> llvm::Expected<const runtime::Timeline *> {
    if (llvm::Error error = single.step(/*counted=*/false))
      return std::move(error);
    return &single.timeline();
  };
  return measureStepCosts(single.program(), runStep, module(), profile,
                          [&](size_t done, size_t total) {
                            phase(done, total);
                            return !listener.isStopped();
                          });
}

LogicalResult Compilation::quietly(llvm::function_ref<LogicalResult()> run) {
  ScopedDiagnosticHandler quiet(source->context(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
  });
  return run();
}
