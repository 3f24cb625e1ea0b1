//===- HostCompiler.cpp - From a model to running host code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Analysis/WholeStep.h"
#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Conversion/Passes.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include <chrono>

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

namespace {
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

/// What the code may use of what the system says that the processor has: a
/// session compares the two, and an older system may not have all the names.
/// Of another processor nothing is known but what it has.
std::vector<std::string> usedExtensions(const HostJit &jit,
                                        const runtime::HostInfo &host) {
  std::vector<std::string> used = jit.extensions();
  if (jit.isForThisHost())
    llvm::erase_if(used, [&](const std::string &name) {
      return !llvm::is_contained(host.extensions, name);
    });
  return used;
}

bool isCuda(const placement::Device &device) { return device.kind == "cuda"; }

LogicalResult report(Location loc, llvm::Error error) {
  return emitError(loc) << llvm::toString(std::move(error));
}
} // namespace

FailureOr<std::unique_ptr<HostCompiler>>
HostCompiler::create(OwningOpRef<ModuleOp> model, HostJitOptions options,
                     const CudaProductOptions *products,
                     const SplitChoice &splits,
                     std::shared_ptr<LoweredKernels> lowered,
                     function_ref<bool(const SplitReport &)> isWanted) {
  std::unique_ptr<HostCompiler> compiler(new HostCompiler());
  compiler->model = std::move(model);
  compiler->lowered =
      lowered ? std::move(lowered) : std::make_shared<LoweredKernels>();
  compiler->stopped = options.stopped;
  llvm::Expected<std::unique_ptr<HostJit>> jit =
      HostJit::create(std::move(options));
  if (!jit)
    return report(compiler->module().getLoc(), jit.takeError());
  compiler->hostJit = std::move(*jit);
  if (failed(compiler->form(products, splits, isWanted)))
    return failure();
  return compiler;
}

LogicalResult
HostCompiler::form(const CudaProductOptions *products,
                   const SplitChoice &splits,
                   function_ref<bool(const SplitReport &)> isWanted) {
  Stopwatch watch;
  MLIRContext *context = module().getContext();
  PassManager inlined(context), cutting(context), forming(context);
  // By itself, too: its operators are counted as the model has them.
  inlined.addPass(createInlineStep());
  populateCutting(cutting, splits, &splitReport);
  populateKernels(forming, products, lowered);
  for (Pass &pass : cutting.getPasses()) {
    llvm::raw_string_ostream text(cuttingPasses.emplace_back());
    pass.printAsTextualPipeline(text);
  }
  if (failed(inlined.run(module())))
    return failure();
  operatorCount = operatorsOf(*findFuncStep(module())).size();
  if (failed(cutting.run(module())) || (isWanted && !isWanted(splitReport)) ||
      failed(forming.run(module())))
    return failure();
  // Products may have been joined with biases since.
  callCount = operatorsOf(*findFuncStep(module())).size();
  for (auto function : module().getOps<func::FuncOp>())
    kernelCount += function->hasAttr(BaechiDialect::kKernel);
  secondsToForm = watch.seconds();
  return success();
}

LogicalResult HostCompiler::annotate(const Profile *profile) {
  PassManager manager(module().getContext());
  manager.addPass(createAnnotateCosts(profile));
  // What was predicted before was so with the roofline.
  if (profile || annotated)
    predicted.reset();
  if (!annotated) {
    FailureOr<func::FuncOp> step = findFuncStep(module());
    if (failed(step))
      return failure();
    for (Operation *op : operatorsOf(*step))
      if (!op->hasAttr(BaechiDialect::kCost))
        ownCosts.push_back(op);
    manager.addPass(createColocate());
    annotated = true;
  } else {
    for (Operation *op : ownCosts)
      op->removeAttr(BaechiDialect::kCost);
  }
  return manager.run(module());
}

