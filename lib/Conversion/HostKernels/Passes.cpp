//===- Passes.cpp - Passes over kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Passes.h"
#include "Baechi/Conversion/HostKernels.h"
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
    registerHostKernelDialects(registry);
  }
  void runOnOperation() override {
    if (failed(annotateKernelScratch(getOperation())))
      signalPassFailure();
  }
};

struct LowerKernelsPass
    : public baechi::impl::LowerKernelsBase<LowerKernelsPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registerHostKernelDialects(registry);
  }
  void runOnOperation() override {
    // A func.call of an llvm.func would not verify. Devices' modules declare
    // the kernels that they call.
    WalkResult called = getOperation().walk([&](func::CallOp call) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!callee || !callee->hasAttr(BaechiDialect::kKernel) ||
          callee->getParentOp() != getOperation())
        return WalkResult::advance();
      call.emitOpError("calls a kernel on tensors; run --baechi-partition on "
                       "the program that calls it, or take the kernels alone");
      return WalkResult::interrupt();
    });
    if (called.wasInterrupted() || failed(lowerKernels(getOperation())))
      signalPassFailure();
  }
};
} // namespace
