//===- Compile.cpp - A model is read, placed and compiled -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Driver/Report/FitReport.h"
#include "Baechi/Driver/Report/SpillReport.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Nodes.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>

using namespace mlir;
using namespace baechi;

llvm::Expected<placement::Machine>
baechi::readMachine(const std::string &spec) {
  placement::Machine machine;
  if (std::string error = placement::readMachineSpec(spec, machine);
      !error.empty())
    return llvm::createStringError(error);
  if (machine.nodes)
    return llvm::createStringError(spec + ": " +
                                   placement::nodesAreForPlanning);
  if (StringRef(spec).starts_with("cuda") && !llvm::sys::fs::exists(spec))
    lookAtGpus(machine, /*takesMemory=*/!StringRef(spec).contains('@'));
  return machine;
}

llvm::Expected<std::unique_ptr<Compilation>>
Compilation::read(DriverOptions options, placement::Machine machine,
                  Listener &listener) {
  for (const placement::Device &device : machine.devices)
    if (device.kind != "host" && device.kind != "cuda" &&
        !placement::isPool(device))
      return llvm::createStringError(
          "device '" + device.name + "' is of kind '" + device.kind +
          "'; baechi-run executes on host and cuda devices");
  std::unique_ptr<Compilation> compilation(
      new Compilation(std::move(options), std::move(machine), listener));
  if (llvm::Error error = compilation->readModel())
    return std::move(error);
  return compilation;
}

llvm::Error Compilation::readModel() {
  if (!asked.text)
    if (std::string error =
            placement::readTextFile(asked.model, asked.text.emplace());
        !error.empty())
      return llvm::createStringError(error);
  DialectRegistry registry;
  baechi::registerAllDialects(registry);
  source = std::make_unique<Source>(registry, *asked.text, asked.model,
                                    /*threads=*/asked.threads > 1, listener);
  llvm::Expected<OwningOpRef<ModuleOp>> parsed = source->parse();
  if (!parsed)
    return parsed.takeError();
  if (!asked.firstValues.empty())
    if (llvm::Error error =
            source->giveFirstValues(**parsed, asked.firstValues))
      return error;
  forms.setModel(std::move(*parsed));
  for (auto function : forms.model().getOps<func::FuncOp>())
    if (isHostCall(function) && !asked.hostCalls) {
      emitError(function.getLoc())
          << "@" << function.getName()
          << " is a host call, which a host program computes: emit a library "
             "(--emit=so) and give it the function, or run the step by "
             "baechi.jit";
      return diagnosed();
    }

  if (!asked.step.empty() && failed(chooseStep(forms.model(), asked.step)))
    return diagnosed();
  if (failed(partitionLoops(forms.model(), asked)))
    return diagnosed();
  if (failed(expandReplicas()))
    return diagnosed();
  if (llvm::Error error = checkReplicated(asked))
    return error;
  settleSplits();
  if (std::string why = whyTooManyDevices(
          asked.replicas, int64_t(placement::numComputing(target)));
      !why.empty())
    return llvm::createStringError(why);
  readChecks();
  llvm::Expected<SplitChoice> splits =
      splitChoiceOf(asked, placement::numComputing(target));
  if (!splits)
    return splits.takeError();
  if (splits->exact && hasDeviceOf("cuda"))
    return llvm::createStringError(kExactOnGpus);
  if (splits->exact && failed(foldSums()))
    return diagnosed();
  if (llvm::Error error = unrollLoops())
    return error;
  if (llvm::Error error = undoCheckpoints())
    return error;
  SmallVector<SplitChoice> choices;
  bool isCut = splits->pieces >= 2 && mayCut;
  if (!splits->always && (mayStayWhole || !isCut))
    choices.push_back({.reductions = splits->reductions,
                       .exact = splits->exact,
                       .asked = splits->asked});
  costs.readProfile();
  // Slices are sized by what their messages take.
  if (!asked.exchange.empty() && costs.whyNotRead().empty())
    if (llvm::Error error = costs.measureCarrier(/*isAnew=*/false))
      return error;
  llvm::Expected<std::optional<SplitChoice>> sliced =
      slicedChoiceOf(*splits, asked, target, costs.carrierMessageNs());
  if (!sliced)
    return sliced.takeError();
  if (*sliced)
    choices.push_back(**sliced);
  slicesParameters = bool(*sliced);
  if (isCut)
    choices.push_back(*splits);
  Phase phase(listener, "forming kernels");
  for (auto [number, choice] : llvm::enumerate(choices)) {
    if (choices.size() > 1)
      phase(number, choices.size());
    FailureOr<std::unique_ptr<HostCompiler>> created = forms.form(choice);
    if (failed(created))
      return diagnosed();
    compilers.push_back(std::move(*created));
  }
  if (failed(addWholeLoops(choices.front())))
    return diagnosed();
  firstChoice = choices.front();
  hostCompiler = compilers.front().get();
  tellPhases();
  return llvm::Error::success();
}

