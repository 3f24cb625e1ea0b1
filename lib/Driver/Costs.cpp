//===- Costs.cpp - What a model's kernels cost ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation.h"
#include "Baechi/Driver/CudaCosts.h"
#include "Baechi/Driver/Errors.h"
#include "Baechi/Driver/QueryMachine.h"
#include "Baechi/Driver/StepCosts.h"
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

llvm::Expected<size_t> Compilation::measureKernels(Profile &profile, bool host,
                                                   bool gpus) {
  size_t measured = 0;
  if (host) {
    Phase phase(listener, "measuring kernels");
    auto count = [&](size_t done, size_t total) {
      measured = done;
      phase(done, total);
    };
    if (failed(hostCompiler->measure(profile, count)))
      return diagnosed();
  }
  if (gpus) {
    Phase phase(listener, "searching products' algorithms");
    llvm::Expected<size_t> products =
        measureCudaProducts(module(), profile, [&](size_t done, size_t total) {
          phase(done, total);
        });
    if (!products)
      return products.takeError();
    measured += *products;
  }
  return measured;
}

llvm::Error Compilation::findCosts(SetArguments setArguments) {
  bool measureGpus = asked.costs == "measured" && hasDeviceOf("cuda");
  bool measureHost = asked.costs == "measured" && hasDeviceOf("host");
  Profile profile;
  if (!asked.profile.empty() && llvm::sys::fs::exists(asked.profile)) {
    llvm::Expected<Profile> kept = readProfile(asked.profile);
    if (!kept)
      return kept.takeError();
    profile = std::move(*kept);
  }
  if (measureGpus)
    if (llvm::Error error = takeGpu(module(), profile)) {
      listener.note(
          "kernels of GPUs are not measured: " +
          llvm::toString(std::move(error)) + "; their costs are " +
          (profile.cudaTarget.empty() ? "the roofline's" : "the profile's"));
      measureGpus = false;
    }
  if (!measureHost && !measureGpus && profile.rows.empty()) {
    asked.costs = "roofline";
    return failed(hostCompiler->annotate(nullptr)) ? diagnosed()
                                                   : llvm::Error::success();
  }
  auto start = std::chrono::steady_clock::now();
  llvm::Expected<size_t> measured =
      measureKernels(profile, measureHost, measureGpus);
  if (!measured)
    return measured.takeError();
  rowsMeasured = *measured;
  // Selects the implementations. What lacks costs is told in the end.
  if (failed(quietly([&] { return hostCompiler->annotate(&profile); })))
    return diagnosed();
  bool refined = false;
  for (auto [kind, measures] :
       {std::pair("host", measureHost), std::pair("cuda", measureGpus)})
    if (measures && lacksStepCosts(module(), kind, profile)) {
      if (llvm::Error error = refineCosts(kind, profile, setArguments))
        return error;
      refined = true;
    }
  profileSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!asked.profile.empty() &&
      (rowsMeasured || refined || !llvm::sys::fs::exists(asked.profile)))
    if (llvm::Error error = addToProfile(asked.profile, profile))
      // The run has what it needs of it.
      listener.warn("what was measured is not kept: " +
                    llvm::toString(std::move(error)));
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
  return measureStepCosts(**alone, module(), profile,
                          [&](size_t done, size_t total) {
                            phase(done, total);
                            return !listener.isStopped();
                          });
}

LogicalResult Compilation::quietly(llvm::function_ref<LogicalResult()> run) {
  ScopedDiagnosticHandler quiet(source->context(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  return run();
}
