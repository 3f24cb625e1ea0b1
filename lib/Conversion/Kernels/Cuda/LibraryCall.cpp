//===- LibraryCall.cpp - Calls of the runtime's libraries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryCall.h"
#include "Baechi/Runtime/CudaAbi.h"

using namespace mlir;
using namespace baechi;

/// What cublasLtMatmul asks of its workspace; cuDNN asks for less.
static constexpr int64_t kWorkspaceAlignment = 256;

int64_t baechi::cudaTypeOf(Type type) {
  return type.isF32()    ? BAECHI_CUDA_F32
         : type.isBF16() ? BAECHI_CUDA_BF16
                         : BAECHI_CUDA_F16;
}

LLVM::LLVMFuncOp baechi::declareLibraryCall(OpBuilder &builder,
                                            func::FuncOp user, StringRef name,
                                            unsigned pointers,
                                            unsigned numbers) {
  auto module = user->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  SmallVector<Type> operands(pointers,
                             LLVM::LLVMPointerType::get(builder.getContext()));
  operands.append(numbers, builder.getI32Type());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, user.getLoc(), name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  operands));
}

Value baechi::constantWords(OpBuilder &builder, func::FuncOp function,
                            StringRef suffix, ArrayRef<int64_t> words) {
  Location loc = function.getLoc();
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(function);
    global = LLVM::GlobalOp::create(
        builder, loc,
        LLVM::LLVMArrayType::get(builder.getI64Type(), words.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal,
        (function.getSymName() + suffix).str(),
        builder.getI64TensorAttr(words));
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

int64_t baechi::scratchFor(int64_t workspace) {
  return workspace == 0 ? 0
                        : workspace + kWorkspaceAlignment - kPointerAlignment;
}

Value baechi::alignWorkspace(OpBuilder &builder, Location loc, Value scratch) {
  Type i64 = builder.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i64,
                                    builder.getI64IntegerAttr(value));
  };
  Value address = LLVM::PtrToIntOp::create(builder, loc, i64, scratch);
  Value above = LLVM::AddOp::create(builder, loc, address,
                                    constant(kWorkspaceAlignment - 1));
  Value aligned =
      LLVM::AndOp::create(builder, loc, above, constant(-kWorkspaceAlignment));
  return LLVM::IntToPtrOp::create(builder, loc, scratch.getType(), aligned);
}
