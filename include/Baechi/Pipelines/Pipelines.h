//===- Pipelines.h - The named pipelines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIPELINES_PIPELINES_H
#define BAECHI_PIPELINES_PIPELINES_H

#include "Baechi/Conversion/CudaKernels.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace baechi {

/// --baechi-compile="machine=host:2 placer=msct target=host".
struct CompileOptions : public mlir::PassPipelineOptions<CompileOptions> {
  Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("machine file, or host:N[@SIZE]; default: the module's "
                     "baechi.machine")};
  Option<std::string> placer{*this, "placer",
                             llvm::cl::desc("a placer of --baechi-place"),
                             llvm::cl::init("msct")};
  Option<std::string> profile{*this, "profile",
                              llvm::cl::desc("profile file; default: the "
                                             "roofline's estimates")};
  ListOption<std::string> pins{
      *this, "pins",
      llvm::cl::desc("PATTERN=DEVICE, with commas (--baechi-constrain)")};
  Option<std::string> placement{
      *this, "placement",
      llvm::cl::desc("placement file with names: what it places stays there "
                     "(--baechi-load-placement)")};
  Option<std::string> budget{
      *this, "budget",
      llvm::cl::desc("improvement over the placer: auto, 0, seconds or "
                     "evaluations (5000e)"),
      llvm::cl::init("auto")};
  Option<std::string> target{*this, "target", llvm::cl::desc("host or cuda"),
                             llvm::cl::init("host")};
  Option<std::string> cudaMath{
      *this, "cuda-math",
      llvm::cl::desc("what GPUs may round the factors of products to: fp32, "
                     "tf32, bf16 or fp16 (--baechi-cuda-products)"),
      llvm::cl::init("fp32")};
};

/// The passes that make kernels of a model: the same for --baechi-compile and
/// HostCompiler, so that both place the same operators. \p products: how GPUs
/// compute products; null where there are none.
void populateForming(mlir::OpPassManager &manager,
                     const CudaProductOptions *products);

/// Placement and memory plan by \p options, and what a person asks of them:
/// pins (PATTERN=DEVICE, --baechi-constrain) and a file
/// (--baechi-load-placement).
void populatePlacing(mlir::OpPassManager &manager,
                     const PlaceAndPlanOptions &options,
                     llvm::ArrayRef<std::string> pins,
                     const std::string &placement,
                     PlaceAndPlanReport *report = nullptr,
                     std::function<bool()> stopped = {});

/// From linalg on tensors to a lowered multi-device program.
void buildCompilePipeline(mlir::OpPassManager &manager,
                          const CompileOptions &options);

/// What follows placement: partition and memory plan, each verified.
void buildPlanPipeline(mlir::OpPassManager &manager);

void registerPipelines();

/// Every pass and pipeline of the project.
void registerAllPasses();

/// Every dialect that the passes read or make, with what lowering needs.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace baechi

#endif // BAECHI_PIPELINES_PIPELINES_H
