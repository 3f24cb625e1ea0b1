//===- EmitLibrary.cpp - From a model to a step library -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/EmitLibrary.h"
#include "Baechi/Driver/StepRun.h"
#include "Baechi/Target/StepLibrary.h"

using namespace mlir;
using namespace baechi;

llvm::Expected<std::unique_ptr<Compilation>>
baechi::compileModel(DriverOptions options, placement::Machine machine,
                     Listener &listener, const std::string &inputs,
                     bool calibrates, int64_t replicas) {
  auto read =
      Compilation::read(std::move(options), std::move(machine), listener);
  if (!read)
    return read.takeError();
  Compilation &compilation = **read;
  // What is wrong with them is told before kernels are measured for long.
  if (llvm::Error error =
          checkFirstValues(compilation.module(), inputs, replicas))
    return std::move(error);
  if (compilation.options().measuresLater) {
    llvm::Expected<bool> compiled = compilation.compileToMeasure();
    if (!compiled)
      return compiled.takeError();
    if (*compiled)
      return read;
  }
  if (llvm::Error error = compilation.measureMachine(calibrates))
    return std::move(error);
  auto setArguments = [&](Execution &alone) {
    return setFirstValues(compilation.module(), inputs, alone, replicas)
        .takeError();
  };
  if (llvm::Error error = compilation.findCosts(setArguments))
    return std::move(error);
  if (llvm::Error error = compilation.compile(setArguments))
    return std::move(error);
  return read;
}

llvm::Error baechi::emitLibrary(DriverOptions options,
                                placement::Machine machine,
                                const std::string &file, Listener &listener,
                                const std::string &inputs) {
  options.keepObjects = options.hostCalls = true;
  // Who waits for a library waits for nothing that no plan takes.
  options.measuresPeaks = false;
  llvm::Expected<MeasureBudget> budget = measureBudgetOf(options);
  // Steps with the caller's arguments run here.
  options.measuresLater = budget && budget->later && inputs.empty();
  llvm::consumeError(budget.takeError());
  auto compilation =
      compileModel(std::move(options), std::move(machine), listener, inputs);
  if (!compilation)
    return compilation.takeError();
  Phase phase(listener, "linking");
  return writeStepLibrary(file, (*compilation)->program().manifestText(),
                          (*compilation)->compiler().jit().objects());
}