LogicalResult Compilation::expandReplicas() {
  PassManager passes(forms.model().getContext());
  passes.addPass(createExpandReplicas());
  FailureOr<func::FuncOp> step;
  if (failed(passes.run(forms.model())) ||
      failed(step = findFuncStep(forms.model())))
    return failure();
  auto written = (*step)->getAttrOfType<IntegerAttr>(kReplicas);
  if (written && asked.replicas < 2)
    asked.replicas = unsigned(written.getInt());
  return success();
}

bool Compilation::hasDeviceOf(StringRef kind) const {
  return baechi::hasDeviceOf(target, kind);
}

void Compilation::tellPhases() {
  hostCompiler->setPhaseObserver(
      [this](StringRef phase, size_t done, size_t total) {
        if (done == 0) {
          current.reset();
          current.emplace(listener, phase);
        }
        if (total > 0)
          (*current)(done, total);
      });
}

llvm::Error Compilation::findCosts(SetArguments setArguments) {
  if (!costs.whyNotRead().empty())
    return llvm::createStringError(costs.whyNotRead());
  compareCuts();
  addAsWritten(firstChoice);
  addMicroBatches();
  auto start = std::chrono::steady_clock::now();
  for (const std::unique_ptr<HostCompiler> &compiler : compilers) {
    use(*compiler);
    if (llvm::Error error = findCurrentCosts(setArguments))
      return error;
  }
  costs.measurePeaks();
  profileSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  costs.keep();
  return llvm::Error::success();
}

llvm::Error Compilation::findCurrentCosts(SetArguments setArguments) {
  costs.tellCarrier(hostCompiler->module());
  auto create = [this](StringRef kind) { return createSingle(kind); };
  return costs.find(*hostCompiler, {create, setArguments});
}

llvm::Error Compilation::compile(SetArguments setArguments) {
  bool found = false;
  std::vector<Candidate> candidates(compilers.size());
  for (size_t number = 0; number < compilers.size(); ++number) {
    use(*compilers[number]);
    // Where one of several does not fit, another may.
    bool isLast = number + 1 == compilers.size() && !found;
    FailureOr<CompiledProgram> program = failure();
    if (isLast)
      program = compileOrCut(setArguments);
    else
      (void)forms.quietly([&] {
        program = mayTry() ? hostCompiler->compile(target, asked, "baechi",
                                                   /*isLast=*/false)
                           : hostCompiler->plan(target, asked, "baechi",
                                                candidates[number].code,
                                                /*isLast=*/false);
        return LogicalResult(program);
      });
    endPhases();
    if (listener.isStopped() || (failed(program) && isLast))
      return diagnosed();
    if (failed(program))
      continue;
    if (cutReport) {
      number = compilers.size() - 1;
      candidates.resize(compilers.size());
    }
    candidates[number].predictedNs = aimedNs(*program);
    candidates[number].program = std::move(*program);
    found = true;
  }
  addShorterCut(candidates, setArguments);
  if (listener.isStopped())
    return diagnosed();
  llvm::Expected<size_t> chosen = choose(candidates, setArguments);
  if (!chosen)
    return chosen.takeError();
  size_t best = *chosen;
  findOrigins(candidates);
  compiled = std::move(*candidates[best].program);
  if (OwningOpRef<ModuleOp> &code = candidates[best].code) {
    use(*compilers[best]);
    LogicalResult added = hostCompiler->addCode(target, *code, compiled);
    endPhases();
    if (failed(added))
      return diagnosed();
  }
  settleLoops(best, candidates);
  reportExchange(best, candidates);
  if (microBatches && best == microCompiler)
    listener.note(
        "the whole step does not fit the memories; it is computed in " +
        llvm::Twine(microBatches) + " micro-batches, as splits=micro:" +
        llvm::Twine(microBatches) + " does");
  if (best + 1 < compilers.size() && cutReport) {
    otherCuts = "cut by " + cutReport->request.text() +
                " it was predicted to be shorter, and took longer";
    cutReport.reset();
  }
  if (cutReport) {
    compiled.manifest["cut_to_fit"] = cutReport->toJson();
    listener.note("the step as it is does not fit the memories; it is computed "
                  "in pieces, as fit-memory=auto does");
  }
  std::optional<llvm::json::Object> spills = spillsOf(compiled.manifest);
  if (compiled.memoryFit) {
    compiled.manifest["memory_fit"] = toJson(*compiled.memoryFit);
    listener.note("the step as it is does not fit the memories; values are "
                  "computed again, as fit-memory=auto does");
  }
  if (spills) {
    listener.note("the step as it is does not fit the memories; tensors wait "
                  "in a pool, as fit-memory=auto does");
    addSpills(compiled.manifest, std::move(*spills));
  }
  if (llvm::json::Object *fit = compiled.manifest.getObject("memory_fit");
      fit && !cutReport && !otherCuts.empty())
    fit->getArray("text")->push_back(otherCuts);
  if (loops)
    compiled.manifest["unrolled_loops"] = loops->toJson();
  reportCheckpoints(best, candidates);
  reportPieces(best, candidates);
  if (otherCosts)
    costs.recount(compilers[best]->module());
  if (asked.costs == "measured")
    compiled.manifest["kernel_costs"] = costs.counts().toJson();
  // What lost is not needed any more, nor are its programs.
  use(*compilers[best]);
  findRoofline();
  std::unique_ptr<HostCompiler> winner = std::move(compilers[best]);
  compilers.clear();
  compilers.push_back(std::move(winner));
  forms.clear();
  asWritten = nullptr;
  lowered->clear();
  return llvm::Error::success();
}

