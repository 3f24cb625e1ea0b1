//===- EmitGemm.cpp - Calls of cblas_sgemm -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Gemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The enumerators of cblas.h.
enum Cblas { RowMajor = 101, NoTrans = 111, Trans = 112 };

class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  Value f32(float value) {
    return arith::ConstantFloatOp::create(builder, loc, builder.getF32Type(),
                                          APFloat(value));
  }

  /// `offset` elements behind `pointer`.
  Value at(Value pointer, Value offset) {
    Value i64 =
        arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
    return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                               builder.getF32Type(), pointer, ValueRange(i64));
  }

  /// `base + sum of iv * stride`.
  Value moved(int64_t base, ArrayRef<std::pair<Value, int64_t>> terms) {
    Value sum = index(base);
    for (auto [iv, stride] : terms) {
      if (stride == 0)
        continue;
      Value step = arith::MulIOp::create(builder, loc, iv, index(stride));
      sum = arith::AddIOp::create(builder, loc, sum, step);
    }
    return sum;
  }

  /// Opens a loop; what is built next goes into it.
  Value enterLoop(int64_t size) {
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(size), index(1));
    builder.setInsertionPointToStart(loop.getBody());
    return loop.getInductionVar();
  }

  OpBuilder &builder;
  Location loc;
};

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
void emitStart(Emitter &emit, const GemmPlan &plan, func::FuncOp function,
               Value result, int64_t elements) {
  OpBuilder::InsertionGuard guard(emit.builder);
  OpBuilder &builder = emit.builder;
  Location loc = emit.loc;
  if (plan.start == GemmPlan::Start::Argument) {
    Value source = emit.at(function.getArgument(plan.startArgument),
                           emit.index(plan.startOffset));
    Value differ = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                        source, result);
    auto guarded = scf::IfOp::create(builder, loc, differ);
    builder.setInsertionPointToStart(guarded.thenBlock());
    Value bytes = arith::ConstantIntOp::create(
        builder, loc, elements * int64_t(sizeof(float)), 64);
    LLVM::MemcpyOp::create(builder, loc, result, source, bytes,
                           /*isVolatile=*/false);
  } else if (plan.startValue != 0) {
    Value value = emit.f32(plan.startValue);
    Value element = emit.enterLoop(elements);
    LLVM::StoreOp::create(builder, loc, value, emit.at(result, element));
  }
}
} // namespace

func::FuncOp baechi::emitGemm(OpBuilder &builder, func::FuncOp kernel,
                              const GemmPlan &plan) {
  Location loc = kernel.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  unsigned arguments = kernel.getNumArguments();
  SmallVector<Type> inputs(arguments + 2, pointer);
  auto function = func::FuncOp::create(builder, loc, kernel.getSymName(),
                                       builder.getFunctionType(inputs, {}));
  function.setPrivate();
  function->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
  function->setAttr(BaechiDialect::kKernelScratch,
                    builder.getI64IntegerAttr(0));

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  Emitter emit(builder, loc);
  Value result = function.getArgument(arguments);
  int64_t elements =
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getNumElements();
  emitStart(emit, plan, function, result, elements);

  SmallVector<std::pair<Value, int64_t>> moveA, moveB, moveC;
  SmallVector<Value> sums;
  auto enter = [&](const GemmPlan::Loop &loop) {
    Value iv = emit.enterLoop(loop.size);
    moveA.emplace_back(iv, loop.a);
    moveB.emplace_back(iv, loop.b);
    moveC.emplace_back(iv, loop.c);
    return iv;
  };
  for (const GemmPlan::Loop &loop : plan.outer)
    enter(loop);
  for (const GemmPlan::Loop &loop : plan.sums)
    sums.push_back(enter(loop));

  // The first product of a sum replaces what the buffer held.
  bool starts = plan.start == GemmPlan::Start::Value && plan.startValue == 0;
  Value beta = emit.f32(starts ? 0 : 1);
  if (starts)
    for (Value iv : sums) {
      Value later = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ne, iv, emit.index(0));
      beta = arith::SelectOp::create(builder, loc, later, emit.f32(1), beta);
    }
  LLVM::CallOp::create(
      builder, loc, declareSgemm(builder, function),
      ValueRange{emit.i32(RowMajor),
                 emit.i32(plan.transposeA ? Trans : NoTrans),
                 emit.i32(plan.transposeB ? Trans : NoTrans), emit.i32(plan.m),
                 emit.i32(plan.n), emit.i32(plan.k), emit.f32(1),
                 emit.at(function.getArgument(plan.argumentA),
                         emit.moved(plan.offsetA, moveA)),
                 emit.i32(plan.lda),
                 emit.at(function.getArgument(plan.argumentB),
                         emit.moved(plan.offsetB, moveB)),
                 emit.i32(plan.ldb), beta,
                 emit.at(result, emit.moved(0, moveC)), emit.i32(plan.ldc)});
  builder.setInsertionPointToEnd(&function.getBody().front());
  func::ReturnOp::create(builder, loc);
  return function;
}
