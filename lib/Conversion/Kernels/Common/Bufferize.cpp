//===- Bufferize.cpp - Kernels on tensors to kernels on buffers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Common/Lowering.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace baechi;

namespace {
bool isStaticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         tensor.getElementType().isIntOrFloat();
}

/// Checks what the interface of host code can express and takes the attributes
/// off `kernel` that would not survive a change of its type.
FailureOr<KernelSignature> takeSignature(func::FuncOp kernel) {
  if (kernel.isExternal())
    return kernel.emitOpError("is a kernel without a body");
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (!isStaticTensor(type))
      return kernel.emitOpError("is a kernel whose argument ")
             << index << " is " << type
             << "; host code takes tensors of static shape";
  for (auto [index, type] : llvm::enumerate(kernel.getResultTypes()))
    if (!isStaticTensor(type))
      return kernel.emitOpError("is a kernel whose result ")
             << index << " is " << type
             << "; host code makes tensors of static shape";
  WalkResult dynamic = kernel.walk([&](Operation *op) {
    if (isa<CallOpInterface>(op)) {
      kernel.emitOpError("is a kernel with a call");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes())
      if (isa<TensorType>(type) && !isStaticTensor(type)) {
        kernel.emitOpError("is a kernel with a value of type ")
            << type << "; host code needs tensors of static shape";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  if (dynamic.wasInterrupted())
    return failure();

  KernelSignature signature;
  signature.numArguments = kernel.getNumArguments();
  for (unsigned result : llvm::seq(kernel.getNumResults())) {
    auto &arguments = signature.mayAlias.emplace_back();
    auto named = kernel.getResultAttrOfType<DenseI64ArrayAttr>(
        result, BaechiDialect::kMayAlias);
    if (named)
      arguments.assign(named.asArrayRef().begin(), named.asArrayRef().end());
  }
  kernel.removeArgAttrsAttr();
  kernel.removeResAttrsAttr();
  // Bufferization must not write results into arguments by itself.
  for (unsigned index : llvm::seq(signature.numArguments))
    kernel.setArgAttr(index,
                      bufferization::BufferizationDialect::kWritableAttrName,
                      BoolAttr::get(kernel.getContext(), false));
  return signature;
}

void addBufferization(PassManager &passes) {
  // Without it dead untiled operations of row groups would be bufferized.
  passes.addPass(createCanonicalizerPass());
  passes.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.allowReturnAllocsFromLoops = true;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  passes.addPass(bufferization::createOneShotBufferizePass(options));
}

void addOutParams(PassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  bufferization::BufferResultsToOutParamsPassOptions options;
  options.hoistStaticAllocs = true;
  options.modifyPublicFunctions = true;
  passes.addPass(bufferization::createBufferResultsToOutParamsPass(options));
  // CSE only now: on tensors it merges buffers that are written.
  passes.addPass(createCSEPass());
  passes.addPass(createCanonicalizerPass());
}
} // namespace

LogicalResult baechi::bufferizeKernels(ModuleOp kernels,
                                       KernelSignatures &signatures) {
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    FailureOr<KernelSignature> signature = takeSignature(kernel);
    if (failed(signature))
      return failure();
    signatures[kernel.getSymNameAttr()] = std::move(*signature);
  }

  nestSwitches(kernels);
  for (auto kernel : kernels.getOps<func::FuncOp>())
    copyCapturedDestinations(kernel);
  kernels.getContext()
      ->loadDialect<bufferization::BufferizationDialect,
                    memref::MemRefDialect>();
  for (auto kernel : kernels.getOps<func::FuncOp>())
    copyInsertChains(kernel);
  PassManager bufferize(kernels.getContext());
  addBufferization(bufferize);
  if (failed(bufferize.run(kernels)))
    return failure();
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    separateCarriedBuffers(kernel);
    separateResults(kernel);
  }

  PassManager outParams(kernels.getContext());
  addOutParams(outParams);
  if (failed(outParams.run(kernels)))
    return failure();
  for (auto kernel : kernels.getOps<func::FuncOp>())
    protectAliases(kernel, signatures.find(kernel.getSymNameAttr())->second);
  return success();
}
