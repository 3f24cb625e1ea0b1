//===- Pipelines.h - The named pipelines -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PIPELINES_PIPELINES_H
#define BAECHI_PIPELINES_PIPELINES_H

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Pipelines/CompileOptions.h"
#include "Baechi/Transforms/PlanWatch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace baechi {

struct UnrolledLoops;

/// Sums of products made one, where sums have one order, but for what `split`
/// names; before loops are written out.
void populateFolding(mlir::OpPassManager &manager,
                     const CompileOptions &options);

/// The step with its loops written out as \p choice asks for. \p unrolled: what
/// became of them, unless it is null.
void populateUnrolling(mlir::OpPassManager &manager, const UnrollChoice &choice,
                       UnrolledLoops *unrolled = nullptr);

/// What is cut before kernels are formed. \p report: what was cut, unless it is
/// null.
void populateCutting(mlir::OpPassManager &manager, const SplitChoice &splits,
                     SplitReport *report = nullptr);

/// The passes that make kernels of a model once it is cut. \p products: how
/// GPUs compute products; null where there are none. \p lowered: who lowers the
/// kernels later goes on from there.
void populateKernels(mlir::OpPassManager &manager,
                     const CudaProductOptions *products,
                     std::shared_ptr<LoweredKernels> lowered);

/// Both: the same for --baechi-compile and HostCompiler, so that both place the
/// same operators.
void populateForming(mlir::OpPassManager &manager,
                     const CudaProductOptions *products,
                     const SplitChoice &splits,
                     std::shared_ptr<LoweredKernels> lowered);

/// Those of populateForming() that look at no kernel's code. \p sums: how the
/// step's are added up, unless it is null.
void populateOutlining(mlir::OpPassManager &manager,
                       const CudaProductOptions *products,
                       const SplitChoice &splits, SumOrders *sums = nullptr);

/// The part of that which follows cutting, for devices without products.
void populateOutliningKernels(mlir::OpPassManager &manager);

/// Placement and memory plan by \p options, pins (--baechi-constrain) and a
/// placement (--baechi-load-placement) among them. Without a machine that of
/// the module.
void populatePlacing(mlir::OpPassManager &manager,
                     const CompileOptions &options,
                     PlaceAndPlanReport *report = nullptr,
                     PlanWatch watch = {});

/// From linalg on tensors to a lowered multi-device program for "host" or, with
/// GPUs, "cuda": --baechi-compile="machine=host:2 placer=msct target=host".
/// \p splits are made as the default roofline proposes: a pipeline compiles one
/// program, so nothing whole is compared.
void buildCompilePipeline(mlir::OpPassManager &manager,
                          const CompileOptions &options,
                          const SplitChoice &splits, llvm::StringRef target);

/// What follows placement: partition and memory plan, each verified.
void buildPlanPipeline(mlir::OpPassManager &manager);

/// Makes functions of \p module that take memory, or hold loops over keys,
/// steps of tensors, in which these loops, and those of affine and scf, run in
/// blocks. Other modules stay as they are.
llvm::LogicalResult partitionLoops(mlir::ModuleOp module,
                                   const CompileOptions &options);

void registerPipelines();

/// Every pass and pipeline of the project.
void registerAllPasses();

/// Every dialect that the passes read or make, with what lowering needs.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace baechi

#endif // BAECHI_PIPELINES_PIPELINES_H
