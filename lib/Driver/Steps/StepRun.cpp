//===- StepRun.cpp - Steps are run and compared -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Steps/StepRun.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Inputs.h"
#include "Baechi/Driver/Report/SpillReport.h"
#include "Baechi/Runtime/Load.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace baechi;

static llvm::Expected<FirstValues>
readFirstValues(ModuleOp module, const std::string &inputs, int64_t replicas) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (failed(step))
    return diagnosed();
  return FirstValues::read(*step, inputs, replicas);
}

llvm::Error baechi::checkFirstValues(ModuleOp module, const std::string &inputs,
                                     int64_t replicas) {
  return readFirstValues(module, inputs, replicas).takeError();
}

llvm::Expected<size_t> baechi::setFirstValues(ModuleOp module,
                                              const std::string &inputs,
                                              Execution &execution,
                                              int64_t replicas) {
  llvm::Expected<FirstValues> values =
      readFirstValues(module, inputs, replicas);
  if (!values)
    return values.takeError();
  for (size_t i = 0; i < execution.program().arguments.size(); ++i) {
    llvm::Expected<Array> value =
        replicas > 1 ? values->of(0, i) : values->take(i);
    if (!value)
      return value.takeError();
    if (llvm::Error error = execution.setArgument(i, *value))
      return std::move(error);
  }
  return values->invented();
}

llvm::Error StepRun::run() {
  if (options.injectFault)
    faults = std::make_shared<runtime::NthCallFails>(*options.injectFault);
  llvm::Error failure = runSteps();
  if (failure && faults && faults->happened()) {
    listener.note(llvm::toString(std::move(failure)) +
                  "; once more from the start");
    found.losses.clear();
    failure = runSteps();
  }
  if (!failure && faults && !faults->happened())
    listener.note("the run made only " + llvm::Twine(faults->calls()) +
                  " calls of the runtime: nothing was injected");
  return failure;
}

llvm::Error StepRun::call(std::string inputs, int64_t steps) {
  options.inputs = std::move(inputs);
  options.steps = steps;
  found.losses.clear();
  return run();
}

llvm::Error StepRun::startPlaced() {
  // Refuses a program that this machine's memory cannot hold; so first.
  if (placedProgram && !placedProgram->usable())
    placedProgram.reset();
  if (placedProgram)
    return llvm::Error::success();
  auto created = Execution::create(
      compilation.compiler().jit(), compilation.program(),
      compilation.options().watchdog,
      faults ? faults : killerOf(options.killRank, ranks.get()), ranks);
  if (!created)
    return created.takeError();
  placedProgram = std::move(*created);
  return llvm::Error::success();
}

