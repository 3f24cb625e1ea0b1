//===- EmitGemm.cpp - Products by libraries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitGemm.h"
#include "Common/PointerCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The enumerators of cblas.h.
enum Cblas { RowMajor = 101, NoTrans = 111, Trans = 112 };

LLVM::LLVMFuncOp declare(OpBuilder &builder, func::FuncOp user, StringRef name,
                         Type result, ArrayRef<Type> arguments) {
  auto module = user->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, user.getLoc(), name,
      LLVM::LLVMFunctionType::get(result, arguments));
}

/// One product: C = A * B + beta * C.
struct Product {
  const GemmPlan &plan;
  Value a, b, beta, c;
};

void callCblas(PointerCode &emit, func::FuncOp function, Product of) {
  OpBuilder &builder = emit.builder;
  const GemmPlan &plan = of.plan;
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto sgemm = declare(builder, function, "cblas_sgemm",
                       LLVM::LLVMVoidType::get(builder.getContext()),
                       {i32, i32, i32, i32, i32, i32, f32, pointer, i32,
                        pointer, i32, f32, pointer, i32});
  LLVM::CallOp::create(builder, emit.loc, sgemm,
                       ValueRange{emit.i32(RowMajor),
                                  emit.i32(plan.transposeA ? Trans : NoTrans),
                                  emit.i32(plan.transposeB ? Trans : NoTrans),
                                  emit.i32(plan.m), emit.i32(plan.n),
                                  emit.i32(plan.k), emit.f32(1), of.a,
                                  emit.i32(plan.lda), of.b, emit.i32(plan.ldb),
                                  of.beta, of.c, emit.i32(plan.ldc)});
}

void callOneDnn(PointerCode &emit, func::FuncOp function, Product of) {
  OpBuilder &builder = emit.builder;
  const GemmPlan &plan = of.plan;
  Type i8 = builder.getI8Type(), i32 = builder.getI32Type(),
       i64 = builder.getI64Type(), f32 = builder.getF32Type();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto constant = [&](int64_t value, unsigned width) -> Value {
    return arith::ConstantIntOp::create(builder, emit.loc, value, width);
  };
  // Each thread has its own number of threads to start.
  auto setThreads = declare(builder, function, "omp_set_num_threads",
                            LLVM::LLVMVoidType::get(builder.getContext()), i32);
  auto sgemm = declare(builder, function, "dnnl_sgemm", i32,
                       {i8, i8, i64, i64, i64, f32, pointer, i64, pointer, i64,
                        f32, pointer, i64});
  LLVM::CallOp::create(builder, emit.loc, setThreads, ValueRange{emit.i32(1)});
  Value status =
      LLVM::CallOp::create(
          builder, emit.loc, sgemm,
          ValueRange{constant(plan.transposeA ? 'T' : 'N', 8),
                     constant(plan.transposeB ? 'T' : 'N', 8),
                     constant(plan.m, 64), constant(plan.n, 64),
                     constant(plan.k, 64), emit.f32(1), of.a,
                     constant(plan.lda, 64), of.b, constant(plan.ldb, 64),
                     of.beta, of.c, constant(plan.ldc, 64)})
          .getResult();
  // It fails for want of memory only; a wrong result must not go on.
  Value failed = LLVM::ICmpOp::create(
      builder, emit.loc, LLVM::ICmpPredicate::ne, status, emit.i32(0));
  OpBuilder::InsertionGuard guard(builder);
  auto guarded = scf::IfOp::create(builder, emit.loc, failed);
  builder.setInsertionPointToStart(guarded.thenBlock());
  LLVM::Trap::create(builder, emit.loc);
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
                              const GemmPlan &plan, GemmInterface interface) {
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

  for (auto [index, factors] : llvm::enumerate(operands.factors)) {
    OpBuilder::InsertionGuard guard(builder);
    Value a = emit.at(function.getArgument(factors.argumentA), factors.offsetA);
    Value b = emit.at(function.getArgument(factors.argumentB), factors.offsetB);
    Value c = result;
    auto enter = [&](const ProductLoop &loop) {
      Value iv = emit.enterLoop(loop.size);
      a = emit.at(a, {{iv, loop.a}});
      b = emit.at(b, {{iv, loop.b}});
      c = emit.at(c, {{iv, loop.c}});
      return iv;
    };
    SmallVector<Value> sums;
    for (const ProductLoop &loop : plan.outer)
      enter(loop);
    for (const ProductLoop &loop : plan.sums)
      sums.push_back(enter(loop));

    // The first product of a sum replaces what the buffer held.
    bool starts = index == 0 && operands.startsFromZero();
    Value beta = emit.f32(starts ? 0 : 1);
    if (starts)
      for (Value iv : sums) {
        Value later = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ne, iv, emit.index(0));
        beta = arith::SelectOp::create(builder, loc, later, emit.f32(1), beta);
      }
    Product product{plan, a, b, beta, c};
    if (interface == GemmInterface::Cblas)
      callCblas(emit, function, product);
    else
      callOneDnn(emit, function, product);
  }
  func::ReturnOp::create(builder, loc);
  return function;
}
