//===- ToLLVM.cpp - Kernels of loops to the LLVM dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Lowering.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

void baechi::markPointers(func::FuncOp kernel,
                          const KernelSignature &signature) {
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

namespace {
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
/// Makes accesses of i1 accesses of bytes, which is what they take: LLVM does
/// not vectorize the former.
void accessBytes(LLVM::LLVMFuncOp kernel) {
  Type bit = IntegerType::get(kernel.getContext(), 1);
  Type byte = IntegerType::get(kernel.getContext(), 8);
  kernel.walk([&](LLVM::GEPOp op) {
    if (op.getElemType() == bit)
      op.setElemType(byte);
  });
  kernel.walk([&](LLVM::LoadOp op) {
    if (op.getType() != bit)
      return;
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    op.getResult().setType(byte);
    auto truncated =
        LLVM::TruncOp::create(builder, op.getLoc(), bit, op.getResult());
    op.getResult().replaceAllUsesExcept(truncated, truncated);
  });
  kernel.walk([&](LLVM::StoreOp op) {
    if (op.getValue().getType() != bit)
      return;
    OpBuilder builder(op);
    op.getValueMutable().assign(
        LLVM::ZExtOp::create(builder, op.getLoc(), byte, op.getValue()));
  });
}
} // namespace

LogicalResult baechi::lowerToLLVM(ModuleOp kernels) {
  PassManager passes(kernels.getContext());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
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
      if (isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("has no host code");
      return WalkResult::interrupt();
    });
    if (foreign.wasInterrupted())
      return failure();
    markParallelAccesses(kernel);
    accessBytes(kernel);
  }
  return success();
}
