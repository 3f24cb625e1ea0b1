//===- ToLLVM.cpp - Kernels of loops to the LLVM dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Lowering.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"

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

/// The first operand where \p isAhead holds, or else the second; where one is
/// no number, the other.
void expandNumberExtreme(Operation *op, arith::CmpFPredicate isAhead) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value a = op->getOperand(0), b = op->getOperand(1);
  Value ahead = arith::CmpFOp::create(builder, loc, isAhead, a, b);
  Value number = arith::SelectOp::create(builder, loc, ahead, a, b);
  // The predicates hold where one is NaN.
  Value isNaN =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, a, a);
  op->getResult(0).replaceAllUsesWith(
      arith::SelectOp::create(builder, loc, isNaN, b, number));
  op->erase();
}

/// Makes comparisons of arith.maxnumf and arith.minnumf: LLVM 22 loses elements
/// of vectorized reductions by llvm.maxnum and llvm.minnum behind the last full
/// vector.
void expandNumberExtremes(ModuleOp kernels) {
  kernels.walk([](Operation *op) {
    if (isa<arith::MaxNumFOp>(op))
      expandNumberExtreme(op, arith::CmpFPredicate::UGT);
    else if (isa<arith::MinNumFOp>(op))
      expandNumberExtreme(op, arith::CmpFPredicate::ULT);
  });
}

/// Makes calls of libm of exp(x) - 1 and log(1 + x), where no polynomial stands
/// for them: MathToLLVM computes what their names say, of which nothing is left
/// where x is small.
LogicalResult callSmallFunctions(ModuleOp kernels) {
  ConversionTarget target(*kernels.getContext());
  target.addLegalDialect<arith::ArithDialect, func::FuncDialect,
                         math::MathDialect, vector::VectorDialect>();
  target.addIllegalOp<math::ExpM1Op, math::Log1pOp>();
  RewritePatternSet patterns(kernels.getContext());
  populateMathToLibmConversionPatterns(patterns);
  return applyPartialConversion(kernels, target, std::move(patterns));
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
  expandNumberExtremes(kernels);
  if (failed(callSmallFunctions(kernels)))
    return failure();
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
