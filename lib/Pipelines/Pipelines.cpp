//===- Pipelines.cpp - The named pipelines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Conversion/Passes.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Checkpoints/Passes.h"
#include "Baechi/Transforms/Exact/Passes.h"
#include "Baechi/Transforms/Loops/Passes.h"
#include "Baechi/Transforms/Passes.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "Baechi/Transforms/Unroll/Passes.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace baechi;

static void addSplit(OpPassManager &manager, const SplitChoice &splits,
                     SplitReport *report, bool numbersSums) {
  SplitOptions split;
  split.pieces = splits.pieces;
  split.reductions = splits.reductions;
  split.forced = splits.forced;
  split.chained = splits.chained;
  split.needsBatch = splits.needsBatch;
  split.ordered = splits.ordered;
  split.largestFirst = splits.largestFirst;
  split.sentPercent = splits.sentPercent;
  split.restPieces = splits.restPieces;
  split.restSentPercent = splits.restSentPercent;
  // Not where results are the same on any machine.
  split.mergeMoments = splits.reductions && !splits.always;
  split.stored = true;
  manager.addPass(createSplit(split, report, numbersSums));
}

static void addCutting(OpPassManager &manager, const SplitChoice &splits,
                       SplitReport *report, bool numbersSums) {
  manager.addPass(createExpandReplicas());
  manager.addPass(createInlineStep());
  if (splits.exact)
    manager.addPass(createFixSums());
  if (!splits.asked.empty()) {
    ConstrainOptions constrain;
    constrain.splits.assign(splits.asked.begin(), splits.asked.end());
    manager.addPass(createConstrain(constrain));
  }
  if (splits.replicas > 1) {
    ReplicateOptions replicate;
    replicate.replicas = splits.replicas;
    manager.addPass(createReplicate(replicate, report));
    if (splits.sliceBytes || splits.latencyBytes) {
      SliceParametersOptions slice;
      slice.sliceBytes = splits.sliceBytes;
      slice.latencyBytes = splits.latencyBytes;
      slice.factors = splits.factors;
      manager.addPass(createSliceParameters(slice));
    }
  } else {
    addSplit(manager, splits, report, numbersSums);
  }
}

static void addKernels(OpPassManager &manager,
                       const CudaProductOptions *products,
                       SumOrders *sums = nullptr) {
  manager.addPass(createFormKernels(sums));
  if (products) {
    CudaProductsOptions options;
    options.math = products->math;
    options.workspace = products->workspaceBytes;
    options.biases = products->biases;
    options.updates = products->updates;
    options.convolutions = products->convolutions;
    manager.addPass(createCudaProducts(options));
  }
}

void baechi::populateFolding(OpPassManager &manager,
                             const CompileOptions &options) {
  FoldSumsOptions fold;
  llvm::append_range(fold.keep, patternsOf(options.split));
  manager.addPass(createFoldSums(fold));
}

void baechi::populateUnrolling(OpPassManager &manager,
                               const UnrollChoice &choice,
                               UnrolledLoops *unrolled) {
  UnrollLoopsOptions unroll;
  unroll.limit = choice.limit;
  unroll.leastShare = choice.leastShare;
  unroll.leastNs = choice.leastNs;
  unroll.mostWrites = choice.mostWrites;
  unroll.keep.assign(choice.keep.begin(), choice.keep.end());
  manager.addPass(createInlineStep());
  manager.addPass(createUnrollLoops(unroll, unrolled));
}

void baechi::populateForming(OpPassManager &manager,
                             const CudaProductOptions *products,
                             const SplitChoice &splits,
                             std::shared_ptr<LoweredKernels> lowered) {
  populateCutting(manager, splits);
  populateKernels(manager, products, std::move(lowered));
}

void baechi::populateKernels(OpPassManager &manager,
                             const CudaProductOptions *products,
                             std::shared_ptr<LoweredKernels> lowered) {
  addKernels(manager, products);
  manager.addPass(createKernelScratch(std::move(lowered)));
}

