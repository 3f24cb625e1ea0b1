//===- baechi-run.cpp - Place a model, run it, report -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineSpec.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Target/StepLibrary.h"
#include "Baechi/Transforms/Passes.h"
#include "CudaCosts.h"
#include "Execution.h"
#include "Files.h"
#include "Inputs.h"
#include "Options.h"
#include "Progress.h"
#include "QueryMachine.h"
#include "Ranks.h"
#include "Report.h"
#include "StepCosts.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;
using namespace baechi;

namespace {
llvm::ExitOnError exitOnError("baechi-run: error: ");

std::vector<int64_t> residentBytesOf(const runtime::Program &program) {
  std::vector<int64_t> bytes(program.devices.size());
  for (const runtime::ArgumentInfo &argument : program.arguments)
    bytes[argument.device] += llvm::alignTo(argument.bytes, kAlignment);
  return bytes;
}

/// One run of the tool: a model from its file to the report.
class Run {
public:
  /// \p ranks: the processes that run it together; null: this one alone.
  Run(RunOptions options, std::shared_ptr<runtime::Ranks> ranks)
      : options(std::move(options)), ranks(std::move(ranks)) {}

  /// The exit status: 1 when results are not what they should be.
  int operator()() {
    std::string error;
    std::optional<placement::Machine> target =
        readMachineSpec(options.machine, error);
    if (!target)
      exitOnError(llvm::createStringError(error));
    machine = std::move(*target);
    if (StringRef(options.machine).starts_with("cuda") &&
        !StringRef(options.machine).contains('@') &&
        !llvm::sys::fs::exists(options.machine))
      takeGpuMemory(machine);
    if (!options.queryMachine.empty()) {
      exitOnError(queryMachine(machine, options.queryMachine));
      return 0;
    }
    for (const placement::Device &device : machine.devices)
      if (device.kind != "host" && device.kind != "cuda")
        exitOnError(llvm::createStringError(
            "device '" + device.name + "' is of kind '" + device.kind +
            "'; baechi-run executes on host and cuda devices"));
    if (!options.calibrate.empty() && machine.devices.size() < 2)
      exitOnError(llvm::createStringError(
          "--calibrate needs at least two devices in --machine"));
    if (!options.reference.empty())
      expected = exitOnError(readReference(options.reference));
    if (ranks && machine.devices.size() < size_t(ranks->size()))
      exitOnError(llvm::createStringError(
          "mpirun started " + std::to_string(ranks->size()) +
          " processes for " + std::to_string(machine.devices.size()) +
          " devices: start no more processes than --machine has devices"));
    size_t cores = runtime::queryHost().cores;
    if (!ranks && machine.devices.size() > cores)
      llvm::errs() << "baechi-run: note: " << machine.devices.size()
                   << " devices share " << cores
                   << (cores == 1 ? " core" : " cores")
                   << "; the prediction has one for each\n";

    compileModel();
    if (!options.emit.empty())
      return emitLibrary();
    execute();
    return tell();
  }

private:
  /// Passes have said what is wrong.
  [[noreturn]] void stop() { exit(1); }

