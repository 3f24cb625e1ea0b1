//===- EmitGemm.cpp - Calls of cblas_sgemm -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"
#include "PointerCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The enumerators of cblas.h.
enum Cblas { RowMajor = 101, NoTrans = 111, Trans = 112 };

LLVM::LLVMFuncOp declareSgemm(OpBuilder &builder, func::FuncOp user) {
  auto module = user->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>("cblas_sgemm"))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  {i32, i32, i32, i32, i32, i32, f32, pointer,
                                   i32, pointer, i32, f32, pointer, i32});
  return LLVM::LLVMFuncOp::create(builder, user.getLoc(), "cblas_sgemm", type);
}

/// Makes the result start from an argument (unless it lies there already) or
/// from a value other than zero.
void emitStart(PointerCode &emit, const ProductOperands &operands,
               func::FuncOp function, Value result, int64_t elements) {
  OpBuilder::InsertionGuard guard(emit.builder);
  OpBuilder &builder = emit.builder;
  Location loc = emit.loc;
  if (operands.start == ProductOperands::Start::Argument) {
    Value source = emit.at(function.getArgument(operands.startArgument),
                           operands.startOffset);
    Value differ = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                        source, result);
    auto guarded = scf::IfOp::create(builder, loc, differ);
    builder.setInsertionPointToStart(guarded.thenBlock());
    Value bytes = arith::ConstantIntOp::create(
        builder, loc, elements * int64_t(sizeof(float)), 64);
    LLVM::MemcpyOp::create(builder, loc, result, source, bytes,
                           /*isVolatile=*/false);
  } else if (operands.startValue != 0) {
    Value value = emit.f32(operands.startValue);
    Value element = emit.enterLoop(elements);
    LLVM::StoreOp::create(builder, loc, value, emit.at(result, element));
  }
}
} // namespace

func::FuncOp baechi::emitGemm(OpBuilder &builder, func::FuncOp kernel,
                              const GemmPlan &plan) {
  Location loc = kernel.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function =
      createPointerKernel(builder, kernel, /*scratchBytes=*/0);
  PointerCode emit(builder, loc);
  Value result = function.getArgument(kernel.getNumArguments());
  int64_t elements =
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getNumElements();
  const ProductOperands &operands = plan.operands;
  emitStart(emit, operands, function, result, elements);

  SmallVector<PointerCode::Term> moveA, moveB, moveC;
  SmallVector<Value> sums;
  auto enter = [&](const ProductLoop &loop) {
    Value iv = emit.enterLoop(loop.size);
    moveA.emplace_back(iv, loop.a);
    moveB.emplace_back(iv, loop.b);
    moveC.emplace_back(iv, loop.c);
    return iv;
  };
  for (const ProductLoop &loop : plan.outer)
    enter(loop);
  for (const ProductLoop &loop : plan.sums)
    sums.push_back(enter(loop));

  // The first product of a sum replaces what the buffer held.
  bool starts = operands.startsFromZero();
  Value beta = emit.f32(starts ? 0 : 1);
  if (starts)
    for (Value iv : sums) {
      Value later = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ne, iv, emit.index(0));
      beta = arith::SelectOp::create(builder, loc, later, emit.f32(1), beta);
    }
  Value a = emit.at(function.getArgument(operands.argumentA), operands.offsetA);
  Value b = emit.at(function.getArgument(operands.argumentB), operands.offsetB);
  LLVM::CallOp::create(
      builder, loc, declareSgemm(builder, function),
      ValueRange{
          emit.i32(RowMajor), emit.i32(plan.transposeA ? Trans : NoTrans),
          emit.i32(plan.transposeB ? Trans : NoTrans), emit.i32(plan.m),
          emit.i32(plan.n), emit.i32(plan.k), emit.f32(1), emit.at(a, moveA),
          emit.i32(plan.lda), emit.at(b, moveB), emit.i32(plan.ldb), beta,
          emit.at(result, moveC), emit.i32(plan.ldc)});
  builder.setInsertionPointToEnd(&function.getBody().front());
  func::ReturnOp::create(builder, loc);
  return function;
}