void baechi::populateOutlining(OpPassManager &manager,
                               const CudaProductOptions *products,
                               const SplitChoice &splits, SumOrders *sums) {
  addCutting(manager, splits, /*report=*/nullptr,
             /*numbersSums=*/sums != nullptr);
  addKernels(manager, products, sums);
}

void baechi::populateOutliningKernels(OpPassManager &manager) {
  addKernels(manager, /*products=*/nullptr);
}

void baechi::populateCutting(OpPassManager &manager, const SplitChoice &splits,
                             SplitReport *report) {
  addCutting(manager, splits, report, /*numbersSums=*/false);
}

void baechi::populatePlacing(OpPassManager &manager,
                             const CompileOptions &options,
                             PlaceAndPlanReport *report, PlanWatch watch) {
  if (!options.pins.empty()) {
    ConstrainOptions constrain;
    constrain.pins.assign(options.pins.begin(), options.pins.end());
    constrain.machine = options.machine;
    manager.addPass(createConstrain(constrain));
  }
  if (!options.placement.empty()) {
    LoadPlacementOptions load;
    load.file = options.placement;
    load.machine = options.machine;
    manager.addPass(createLoadPlacement(load));
  }
  if (options.replicas > 1) {
    PinReplicasOptions pin;
    pin.machine = options.machine;
    pin.factors = options.factors == "smaller";
    if (llvm::Expected<ExchangeChoice> exchange = exchangeChoiceOf(options)) {
      pin.exchange = exchange->order;
      pin.sliceBytes = exchange->sliceBytes;
    } else {
      llvm::consumeError(exchange.takeError()); // checkOptions has told it
    }
    manager.addPass(createPinReplicas(pin));
  }
  PlaceAndPlanOptions place;
  place.placer = options.placer;
  place.grouping = options.grouping;
  place.expert = options.expert;
  place.budget = options.budget;
  place.objective = options.objective;
  place.machine = options.machine;
  place.transfers = options.transfers;
  place.fitMemory = options.fitMemory;
  manager.addPass(createPlaceAndPlan(place, report, std::move(watch)));
}

void baechi::buildPlanPipeline(OpPassManager &manager) {
  addPlanPasses(manager);
}

/// How many GPUs the machine is; 0 where it has other devices, too.
static size_t countOnlyGpus(const std::string &spec) {
  placement::Machine machine;
  bool areGpus = placement::readMachineSpec(spec, machine).empty() &&
                 llvm::all_of(machine.devices, [](auto &device) {
                   return device.kind == "cuda";
                 });
  return areGpus ? machine.devices.size() : 0;
}

void baechi::buildCompilePipeline(OpPassManager &manager,
                                  const CompileOptions &options,
                                  const SplitChoice &splits, StringRef target) {
  bool gpus = target == "cuda";
  CudaProductOptions products;
  products.math = options.cudaMath;
  products.convolutions = options.cudaConvolutions;
  const size_t only = gpus ? countOnlyGpus(options.machine) : 0;
  products.biases = only > 0;
  products.updates = only == 1 && !options.asksByNames();
  auto lowered = std::make_shared<LoweredKernels>();
  if (splits.exact)
    populateFolding(manager, options);
  // Passes compare no predictions.
  if (auto unroll = llvm::cantFail(unrollChoiceOf(options));
      unroll && (unroll->always || unroll->byStepAlone)) {
    manager.addPass(createExpandReplicas());
    populateUnrolling(manager, *unroll);
  }
  populateForming(manager, gpus ? &products : nullptr, splits, lowered);
  AnnotateCostsOptions costs;
  costs.profile = options.profile;
  manager.addPass(createAnnotateCosts(costs));
  if (gpus)
    manager.addPass(createCudaScratch());
  manager.addPass(createColocate());
  populatePlacing(manager, options);
  if (gpus) {
    LowerCudaKernelsOptions kernels;
    kernels.keepKernels = true; // Host devices may be there, too.
    manager.addPass(createLowerCudaKernels(kernels));
  }
  manager.addPass(createLowerKernels(std::move(lowered)));
  LowerOptions lower;
  lower.target = target.str();
  manager.addPass(createLower(lower));
}

