//===- RunCompile.cpp - A model is measured, placed and compiled ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io.h"
#include "Baechi/Runtime/Machine.h"
#include "CudaCosts.h"
#include "Progress.h"
#include "QueryMachine.h"
#include "Run.h"
#include "StepCosts.h"
#include "mlir/Parser/Parser.h"
#include <chrono>

using namespace mlir;
using namespace baechi;

void Run::compileModel() {
  std::string text, error = placement::readTextFile(options.model, text);
  if (!error.empty())
    exitOnError(llvm::createStringError(error));
  DialectRegistry registry;
  baechi::registerAllDialects(registry);
  context = std::make_unique<MLIRContext>(
      registry, options.threads > 1 ? MLIRContext::Threading::ENABLED
                                    : MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, options.model), SMLoc());
  handler = std::make_unique<SourceMgrDiagnosticHandler>(sources, context.get(),
                                                         llvm::errs());
  OwningOpRef<ModuleOp> model =
      parseSourceFile<ModuleOp>(sources, context.get());
  if (!model)
    stop();
  // Imported functions have no place in a file; errors name the file.
  Location file = FileLineColLoc::get(context.get(), options.model, 0, 0);
  for (auto function : model->getOps<func::FuncOp>())
    if (isa<UnknownLoc>(function.getLoc()))
      function->setLoc(file);

  HostJitOptions jitOptions;
  jitOptions.threads = options.threads;
  jitOptions.keepObjects = ranks || !options.emit.empty();
  jitOptions.store = options.store;
  for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
    jitOptions.symbols[symbol.name] = symbol.address;
  if (options.sanitizeCode)
    jitOptions.sanitizer = HostJitOptions::Sanitizer::Thread;
  FailureOr<std::unique_ptr<HostCompiler>> created =
      HostCompiler::create(std::move(model), std::move(jitOptions));
  if (failed(created))
    stop();
  compiler = std::move(*created);
  if (hasDeviceOf("cuda")) {
    CudaProductOptions products;
    products.math = options.cudaMath;
    products.biases = !hasDeviceOf("host");
    compiler->chooseCudaProducts(products);
  }
  measureMachine();
  findCosts();
  FailureOr<CompiledProgram> program =
      compiler->compile(machine, options.place, "baechi");
  if (failed(program))
    stop();
  report.compiled = std::move(*program);
}

void Run::measureMachine() {
  // A short form's links are only assumed; the plan is as good as they are.
  bool assumed = StringRef(options.machine).starts_with("host:") &&
                 options.costs == "measured";
  bool unknown = !options.calibrate.empty() && !machine.runtime;
  if (!assumed && !unknown)
    return;
  exitOnError(machine.devices.size() > 1 ? measureLinks(machine)
                                         : measureRuntime(machine));
}

bool Run::hasDeviceOf(StringRef kind) const {
  return llvm::any_of(machine.devices, [&](const placement::Device &device) {
    return device.kind == kind;
  });
}

void Run::findCosts() {
  bool measureGpus = options.costs == "measured" && hasDeviceOf("cuda");
  bool measureHost = options.costs == "measured" && hasDeviceOf("host");
  Profile profile;
  if (!options.profile.empty() && llvm::sys::fs::exists(options.profile))
    profile = exitOnError(readProfile(options.profile));
  if (measureGpus)
    if (llvm::Error error = takeGpu(compiler->module(), profile)) {
      llvm::errs() << "baechi-run: note: kernels of GPUs are not measured: "
                   << llvm::toString(std::move(error)) << "; their costs are "
                   << (profile.cudaTarget.empty() ? "the roofline's"
                                                  : "the profile's")
                   << '\n';
      measureGpus = false;
    }
  if (!measureHost && !measureGpus && profile.rows.empty()) {
    options.costs = "roofline";
    if (failed(compiler->annotate(nullptr)))
      stop();
    return;
  }
  auto start = std::chrono::steady_clock::now();
  size_t measured = 0;
  if (measureHost) {
    Progress progress("measuring kernels");
    auto count = [&](size_t done, size_t total) {
      measured = done;
      progress(done, total);
    };
    if (failed(compiler->measure(profile, count)))
      stop();
  }
  if (measureGpus) {
    Progress progress("searching products' algorithms");
    measured += exitOnError(measureCudaProducts(
        compiler->module(), profile,
        [&](size_t done, size_t total) { progress(done, total); }));
  }
  // Selects the implementations. What lacks costs is told in the end.
  if (failed(quietly([&] { return compiler->annotate(&profile); })))
    stop();
  bool refined = false;
  for (auto [kind, measures] :
       {std::pair("host", measureHost), std::pair("cuda", measureGpus)})
    if (measures && lacksStepCosts(compiler->module(), kind, profile)) {
      exitOnError(refineCosts(kind, profile));
      refined = true;
    }
  report.profileSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  report.rowsMeasured = measured;
  if (!options.profile.empty() &&
      (measured || refined || !llvm::sys::fs::exists(options.profile)))
    if (llvm::Error error = addToProfile(options.profile, profile))
      // The run has what it needs of it.
      llvm::errs() << "baechi-run: warning: what was measured is not kept: "
                   << llvm::toString(std::move(error)) << '\n';
  if (failed(compiler->annotate(&profile)))
    stop();
}

llvm::Error Run::refineCosts(StringRef kind, Profile &profile) {
  // What is wrong with them is told; that they do not fit one device is not.
  if (kind == "host" && failed(compiler->compileKernels()))
    stop();
  llvm::Expected<std::unique_ptr<Execution>> alone =
      createSingle(withAllMemory(kind));
  if (!alone)
    return alone.takeError();
  // Without the memory for it, what was measured alone has to do.
  if (!*alone)
    return llvm::Error::success();
  if (llvm::Error error = setArguments(**alone).takeError())
    return error;
  Progress progress("measuring steps");
  return measureStepCosts(
      **alone, compiler->module(), profile,
      [&](size_t done, size_t total) { progress(done, total); });
}

LogicalResult Run::quietly(llvm::function_ref<LogicalResult()> run) {
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  return run();
}

placement::Device Run::withAllMemory(StringRef kind) {
  placement::Device whole{"", kind.str(), 0};
  for (const placement::Device &device : machine.devices)
    if (device.kind == kind) {
      whole.name = whole.name.empty() ? device.name : whole.name;
      whole.memory += device.memory;
    }
  if (kind == "host")
    whole.memory = runtime::queryHost().memoryBytes;
  return whole;
}

llvm::Expected<std::unique_ptr<Execution>>
Run::createSingle(const placement::Device &device) {
  auto [entry, isNew] = singlePrograms.try_emplace(device.kind);
  if (isNew) {
    placement::Machine alone;
    alone.devices = {device};
    alone.links.resize(1);
    alone.linkModel = machine.linkModel;
    PlaceRequest request;
    request.placer = "single";
    request.grouping = "none";
    ScopedDiagnosticHandler quiet(context.get(),
                                  [](Diagnostic &) { return success(); });
    FailureOr<CompiledProgram> program =
        compiler->compile(alone, request, "single_" + device.kind);
    if (failed(program)) {
      singlePrograms.erase(entry);
      return nullptr;
    }
    entry->second = std::move(*program);
  }
  return Execution::create(compiler->jit(), entry->second, options.watchdog);
}
