//===- Pipelines.cpp - The named pipelines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Conversion/CudaKernels.h"
#include "Baechi/Conversion/HostKernels.h"
#include "Baechi/Conversion/KernelDialects.h"
#include "Baechi/Conversion/Passes.h"
#include "Baechi/Placement/Io.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace baechi;

void baechi::populateForming(OpPassManager &manager,
                             const CudaProductOptions *products) {
  manager.addPass(createInlineStep());
  manager.addPass(createFormKernels());
  if (products) {
    CudaProductsOptions options;
    options.math = products->math;
    options.workspace = products->workspaceBytes;
    options.biases = products->biases;
    manager.addPass(createCudaProducts(options));
  }
  manager.addPass(createKernelScratch());
}

void baechi::populatePlacing(OpPassManager &manager,
                             const PlaceAndPlanOptions &options,
                             ArrayRef<std::string> pins,
                             const std::string &placement,
                             PlaceAndPlanReport *report,
                             std::function<bool()> stopped) {
  if (!pins.empty()) {
    ConstrainOptions constrain;
    constrain.pins.assign(pins.begin(), pins.end());
    constrain.machine = options.machine;
    manager.addPass(createConstrain(constrain));
  }
  if (!placement.empty()) {
    LoadPlacementOptions load;
    load.file = placement;
    load.machine = options.machine;
    manager.addPass(createLoadPlacement(load));
  }
  manager.addPass(createPlaceAndPlan(options, report, std::move(stopped)));
}

void baechi::buildPlanPipeline(OpPassManager &manager) {
  addPlanPasses(manager);
}

static bool hasOnlyGpus(const std::string &spec) {
  placement::Machine machine;
  return placement::readMachineSpec(spec, machine).empty() &&
         llvm::all_of(machine.devices,
                      [](auto &device) { return device.kind == "cuda"; });
}

void baechi::buildCompilePipeline(OpPassManager &manager,
                                  const CompileOptions &options) {
  bool gpus = options.target == "cuda";
  CudaProductOptions products;
  products.math = options.cudaMath;
  products.biases = gpus && hasOnlyGpus(options.machine);
  populateForming(manager, gpus ? &products : nullptr);
  AnnotateCostsOptions costs;
  costs.profile = options.profile;
  manager.addPass(createAnnotateCosts(costs));
  if (gpus)
    manager.addPass(createCudaScratch());
  manager.addPass(createColocate());
  PlaceAndPlanOptions place;
  place.placer = options.placer;
  place.machine = options.machine;
  place.budget = options.budget;
  std::vector<std::string> pins(options.pins.begin(), options.pins.end());
  populatePlacing(manager, place, pins, options.placement);
  if (gpus) {
    LowerCudaKernelsOptions kernels;
    kernels.keepKernels = true; // Host devices may be there, too.
    manager.addPass(createLowerCudaKernels(kernels));
  }
  manager.addPass(createLowerKernels());
  LowerOptions lower;
  lower.target = options.target;
  manager.addPass(createLower(lower));
}

/// Wrong words are found here, before all kernels are formed.
static LogicalResult
readCompilePipeline(OpPassManager &manager, StringRef text,
                    function_ref<LogicalResult(const Twine &)> error) {
  CompileOptions options;
  if (failed(options.parseFromString(text)))
    return failure();
  for (const std::string &mistake : {wrongPlacer(options.placer.getValue()),
                                     wrongTarget(options.target.getValue()),
                                     wrongCudaMath(options.cudaMath)})
    if (!mistake.empty())
      return error(mistake);
  buildCompilePipeline(manager, options);
  return success();
}

void baechi::registerPipelines() {
  // Not PassPipelineRegistration: it reports no errors.
  registerPassPipeline(
      "baechi-compile",
      "From linalg on tensors to a lowered multi-device program",
      readCompilePipeline,
      [](function_ref<void(const mlir::detail::PassOptions &)> handle) {
        handle(CompileOptions());
      });
}

void baechi::registerAllPasses() {
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