namespace {
/// Those of the table that passes have, as MLIR reads and describes them.
struct CompilePipelineOptions
    : public PassPipelineOptions<CompilePipelineOptions> {
  CompilePipelineOptions() {
    CompileOptions defaults;
    defaults.machine.clear();
    for (const CompileOption &option : compileOptions())
      if (option.list && !option.inPasses.empty())
        lists.emplace_back(
            &option, std::make_unique<ListOption<std::string>>(
                         *this, option.inPasses, llvm::cl::desc(option.help)));
      else if (option.number && !option.inPasses.empty())
        numbers.emplace_back(
            &option, std::make_unique<Option<unsigned>>(
                         *this, option.inPasses, llvm::cl::desc(option.help),
                         llvm::cl::init(defaults.*option.number)));
      else if (option.text && !option.inPasses.empty())
        texts.emplace_back(&option, std::make_unique<Option<std::string>>(
                                        *this, option.inPasses,
                                        llvm::cl::desc(option.help),
                                        llvm::cl::init(defaults.*option.text)));
  }

  CompileOptions options() const {
    CompileOptions options;
    for (const auto &[option, text] : texts)
      options.*option->text = *text;
    for (const auto &[option, number] : numbers)
      options.*option->number = *number;
    for (const auto &[option, list] : lists)
      (options.*option->list).assign(list->begin(), list->end());
    return options;
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("host or cuda"),
                             llvm::cl::init("host")};

private:
  template <typename T>
  using Made =
      std::vector<std::pair<const CompileOption *, std::unique_ptr<T>>>;
  Made<Option<std::string>> texts;
  Made<Option<unsigned>> numbers;
  Made<ListOption<std::string>> lists;
};
} // namespace

/// Wrong words are found here, before all kernels are formed.
static LogicalResult
readCompilePipeline(OpPassManager &manager, StringRef text,
                    function_ref<LogicalResult(const Twine &)> error) {
  CompilePipelineOptions given;
  if (failed(given.parseFromString(text)))
    return failure();
  CompileOptions options = given.options();
  if (llvm::Error wrong = checkOptions(options))
    return error(llvm::toString(std::move(wrong)));
  if (std::string wrong = wrongTarget(given.target.getValue()); !wrong.empty())
    return error(wrong);
  placement::Machine machine;
  if (options.splits == "any" || options.splits == "exact")
    if (std::string wrong =
            placement::readMachineSpec(options.machine, machine);
        !wrong.empty())
      return error(
          "splits=" + options.splits +
          " cuts one piece a device, and the pipeline has no machine: " +
          wrong);
  if (llvm::Error wrong = checkReplicated(options))
    return error(llvm::toString(std::move(wrong)));
  llvm::Expected<SplitChoice> splits =
      splitChoiceOf(options, placement::numComputing(machine));
  if (!splits)
    return error(llvm::toString(splits.takeError()));
  if (splits->exact && given.target.getValue() == "cuda")
    return error(kExactOnGpus.str());
  buildCompilePipeline(manager, options, *splits, given.target.getValue());
  return success();
}

void baechi::registerPipelines() {
  // Not PassPipelineRegistration: it reports no errors.
  registerPassPipeline(
      "baechi-compile",
      "From linalg on tensors to a lowered multi-device program",
      readCompilePipeline,
      [](function_ref<void(const mlir::detail::PassOptions &)> handle) {
        handle(CompilePipelineOptions());
      });
}

void baechi::registerAllPasses() {
  registerBaechiUnrollPasses();
  registerBaechiLoopsPasses();
  registerBaechiExactPasses();
  registerBaechiCheckpointPasses();
  registerBaechiReplicaPasses();
  registerBaechiTransformsPasses();
  registerBaechiConversionPasses();
  registerPipelines();
}

void baechi::registerAllDialects(DialectRegistry &registry) {
  registry.insert<BaechiDialect>();
  func::registerInlinerExtension(registry);
  registerKernelDialects(registry);
  registerCudaKernelDialects(registry);
}