int64_t Compilation::aimedNs(const CompiledProgram &program) const {
  // Carried messages gain by steps that overlap.
  bool isOfPeriod = asked.objective == "period" || !asked.exchange.empty();
  return isOfPeriod ? program.periodNs.value_or(program.predictedNs)
                    : program.predictedNs;
}

void Compilation::findRoofline() {
  if (!costs.profile().peaks || hasDeviceOf("cuda"))
    return;
  int64_t devices = placement::numComputing(target);
  roofline =
      stepRoofline(module(), *costs.profile().peaks,
                   std::min<int64_t>(devices, runtime::queryHost().cores));
  compiled.manifest["roofline"] = roofline->toJson();
}

void Compilation::use(HostCompiler &compiler) {
  if (hostCompiler == &compiler)
    return;
  endPhases();
  hostCompiler->setPhaseObserver(nullptr);
  hostCompiler = &compiler;
  tellPhases();
}

placement::Device Compilation::withAllMemory(StringRef kind) const {
  placement::Device whole{"", kind.str(), 0};
  for (const placement::Device &device : target.devices)
    if (device.kind == kind) {
      whole.name = whole.name.empty() ? device.name : whole.name;
      whole.memory += device.memory;
    }
  if (kind == "host")
    whole.memory = runtime::queryHost().memoryBytes;
  return whole;
}

llvm::Expected<std::unique_ptr<Execution>>
Compilation::createSingle(StringRef kind) {
  auto [entry, isNew] = singlePrograms.try_emplace({hostCompiler, kind.str()});
  if (isNew) {
    placement::Machine alone;
    alone.devices = {withAllMemory(kind)};
    alone.links.resize(1);
    alone.linkModel = target.linkModel;
    CompileOptions options;
    options.placer = "single";
    options.grouping = "none";
    options.fitMemory = "never";
    ScopedDiagnosticHandler quiet(source->context(),
                                  [](Diagnostic &) { return success(); });
    // It is a part of what it is for.
    hostCompiler->setPhaseObserver(nullptr);
    FailureOr<CompiledProgram> program =
        hostCompiler->compile(alone, options, "single_" + kind.str());
    tellPhases();
    if (failed(program)) {
      singlePrograms.erase(entry);
      return nullptr;
    }
    entry->second = std::move(*program);
  }
  return Execution::create(hostCompiler->jit(), entry->second, asked.watchdog);
}

void Compilation::describe(RunReport &report) const {
  report.model = asked.model;
  report.machine = asked.machine;
  report.placer = asked.placer;
  report.objective = asked.objective;
  report.target =
      asked.hostTarget.empty() ? HostJit::hostTarget() : asked.hostTarget;
  report.costs = asked.costs;
  if (hasDeviceOf("cuda"))
    report.cudaMath = asked.cudaMath;
  for (auto kernel : hostCompiler->module().getOps<func::FuncOp>())
    if (auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
            BaechiDialect::kCudaConvolution)) {
      ++report.cudaConvolutions;
      report.cudnnConvolutions += how.callsLibrary();
    }
  report.operatorsBefore = hostCompiler->operatorsBefore();
  report.operators = hostCompiler->operatorsFormed();
  report.kernels = hostCompiler->kernels();
  report.formSeconds = hostCompiler->formSeconds();
  report.profileSeconds = profileSeconds;
  report.kernelCosts = costs.counts();
  report.kernelSeconds = hostCompiler->kernelSeconds();
  report.kernelsFromStore = hostCompiler->kernelsFromStore();
  report.compiled = compiled;
  report.pieces = pieces;
  report.roofline = roofline;
}