llvm::Error StepRun::copyArguments() {
  for (size_t i = 0; i < placedProgram->program().arguments.size(); ++i) {
    llvm::Expected<Array> value = placedProgram->argument(i);
    if (!value)
      return value.takeError();
    if (llvm::Error error = singleProgram->setArgument(i, *value))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error StepRun::runSteps() {
  if (llvm::Error error = startPlaced())
    return error;
  std::optional<size_t> loss = findLoss();
  if (!options.expected.empty() && !loss)
    return llvm::createStringError(
        options.reference + ": nothing to compare its losses with: the step "
                            "has no scalar f32 result");
  llvm::Expected<size_t> invented =
      setFirstValues(compilation.module(), options.inputs, *placedProgram);
  if (!invented)
    return invented.takeError();
  if (*invented)
    listener.note(llvm::Twine(*invented) +
                  (*invented == 1 ? " argument has" : " arguments have") +
                  " neither an input nor a baechi.init: small numbers, "
                  "zeros for integers");
  if (options.check) {
    llvm::Expected<bool> started = startSingle();
    if (!started)
      return started.takeError();
    if (*started)
      if (llvm::Error error = copyArguments())
        return error;
  }

  Phase phase(listener, "running steps");
  runtime::LoadWatch load;
  if (options.overlap && compilation.checksPositions())
    return llvm::createStringError(
        "positions that data tell are checked after each step, and steps that "
        "overlap leave the last one's: leave --overlap-steps off");
  if (options.overlap)
    if (llvm::Error error = runOverlapped(loss))
      return error;
  // Both programs take turns, so that what else the machine does meets both.
  for (int64_t i = 0; i < options.steps && !options.overlap; ++i) {
    bool counted = i > 0 || options.steps == 1;
    if (llvm::Error error = placedProgram->step(counted))
      return error;
    if (llvm::Error error = compilation.checkPositions(*placedProgram))
      return error;
    if (singleProgram)
      if (llvm::Error error = singleProgram->step(counted))
        return error;
    if (loss) {
      llvm::Expected<Array> value = placedProgram->result(*loss);
      if (!value)
        return value.takeError();
      float number;
      std::memcpy(&number, value->data.data(), sizeof(number));
      found.losses.push_back(number);
    }
    phase(i + 1, options.steps);
  }
  // Devices of other processes are not this one's work.
  if (!ranks && load.isDisturbed(placedProgram->program().devices.size()))
    found.othersWork = load.others();
  if (singleProgram) {
    llvm::Expected<std::string> difference =
        firstDifference(*placedProgram, *singleProgram);
    if (!difference)
      return difference.takeError();
    found.difference = std::move(*difference);
  }
  if (!options.expected.empty())
    compareLosses();
  return llvm::Error::success();
}

/// The first step by itself: it warms caches up. The single device's steps are
/// separate ones: what both compute must be the same.
llvm::Error StepRun::runOverlapped(std::optional<size_t> loss) {
  for (int64_t count : {int64_t(1), options.steps - 1}) {
    if (count == 0)
      continue;
    llvm::Expected<std::vector<float>> losses = placedProgram->stepsOverlapped(
        count, count > 1 || options.steps <= 2, loss);
    if (!losses)
      return losses.takeError();
    found.losses.insert(found.losses.end(), losses->begin(), losses->end());
    found.overlapped = count;
  }
  for (int64_t i = 0; singleProgram && i < options.steps; ++i)
    if (llvm::Error error = singleProgram->step(i > 0 || options.steps == 1))
      return error;
  return llvm::Error::success();
}

llvm::Expected<bool> StepRun::startSingle() {
  if (singleProgram)
    return true;
  const placement::Machine &machine = compilation.machine();
  if (machine.devices.size() == 1) {
    found.singleRefused = "this is one device";
    return false;
  }
  auto created = compilation.createSingle(machine.devices.front().kind);
  if (!created)
    return created.takeError();
  singleProgram = std::move(*created);
  if (!singleProgram)
    found.singleRefused = "not run, this machine's memory cannot hold it";
  return singleProgram != nullptr;
}

std::optional<size_t> StepRun::findLoss() {
  for (auto [index, result] : llvm::enumerate(placedProgram->program().results))
    if (result.shape.empty() && result.type == runtime::ElementType::F32) {
      found.lossName = result.name;
      return index;
    }
  return std::nullopt;
}

void StepRun::compareLosses() {
  ReferenceComparison comparison;
  comparison.steps = std::min(options.expected.size(), found.losses.size());
  for (size_t i = 0; i < comparison.steps; ++i) {
    double difference = std::abs(found.losses[i] - options.expected[i]) /
                        std::max(std::abs(options.expected[i]), 1e-30);
    // Not a number agrees with nothing.
    comparison.worst = std::isnan(difference)
                           ? std::numeric_limits<double>::infinity()
                           : std::max(comparison.worst, difference);
  }
  found.reference = comparison;
}

static std::vector<int64_t> residentBytesOf(const runtime::Program &program) {
  std::vector<int64_t> bytes(program.devices.size());
  for (const runtime::ArgumentInfo &argument : program.arguments)
    for (const runtime::PieceInfo &part : argument.parts())
      bytes[part.device] += llvm::alignTo(part.bytes, kAlignment);
  return bytes;
}

RunReport StepRun::report() const {
  RunReport report = found;
  compilation.describe(report);
  report.program = placedProgram->program();
  report.residentBytes = residentBytesOf(report.program);
  report.measured = placedProgram->measurement();
  report.timeline = placedProgram->fastest();
  if (auto *fit = report.compiled.manifest.getObject("memory_fit"))
    addMeasured(*fit, report.program, report.timeline);
  if (singleProgram) {
    report.single = singleProgram->measurement();
    report.singlePredictedNs = report.compiled.singleDeviceNs;
  }
  return report;
}
