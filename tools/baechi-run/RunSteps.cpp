//===- RunSteps.cpp - Steps are run and compared --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Progress.h"
#include "Ranks.h"
#include "Run.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace baechi;

void Run::execute() {
  if (options.injectFault > 0)
    faults = std::make_shared<runtime::NthCallFails>(options.injectFault);
  llvm::Error failure = runSteps();
  if (failure && faults && faults->happened()) {
    std::string said = llvm::toString(std::move(failure));
    llvm::errs() << "baechi-run: note: " << said
                 << "; once more from the start\n";
    report.losses.clear();
    failure = runSteps();
  }
  exitOnError(std::move(failure));
  if (faults && !faults->happened())
    llvm::errs() << "baechi-run: note: the run made only " << faults->calls()
                 << " calls of the runtime: nothing was injected\n";
}

llvm::Error Run::runSteps() {
  // Refuses a program that this machine's memory cannot hold; so first.
  if (placed && !placed->usable())
    placed.reset();
  if (!placed) {
    auto created = Execution::create(
        compiler->jit(), report.compiled, options.watchdog,
        faults ? faults : killer(options, ranks.get()), ranks);
    if (!created)
      return created.takeError();
    placed = std::move(*created);
  }
  std::optional<size_t> loss = findLoss();
  if (!expected.empty() && !loss)
    return llvm::createStringError(
        options.reference + ": nothing to compare its losses with: the step "
                            "has no scalar f32 result");
  llvm::Expected<size_t> invented = setArguments(*placed);
  if (!invented)
    return invented.takeError();
  if (*invented)
    llvm::errs() << "baechi-run: note: " << *invented
                 << (*invented == 1 ? " argument has" : " arguments have")
                 << " neither an input nor a baechi.init: small numbers, "
                    "zeros for integers\n";
  if (options.check && (single || startSingle()))
    for (size_t i = 0; i < placed->program().arguments.size(); ++i) {
      llvm::Expected<Array> value = placed->argument(i);
      if (!value)
        return value.takeError();
      exitOnError(single->setArgument(i, *value));
    }

  Progress progress("running steps");
  // Both programs take turns, so that what else the machine does meets both.
  for (int64_t i = 0; i < options.steps; ++i) {
    bool counted = i > 0 || options.steps == 1;
    if (llvm::Error error = placed->step(counted))
      return error;
    if (single)
      exitOnError(single->step(counted));
    if (loss) {
      llvm::Expected<Array> value = placed->result(*loss);
      if (!value)
        return value.takeError();
      float number;
      std::memcpy(&number, value->data.data(), sizeof(number));
      report.losses.push_back(number);
    }
    progress(i + 1, options.steps);
  }
  if (single) {
    llvm::Expected<std::string> found = firstDifference(*placed, *single);
    if (!found)
      return found.takeError();
    report.difference = std::move(*found);
  }
  if (!expected.empty())
    compareLosses();
  return llvm::Error::success();
}

llvm::Expected<size_t> Run::setArguments(Execution &execution) {
  FailureOr<func::FuncOp> step = findFuncStep(compiler->module());
  FirstValues values = exitOnError(FirstValues::read(*step, options.inputs));
  for (size_t i = 0; i < execution.program().arguments.size(); ++i)
    if (llvm::Error error =
            execution.setArgument(i, exitOnError(values.take(i))))
      return std::move(error);
  return values.invented();
}

bool Run::startSingle() {
  if (machine.devices.size() == 1) {
    report.singleRefused = "this is one device";
    return false;
  }
  single =
      exitOnError(createSingle(withAllMemory(machine.devices.front().kind)));
  if (!single)
    report.singleRefused = "not run, this machine's memory cannot hold it";
  return single != nullptr;
}

std::optional<size_t> Run::findLoss() {
  for (auto [index, result] : llvm::enumerate(placed->program().results))
    if (result.shape.empty() && result.type == runtime::ElementType::F32) {
      report.lossName = result.name;
      return index;
    }
  return std::nullopt;
}

void Run::compareLosses() {
  ReferenceComparison comparison;
  comparison.steps = std::min(expected.size(), report.losses.size());
  for (size_t i = 0; i < comparison.steps; ++i) {
    double difference = std::abs(report.losses[i] - expected[i]) /
                        std::max(std::abs(expected[i]), 1e-30);
    // Not a number agrees with nothing.
    comparison.worst = std::isnan(difference)
                           ? std::numeric_limits<double>::infinity()
                           : std::max(comparison.worst, difference);
  }
  report.reference = comparison;
}
