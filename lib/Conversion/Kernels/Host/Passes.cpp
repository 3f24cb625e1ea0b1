//===- Passes.cpp - Passes over kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Passes.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Common/KernelCopies.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace baechi {
#define GEN_PASS_DEF_KERNELSCRATCH
#define GEN_PASS_DEF_LOWERKERNELS
#include "Baechi/Conversion/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct KernelScratchPass
    : public baechi::impl::KernelScratchBase<KernelScratchPass> {
  KernelScratchPass() = default;
  explicit KernelScratchPass(std::shared_ptr<LoweredKernels> lowered)
      : shared(std::move(lowered)) {}
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    LoweredKernels own;
    if (failed((shared ? *shared : own).annotateScratch(getOperation())))
      signalPassFailure();
  }

  std::shared_ptr<LoweredKernels> shared;
};

struct LowerKernelsPass
    : public baechi::impl::LowerKernelsBase<LowerKernelsPass> {
  LowerKernelsPass() = default;
  explicit LowerKernelsPass(std::shared_ptr<LoweredKernels> lowered)
      : shared(std::move(lowered)) {}
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    LoweredKernels own;
    if (failed(checkNotCalled(getOperation())) ||
        failed((shared ? *shared : own).lower(getOperation())))
      signalPassFailure();
  }

  std::shared_ptr<LoweredKernels> shared;
};
} // namespace

std::unique_ptr<Pass>
baechi::createKernelScratch(std::shared_ptr<LoweredKernels> lowered) {
  return std::make_unique<KernelScratchPass>(std::move(lowered));
}

std::unique_ptr<Pass>
baechi::createLowerKernels(std::shared_ptr<LoweredKernels> lowered) {
  return std::make_unique<LowerKernelsPass>(std::move(lowered));
}
