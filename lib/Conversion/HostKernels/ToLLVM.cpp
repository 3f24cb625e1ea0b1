//===- ToLLVM.cpp - Kernels of loops to the LLVM dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Says which pointers no other pointer of the call overlaps.
void markPointers(func::FuncOp kernel, const KernelSignature &signature) {
  llvm::SmallDenseSet<unsigned> shared;
  for (auto [result, arguments] : llvm::enumerate(signature.mayAlias))
    for (unsigned argument : arguments) {
      shared.insert(argument);
      shared.insert(signature.numArguments + result);
    }
  OpBuilder builder(kernel.getContext());
  for (unsigned index : llvm::seq(kernel.getNumArguments())) {
    if (!shared.contains(index))
      kernel.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                        builder.getUnitAttr());
    kernel.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(64));
  }
}

/// Puts the accesses of loops that are parallel in spite of shared buffers into
/// the access groups that the loops name.
void markParallelAccesses(LLVM::LLVMFuncOp kernel) {
  SetVector<Attribute> groups;
  kernel.walk([&](LLVM::BrOp op) {
    if (auto loop = op.getLoopAnnotationAttr())
      groups.insert_range(loop.getParallelAccesses());
  });
  if (groups.empty())
    return;
  auto list = ArrayAttr::get(kernel.getContext(), groups.getArrayRef());
  kernel.walk([&](LLVM::AccessGroupOpInterface op) {
    if (isa<LLVM::LoadOp, LLVM::StoreOp>(*op))
      op.setAccessGroups(list);
  });
}
} // namespace

LogicalResult baechi::lowerToLLVM(ModuleOp kernels,
                                  const KernelSignatures &signatures) {
  for (auto kernel : kernels.getOps<func::FuncOp>())
    if (auto it = signatures.find(kernel.getSymNameAttr());
        it != signatures.end())
      markPointers(kernel, it->second);

  PassManager passes(kernels.getContext());
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(createConvertLinalgToLoopsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions barePointers;
  barePointers.useBarePtrCallConv = true;
  passes.addPass(createConvertFuncToLLVMPass(barePointers));
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(kernels)))
    return failure();
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
    WalkResult foreign = kernel.walk([&](Operation *op) {
      if (isa<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("has no host code");
      return WalkResult::interrupt();
    });
    if (foreign.wasInterrupted())
      return failure();
    markParallelAccesses(kernel);
  }
  return success();
}
