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
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    if (failed(annotateKernelScratch(getOperation())))
      signalPassFailure();
  }
};

struct LowerKernelsPass
    : public baechi::impl::LowerKernelsBase<LowerKernelsPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    if (failed(checkNotCalled(getOperation())) ||
        failed(lowerKernels(getOperation())))
      signalPassFailure();
  }
};
} // namespace
