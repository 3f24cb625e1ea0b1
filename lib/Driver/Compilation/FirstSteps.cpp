//===- FirstSteps.cpp - Steps that measure before there is a plan ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kernels take is known best of steps on one device. Those that the user
// waits for are such steps, too: they run first, their times are recorded, and
// the plan is made of these. What decides the bits of results, each kernel's
// code, is decided before them and stays.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/KernelChoices.h"
#include "Baechi/Costs/Measure/StepCosts.h"
#include "Baechi/Costs/Measure/StepRows.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Runtime/Machine.h"

using namespace mlir;
using namespace baechi;

static constexpr const char *kKind = "host";

static int64_t arenaBytes(const CompiledProgram &program) {
  int64_t bytes = 0;
  if (const llvm::json::Array *devices = program.manifest.getArray("devices"))
    for (const llvm::json::Value &device : *devices)
      bytes += device.getAsObject()->getInteger("arena_bytes").value_or(0);
  return bytes;
}

bool Compilation::canMeasureLater() {
  bool areHosts =
      llvm::all_of(target.devices, [](const placement::Device &device) {
        return device.kind == kKind;
      });
  // Slices are compared with the whole step, and pins, files and periods are of
  // several devices. Pieces of exact sums have the bits of the whole, which
  // comes first.
  bool isOfWhole = asked.splits == "exact" ||
                   (asked.splits == "none" && compilers.size() == 1);
  return areHosts && isOfWhole && asked.costs == "measured" &&
         asked.stepTimes.empty() && asked.split.empty() && asked.replicas < 2 &&
         asked.pins.empty() && asked.placement.empty() &&
         asked.expert.empty() && asked.objective == "makespan" &&
         !asked.otherProcesses && canRunSteps(module());
}

llvm::Expected<bool> Compilation::compileToMeasure() {
  // What is wrong with the profile, findCosts() tells.
  if (!canMeasureLater() || !costs.whyNotRead().empty())
    return false;
  compareCuts();
  llvm::Expected<bool> isToMeasure = costs.chooseCode(*hostCompiler);
  if (!isToMeasure || !*isToMeasure)
    return isToMeasure;
  CompileOptions alone = asked;
  alone.placer = "single";
  alone.grouping = "none";
  alone.budget = "0";
  alone.fitMemory = "never";
  FailureOr<CompiledProgram> program = failure();
  {
    ScopedDiagnosticHandler silent(source->context(),
                                   [](Diagnostic &) { return success(); });
    program = hostCompiler->compile(target, alone, "baechi_first");
  }
  endPhases();
  // It does not fit, say: a plan that does needs costs. While the plan is
  // opened, this program is still there.
  if (failed(program) ||
      2 * arenaBytes(*program) > runtime::queryHost().memoryBytes)
    return false;
  costs.count(module());
  compiled = std::move(*program);
  compiled.manifest["kernel_costs"] = costs.counts().toJson();
  compiled.manifest["to_measure"] =
      profileObject(stepRows(module(), kKind, costs.profile()));
  costs.keep();
  forms.clear();
  asWritten = nullptr;
  lowered->clear();
  return true;
}