  void compileModel() {
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
    handler = std::make_unique<SourceMgrDiagnosticHandler>(
        sources, context.get(), llvm::errs());
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

  void measureMachine() {
    // A short form's links are only assumed; the plan is as good as they are.
    bool assumed = StringRef(options.machine).starts_with("host:") &&
                   options.costs == "measured";
    bool unknown = !options.calibrate.empty() && !machine.runtime;
    if (machine.devices.size() > 1 && (assumed || unknown))
      exitOnError(measureLinks(machine));
  }

  bool hasDeviceOf(StringRef kind) const {
    return llvm::any_of(machine.devices, [&](const placement::Device &device) {
      return device.kind == kind;
    });
  }

  void findCosts() {
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

  /// Runs the model on one device for what its kernels take within a step.
  llvm::Error refineCosts(StringRef kind, Profile &profile) {
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

  /// Without the diagnostics.
  LogicalResult quietly(llvm::function_ref<LogicalResult()> run) {
    ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    return run();
  }

  int emitLibrary() {
    exitOnError(writeStepLibrary(options.output, report.compiled.manifest,
                                 compiler->jit().objects()));
    llvm::outs() << "wrote " << options.output << " and its header, for "
                 << HostJit::hostTarget() << '\n';
    return 0;
  }

  void execute() {
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

  llvm::Error runSteps() {
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

  /// Gives all arguments their first values; returns how many were invented.
  llvm::Expected<size_t> setArguments(Execution &execution) {
    FailureOr<func::FuncOp> step = findFuncStep(compiler->module());
    FirstValues values = exitOnError(FirstValues::read(*step, options.inputs));
    for (size_t i = 0; i < execution.program().arguments.size(); ++i)
      if (llvm::Error error =
              execution.setArgument(i, exitOnError(values.take(i))))
        return std::move(error);
    return values.invented();
  }

  /// False, with the reason in the report, when there is nothing to compare
  /// with.
  bool startSingle() {
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

  /// The first device of its kind, with the memory that all such devices have.
  placement::Device withAllMemory(StringRef kind) {
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

  /// The same model on one device; null when that cannot hold it.
  llvm::Expected<std::unique_ptr<Execution>>
  createSingle(const placement::Device &device) {
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

  std::optional<size_t> findLoss() {
    for (auto [index, result] : llvm::enumerate(placed->program().results))
      if (result.shape.empty() && result.type == runtime::ElementType::F32) {
        report.lossName = result.name;
        return index;
      }
    return std::nullopt;
  }

  void compareLosses() {
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

  int tell() {
    report.model = options.model;
    report.machine = options.machine;
    report.placer = options.place.placer;
    report.target = HostJit::hostTarget();
    report.costs = options.costs;
    if (hasDeviceOf("cuda"))
      report.cudaMath = options.cudaMath;
    report.operatorsBefore = compiler->operatorsBefore();
    report.operators = compiler->operatorsFormed();
    report.kernels = compiler->kernels();
    report.formSeconds = compiler->formSeconds();
    report.kernelSeconds = compiler->kernelSeconds();
    report.kernelsFromStore = compiler->kernelsFromStore();
    report.program = placed->program();
    report.residentBytes = residentBytesOf(report.program);
    report.measured = placed->measurement();
    report.timeline = placed->fastest();
    if (single) {
      report.single = single->measurement();
      report.singlePredictedNs = report.compiled.singleDeviceNs;
    }
    // The one who reads the JSON from a pipe has that alone there.
    report.print(options.json == "-" ? llvm::errs() : llvm::outs());

    if (!options.calibrate.empty() && !single)
      exitOnError(llvm::createStringError(
          "--calibrate compares with one device: " + report.singleRefused));
    exitOnError(writeFiles(
        options, {compiler->module(), machine, report, *placed, single.get()}));
    bool wrong = !report.difference.empty() ||
                 (report.reference && !report.reference->agrees());
    return wrong ? 1 : 0;
  }

  RunOptions options;
  std::shared_ptr<runtime::Ranks> ranks;
  placement::Machine machine;
  std::unique_ptr<MLIRContext> context;
  llvm::SourceMgr sources;
  std::unique_ptr<SourceMgrDiagnosticHandler> handler;
  std::unique_ptr<HostCompiler> compiler;
  std::unique_ptr<Execution> placed, single;
  std::map<std::string, CompiledProgram> singlePrograms; ///< a kind each
  std::shared_ptr<runtime::NthCallFails> faults;
  std::vector<double> expected; ///< the reference's losses
  RunReport report;
};
} // namespace

int main(int argc, char **argv) {
  // A symbolizer is started with memory that a broken heap may not have: the
  // report of a crash would wait for ever.
  setenv("LLVM_DISABLE_SYMBOLIZATION", "1", /*overwrite=*/0);
  llvm::InitLLVM init(argc, argv);
  RunOptions options = parseOptions(argc, argv);
  std::shared_ptr<runtime::Ranks> ranks = exitOnError(joinRanks(options));
  if (ranks && !ranks->leads())
    return serveRank(options, ranks);
  int status = Run(std::move(options), std::move(ranks))();
  exitOnError(endOutput());
  return status;
}
