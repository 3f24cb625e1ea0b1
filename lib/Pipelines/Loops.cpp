//===- Loops.cpp - Steps that are loops over memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/LoopOps.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Transforms/Loops/Passes.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace baechi;

/// Whether there is something to do: programs of tensors have none.
static bool hasLoopsOverMemory(ModuleOp module) {
  bool found = false;
  module.walk([&](Operation *op) {
    found |= isa<ForeachOp>(op);
    if (auto function = dyn_cast<func::FuncOp>(op))
      found |=
          llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>);
  });
  return found;
}

LogicalResult baechi::partitionLoops(ModuleOp module,
                                     const CompileOptions &options) {
  llvm::Expected<LoopChoice> choice = loopChoiceOf(options);
  if (!choice) {
    emitError(module.getLoc()) << llvm::toString(choice.takeError());
    return failure();
  }
  if (!hasLoopsOverMemory(module))
    return success();
  PassManager manager(module.getContext());
  manager.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalizerPass());
  RaiseLoopsOptions raise;
  raise.unordered = choice->unordered;
  manager.addPass(createRaiseLoops(raise));
  manager.addPass(createLowerAffinePass());
  PartitionLoopsOptions partition;
  partition.workers = options.workers;
  partition.fallback = choice->serial ? "serial" : "refuse";
  partition.serialWord =
      choice->unordered ? "--loops=unordered+serial" : "--loops=ordered+serial";
  partition.checkPositions = true;
  manager.addPass(createPartitionLoops(partition));
  return manager.run(module);
}
