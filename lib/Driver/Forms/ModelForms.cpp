//===- ModelForms.cpp - A model, and what is formed of it -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Forms/ModelForms.h"
#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Session.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

FailureOr<ModelForms::Compiler> ModelForms::formOf(ModuleOp model,
                                                   const SplitChoice &choice,
                                                   IsWanted isWanted) const {
  HostJitOptions jit;
  jit.threads = asked.threads;
  jit.workers = threads;
  jit.keepObjects = asked.keepObjects;
  jit.store = asked.store;
  jit.processor = asked.hostTarget;
  jit.stopped = [this] { return listener.isStopped(); };
  for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
    jit.symbols[symbol.name] = symbol.address;
  if (asked.sanitizeCode)
    jit.sanitizer = HostJitOptions::Sanitizer::Thread;
  CudaProductOptions products;
  products.math = asked.cudaMath;
  products.convolutions = asked.cudaConvolutions;
  products.biases = !hasDeviceOf(target, "host");
  products.updates = target.devices.size() == 1 && !asked.asksByNames();
  OwningOpRef<ModuleOp> copy = model.clone();
  // What is cut depends on what sending takes, but where results must not
  // depend on the machine.
  if (!choice.always) {
    // Of a model without anything of ours no one else has loaded it.
    copy->getContext()->getOrLoadDialect<BaechiDialect>();
    copy->getOperation()->setAttr(BaechiDialect::kMachine,
                                  toAttr(copy->getContext(), target));
  }
  FailureOr<std::unique_ptr<HostCompiler>> compiler = HostCompiler::create(
      std::move(copy), jit, hasDeviceOf(target, "cuda") ? &products : nullptr,
      choice, lowered, isWanted);
  if (succeeded(compiler))
    (*compiler)->module()->removeAttr(BaechiDialect::kMachine);
  return compiler;
}

OwningOpRef<ModuleOp> ModelForms::cut(ModuleOp model,
                                      const SplitChoice &choice) const {
  OwningOpRef<ModuleOp> trial = model.clone();
  PassManager cutting(trial->getContext());
  // What is taken is formed again.
  cutting.enableVerifier(false);
  populateCutting(cutting, choice, /*report=*/nullptr);
  return succeeded(cutting.run(*trial)) ? std::move(trial) : nullptr;
}

LogicalResult ModelForms::outlineKernels(ModuleOp cut) const {
  PassManager forming(cut.getContext());
  forming.enableVerifier(false);
  // How much scratch kernels need takes their code to know.
  populateOutliningKernels(forming);
  forming.addPass(createAnnotateCosts(nullptr));
  forming.addPass(createColocate());
  return forming.run(cut);
}

std::optional<SumOrders>
ModelForms::sumOrders(const SplitChoice &choice) const {
  OwningOpRef<ModuleOp> trial = model().clone();
  SumOrders sums;
  PassManager forming(trial->getContext());
  // What is taken is formed again.
  forming.enableVerifier(false);
  populateOutlining(forming, /*products=*/nullptr, choice, &sums);
  if (failed(forming.run(*trial)))
    return std::nullopt;
  return sums;
}

bool ModelForms::fits(HostCompiler &compiler) const {
  return succeeded(quietly([&] { return compiler.fits(target, asked); }));
}

bool ModelForms::fitsRewritten(HostCompiler &compiler) const {
  CompileOptions options = asked;
  options.budget = "0";
  options.fitMemory = "whole";
  return succeeded(
      quietly([&] { return compiler.fitsRewritten(target, options); }));
}

LogicalResult ModelForms::fitsFitted(HostCompiler &compiler,
                                     const placement::Machine &machine) const {
  CompileOptions options = asked;
  options.budget = "0";
  return compiler.fitsRewritten(machine, options);
}

FailureOr<int64_t>
ModelForms::predictFitting(HostCompiler &compiler,
                           const placement::Machine &machine) const {
  CompileOptions options = asked;
  options.budget = "0";
  return compiler.predict(machine, options, /*mayRewrite=*/true);
}

LogicalResult
ModelForms::quietly(llvm::function_ref<LogicalResult()> run) const {
  ScopedDiagnosticHandler quiet(
      model().getContext(), [](Diagnostic &diagnostic) {
        return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
      });
  return run();
}

static int64_t bytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += tensorBytes(value.getType(), /*aligned=*/true).value_or(0);
  return bytes;
}

bool ModelForms::isMemoryTight(HostCompiler &compiler) const {
  FailureOr<func::FuncOp> step = findFuncStep(compiler.module());
  if (failed(step))
    return false;
  int64_t memory = 0, held = bytesOf(step->getArguments()), all = held;
  for (const placement::Device &device : target.devices)
    memory += device.memory;
  for (Operation &op : step->front())
    all += bytesOf(op.getResults());
  return held <= memory &&
         llvm::any_of(target.devices, [&](const placement::Device &device) {
           return device.memory < all;
         });
}

/// What no plan without a pool goes under on one device.
static std::optional<int64_t> leastBytes(ModuleOp formed) {
  FailureOr<StepGraph> graph = buildStepGraph(formed);
  if (failed(graph) || graph->graph.ops.empty())
    return std::nullopt;
  return leastMemory(*graph).bytes;
}

std::optional<int64_t>
ModelForms::leastBytesOnHost(const SplitChoice &choice) const {
  placement::Machine computing = placement::withoutPools(target);
  if (computing.devices.size() != 1 || computing.devices.front().kind != "host")
    return std::nullopt;
  OwningOpRef<ModuleOp> trial = cut(model(), choice);
  return trial && succeeded(outlineKernels(*trial)) ? leastBytes(*trial)
                                                    : std::nullopt;
}