LogicalResult HostCompiler::beginKernels(bool choices) {
  // Lowering replaces kernels; the model keeps its own.
  OwningOpRef<ModuleOp> code = ModuleOp::create(module().getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(code->getBody());
  HostCode compiled;
  for (auto function : module().getOps<func::FuncOp>()) {
    if (!function->hasAttr(BaechiDialect::kKernel) || isHostCall(function) ||
        (!choices && hostImplementations(function).size() > 1) ||
        !begunKernels.insert(function).second)
      continue;
    std::string key = hostJit->storeKey(storedText(function));
    llvm::Expected<bool> stored = hostJit->addStored(key);
    if (!stored)
      return report(function.getLoc(), stored.takeError());
    if (*stored) {
      ++storedCount;
      continue;
    }
    compiled.keys[hostSymbol(function.getName())] = std::move(key);
    builder.clone(*function);
  }
  if (compiled.keys.empty())
    return success();
  if (failed(lowered->lower(*code)))
    return failure();
  if (llvm::Error error = hostJit->begin(*code, compiled))
    return report(module().getLoc(), std::move(error));
  return success();
}

LogicalResult HostCompiler::compileKernels() {
  if (kernelsCompiled)
    return success();
  beginPhase("compiling kernels");
  Stopwatch watch;
  if (failed(beginKernels(/*choices=*/true)))
    return failure();
  if (llvm::Error error = hostJit->finish())
    return report(module().getLoc(), std::move(error));
  hostJit->warnOfStore(module().getLoc());
  kernelsCompiled = true;
  secondsForKernels = watch.seconds();
  return success();
}

LogicalResult HostCompiler::addCudaNeeds(ModuleOp copy) {
  if (!cudaNeeds) {
    FailureOr<CudaNeeds> needs = cudaNeedsOf(module());
    if (failed(needs))
      return failure();
    cudaNeeds = std::move(*needs);
  }
  annotateCudaNeeds(copy, *cudaNeeds);
  return success();
}

LogicalResult HostCompiler::compileCudaKernels() {
  if (cudaKernelsCompiled)
    return success();
  beginPhase("compiling kernels");
  Stopwatch watch;
  OwningOpRef<ModuleOp> code = ModuleOp::create(module().getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(code->getBody());
  for (auto function : module().getOps<func::FuncOp>())
    if (function->hasAttr(BaechiDialect::kKernel) && !isHostCall(function))
      builder.clone(*function);
  if (failed(addCudaNeeds(*code)) ||
      failed(cudaLowering ? cudaLowering(*code)
                          : lowerKernelsToCuda(*code, CudaOptions())))
    return failure();
  HostCode quick;
  quick.effort = HostCode::Effort::Quick;
  if (llvm::Error error = hostJit->add(*code, quick))
    return report(module().getLoc(), std::move(error));
  cudaKernelsCompiled = true;
  secondsForKernels += watch.seconds();
  return success();
}

LogicalResult HostCompiler::fits(const placement::Machine &machine,
                                 CompileOptions options) {
  // What was predicted fits, and may be what is compiled.
  if (predicted &&
      predicted->machine == toAttr(module().getContext(), machine) &&
      predicted->placing == placingAs(module().getContext(), options))
    return success();
  options.budget = "0";
  return predict(machine, std::move(options));
}

FailureOr<int64_t> HostCompiler::predict(const placement::Machine &machine,
                                         CompileOptions options,
                                         bool mayRewrite, bool anyWillDo) {
  OwningOpRef<ModuleOp> placed = module().clone();
  if (llvm::any_of(machine.devices, isCuda) && failed(addCudaNeeds(*placed)))
    return failure();
  Attribute onMachine = toAttr(placed->getContext(), machine);
  placed->getOperation()->setAttr(BaechiDialect::kMachine, onMachine);
  PassManager manager(placed->getContext());
  if (!annotated) {
    manager.addPass(createAnnotateCosts(nullptr));
    manager.addPass(createColocate());
  }
  Predicted found{onMachine, placingAs(placed->getContext(), options)};
  options.machine.clear(); // the module's
  if (!mayRewrite)
    options.fitMemory = "never";
  PlanWatch watch{stopped};
  watch.explains = watch.isLast = false;
  // What fits as it is may be what is executed (plan).
  watch.onlyCompares = mayRewrite;
  watch.anyWillDo = anyWillDo;
  populatePlacing(manager, options, &found.report, std::move(watch));
  if (failed(manager.run(*placed)))
    return failure();
  PlacementCertificateAttr certificate = findCertificate(*placed);
  found.placed = std::move(placed);
  // What fits as it is needs nothing that only compiling may do.
  if (!found.report.memoryFit && !mayRewrite)
    predicted = std::move(found);
  return certificate ? certificate.getMakespan() : 0;
}

std::string HostCompiler::placingAs(MLIRContext *context,
                                    CompileOptions options) {
  options.machine.clear();
  options.fitMemory = "never";
  PassManager manager(context);
  populatePlacing(manager, options);
  std::string text;
  llvm::raw_string_ostream os(text);
  manager.printAsTextualPipeline(os);
  return text;
}

FailureOr<CompiledProgram> HostCompiler::plan(const placement::Machine &machine,
                                              const CompileOptions &options,
                                              StringRef prefix,
                                              OwningOpRef<ModuleOp> &code,
                                              bool isLast) {
  bool anyCuda = llvm::any_of(machine.devices, isCuda);
  beginPhase("placing");
  Stopwatch watch;
  CompiledProgram program;
  MLIRContext *context = module().getContext();
  Attribute onMachine = toAttr(context, machine);
  PlaceAndPlanReport planned;
  OwningOpRef<ModuleOp> placed;
  if (std::optional<Predicted> known = std::exchange(predicted, std::nullopt);
      known && known->machine == onMachine &&
      known->placing == placingAs(context, options)) {
    placed = std::move(known->placed);
    planned = std::move(known->report);
    // It was placed when the step was predicted.
    program.compileSeconds = planned.placeSeconds;
  } else {
    placed = module().clone();
    if (anyCuda && failed(addCudaNeeds(*placed)))
      return failure();
    placed->getOperation()->setAttr(BaechiDialect::kMachine, onMachine);
    CompileOptions placing = options;
    placing.machine.clear(); // the module's
    PassManager plan(context);
    populatePlacing(
        plan, placing, &planned,
        {.stopped = stopped,
         .progress = [this](StringRef what, size_t done,
                            size_t total) { beginPhase(what, done, total); },
         .isLast = isLast,
         .leftOut = &leftOut});
    if (failed(plan.run(*placed)))
      return failure();
  }
  program.placeSeconds = planned.placeSeconds;
  program.placements = planned.attempts;
  program.givenUp = std::move(planned.givenUp);
  program.memoryFit = std::move(planned.memoryFit);
  if (program.memoryFit || !placement::poolsOf(machine).empty())
    if (OwningOpRef<ModuleOp> whole = wholeStep(*placed))
      if (FailureOr<StepGraph> graph = buildStepGraph(*whole); succeeded(graph))
        program.rewritten = std::move(graph->graph);
  if (auto order = placed->getOperation()->getAttrOfType<StringAttr>(kExchange))
    program.exchange = order.str();
  FailureOr<StepProgram> steps = readStepProgram(*placed, machine);
  FailureOr<std::vector<std::vector<HeldTensor>>> held = heldTensors(*placed);
  if (failed(steps) || failed(held))
    return failure();
  program.held = std::move(*held);
  auto costs = machine.runtime.value_or(placement::RuntimeCosts());
  program.singleDeviceNs = singleDeviceNs(*steps, costs);
  PlacementCertificateAttr certificate = findCertificate(*placed);
  if (certificate)
    program.groups = certificate.getGroups();

  beginPhase("lowering");
  // The kernels' code is made apart.
  for (auto function :
       llvm::make_early_inc_range(placed->getOps<func::FuncOp>()))
    if (function->hasAttr(BaechiDialect::kKernel))
      function.erase();
  PassManager lower(placed->getContext());
  LowerOptions lowerOptions;
  lowerOptions.prefix = prefix.str();
  lowerOptions.target = anyCuda ? "cuda" : "host";
  lower.addPass(createLower(lowerOptions));
  if (failed(lower.run(*placed)))
    return failure();
  json::Value manifest =
      llvm::cantFail(json::parse(manifestIn(*placed, prefix)));
  program.manifest = std::move(*manifest.getAsObject());
  // What the code is of is known by who made it.
  runtime::HostInfo host = runtime::queryHost();
  if (std::vector<std::string> used = usedExtensions(jit(), host);
      !used.empty())
    program.manifest["processor"] = json::Array(used);
  if (host.cores > 0)
    program.manifest["cores"] = host.cores;
  if (json::Object *predicted = program.manifest.getObject("predicted")) {
    if (options.objective != CompileOptions().objective)
      (*predicted)["objective"] = options.objective;
    program.periodNs = predicted->getInteger("period_ns");
    program.predictedNs = predicted->getInteger("step_ns").value_or(
        certificate ? certificate.getMakespan() : 0);
  }
  if (program.givenUp)
    program.manifest["given_up"] =
        json::Object{{"placer", options.placer},
                     {"winner", program.givenUp->winner},
                     {"step_ns", program.givenUp->stepNs}};
  code = std::move(placed);
  program.compileSeconds += watch.seconds();
  return program;
}

LogicalResult HostCompiler::addCode(const placement::Machine &machine,
                                    ModuleOp code, CompiledProgram &program) {
  // Not before it is planned: what does not fit needs no code.
  bool anyHost = !llvm::all_of(machine.devices, isCuda);
  bool anyCuda = llvm::any_of(machine.devices, isCuda);
  if ((anyHost && failed(compileKernels())) ||
      (anyCuda && failed(compileCudaKernels())))
    return failure();
  Stopwatch watch;
  HostCode quick;
  quick.effort = HostCode::Effort::Quick;
  if (llvm::Error error = hostJit->add(code, quick))
    return report(module().getLoc(), std::move(error));
  program.compileSeconds += watch.seconds();
  return success();
}

FailureOr<CompiledProgram>
HostCompiler::compile(const placement::Machine &machine,
                      const CompileOptions &options, StringRef prefix,
                      bool isLast) {
  OwningOpRef<ModuleOp> code;
  FailureOr<CompiledProgram> program =
      plan(machine, options, prefix, code, isLast);
  if (failed(program) || failed(addCode(machine, *code, *program)))
    return failure();
  return program;
}

std::string CompiledProgram::manifestText() const {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(json::Object(manifest));
  return text;
}
