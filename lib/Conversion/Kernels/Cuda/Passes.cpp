//===- Passes.cpp - Passes that make GPU code of kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Passes.h"
#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Common/KernelCopies.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

namespace baechi {
#define GEN_PASS_DEF_CUDAPRODUCTS
#define GEN_PASS_DEF_CUDASCRATCH
#define GEN_PASS_DEF_LOWERCUDAKERNELS
#include "Baechi/Conversion/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct CudaProductsPass
    : public baechi::impl::CudaProductsBase<CudaProductsPass> {
  using CudaProductsBase::CudaProductsBase;
  void runOnOperation() override {
    std::string mistake = wrongCudaMath(math);
    if (mistake.empty())
      mistake = wrongCudaConvolutions(convolutions);
    if (mistake.empty() && workspace < 0)
      mistake = "workspace needs a number of bytes, 0 or more";
    if (!mistake.empty()) {
      getOperation().emitError(mistake);
      return signalPassFailure();
    }
    chooseCudaProducts(getOperation(),
                       {math, workspace, biases, updates, convolutions});
  }
};

struct CudaScratchPass : public baechi::impl::CudaScratchBase<CudaScratchPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registerCudaKernelDialects(registry);
  }
  void runOnOperation() override {
    FailureOr<CudaNeeds> needs = cudaNeedsOf(getOperation());
    if (failed(needs))
      return signalPassFailure();
    annotateCudaNeeds(getOperation(), *needs);
  }
};

struct LowerCudaKernelsPass
    : public baechi::impl::LowerCudaKernelsBase<LowerCudaKernelsPass> {
  using LowerCudaKernelsBase::LowerCudaKernelsBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    registerCudaKernelDialects(registry);
  }
  LogicalResult lower() {
    ModuleOp module = getOperation();
    if (!keepKernels && failed(checkNotCalled(module)))
      return failure();
    if (stage == "launches")
      return mapKernelsToCuda(module);
    if (stage == "emulation" || stage == "reversed-emulation")
      return emulateCudaKernels(module, stage == "reversed-emulation");
    if (stage != "code")
      return module.emitError("unknown stage '")
             << stage
             << "'; known: code, launches, emulation, reversed-emulation";
    CudaOptions options;
    if (!chips.empty())
      options.chips.assign(chips.begin(), chips.end());
    options.toolkit = toolkit;
    options.keepKernels = keepKernels;
    return lowerKernelsToCuda(module, options);
  }
  void runOnOperation() override {
    if (failed(lower()))
      signalPassFailure();
  }
};
} // namespace
