//===- InlineStep.cpp - The step as one function -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace baechi {
#define GEN_PASS_DEF_INLINESTEP
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// Whether a function with a body that is no kernel is called.
static bool callsFunctions(ModuleOp module) {
  return module
      .walk([&](Operation *op) {
        bool isPlain = isa<func::CallIndirectOp>(op);
        if (auto call = dyn_cast<func::CallOp>(op)) {
          auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
          isPlain = callee && !callee.isExternal() &&
                    !callee->hasAttr(BaechiDialect::kKernel);
        }
        return isPlain ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// MLIR cannot tell whether an unknown operation with a region has symbols in
/// it, and then not who calls what.
static LogicalResult checkKnown(ModuleOp module) {
  Operation *unknown = nullptr;
  module.walk([&](Operation *op) {
    if (!unknown && !op->isRegistered() && op->getNumRegions() == 1)
      unknown = op;
  });
  if (!unknown)
    return success();
  return unknown->emitOpError("is unknown and has a region, so nothing can be "
                              "told of what the module calls: load its "
                              "dialect, or lower it to linalg before");
}

namespace {
struct InlineStep : public baechi::impl::InlineStepBase<InlineStep> {
  using InlineStepBase::InlineStepBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Before anything goes: a step is found among what the module came with.
    if (failed(findFuncStep(module)) || failed(checkNotLostByFolds(module)) ||
        failed(checkKnown(module)))
      return signalPassFailure();
    bool formed =
        llvm::any_of(module.getOps<func::FuncOp>(), [](auto function) {
          return function->hasAttr(BaechiDialect::kKernel);
        });
    OpPassManager manager(ModuleOp::getOperationName());
    // Calls of kernels stay, as operators; the inliner would take them, too.
    if (!formed && callsFunctions(module)) {
      // Calls of functions that are constants become direct.
      manager.addPass(createCanonicalizerPass());
      manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
    }
    manager.addPass(createSymbolDCEPass());
    if (failed(runPipeline(manager, module)))
      signalPassFailure();
  }
};
} // namespace
