//===- CallProduct.cpp - Products by the runtime's library -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../HostKernels/PointerCode.h"
#include "Mapping.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Launches of a library cost microseconds: more calls than this are worse than
/// generated tiles.
constexpr int64_t kMostCalls = 8;

LLVM::LLVMFuncOp declareSgemm(OpBuilder &builder, func::FuncOp user) {
  StringRef name = "baechi_cuda_sgemm";
  auto module = user->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(
      builder, user.getLoc(), name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  {i32, i32, i64, i64, i64, pointer, i64, i64,
                                   pointer, i64, i64, pointer, i64, i64, i64,
                                   i32}));
}

/// All combinations of the loops' counters, the last loop's fastest.
SmallVector<SmallVector<int64_t>> countersOf(const ProductLoops &loops) {
  SmallVector<SmallVector<int64_t>> all(1);
  for (const ProductLoop &loop : loops) {
    SmallVector<SmallVector<int64_t>> longer;
    for (const auto &counters : all)
      for (int64_t i = 0; i < loop.size; ++i) {
        longer.push_back(counters);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}
} // namespace

void baechi::launchStart(OpBuilder &builder, func::FuncOp function,
                         const ProductOperands &operands, Value result,
                         int64_t elements, Executor executor) {
  Location loc = function.getLoc();
  PointerCode emit(builder, loc);
  OpBuilder::InsertionGuard guard(builder);
  Value source;
  if (operands.start == ProductOperands::Start::Argument) {
    source = emit.at(function.getArgument(operands.startArgument),
                     operands.startOffset);
    Value differ = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                        source, result);
    auto guarded = scf::IfOp::create(builder, loc, differ);
    builder.setInsertionPointToStart(guarded.thenBlock());
  } else if (operands.startValue == 0) {
    return;
  }
  LaunchCode code(builder, loc, executor,
                  llvm::divideCeil(elements, kBlockThreads), kBlockThreads);
  code.section([&](Value thread) {
    Value at = code.add(code.mul(code.block, kBlockThreads), thread);
    code.when(code.less(at, code.index(elements)), [&] {
      Value value =
          source ? Value(LLVM::LoadOp::create(
                       builder, loc, builder.getF32Type(), emit.at(source, at)))
                 : emit.f32(operands.startValue);
      LLVM::StoreOp::create(builder, loc, value, emit.at(result, at));
    });
  });
  code.finish();
}

bool baechi::callProduct(OpBuilder &builder, func::FuncOp kernel,
                         const GemmPlan &plan, Executor executor) {
  ProductLoops others = plan.outer;
  ProductLoop batch;
  if (!others.empty()) {
    auto *largest = llvm::max_element(
        others, [](auto &a, auto &b) { return a.size < b.size; });
    batch = *largest;
    others.erase(largest);
  }
  int64_t calls = plan.operands.factors.size();
  for (const ProductLoop &loop : others)
    calls *= loop.size;
  // Sums of products are convolutions' windows: small products, for tiles.
  if (calls > kMostCalls || !plan.sums.empty())
    return false;

  OpBuilder::InsertionGuard guard(builder);
  Location loc = kernel.getLoc();
  int64_t elements =
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getNumElements();
  func::FuncOp function =
      createPointerKernel(builder, kernel, /*scratchBytes=*/0);
  PointerCode emit(builder, loc);
  Value result = function.getArgument(kernel.getNumArguments());
  launchStart(builder, function, plan.operands, result, elements, executor);
  LLVM::LLVMFuncOp sgemm = declareSgemm(builder, function);
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  for (const auto &counters : countersOf(others)) {
    bool first = plan.operands.startsFromZero();
    for (const ProductFactors &factors : plan.operands.factors) {
      int64_t a = factors.offsetA, b = factors.offsetB, c = 0;
      for (auto [loop, counter] : llvm::zip_equal(others, counters)) {
        a += counter * loop.a;
        b += counter * loop.b;
        c += counter * loop.c;
      }
      LLVM::CallOp::create(
          builder, loc, sgemm,
          ValueRange{emit.i32(plan.transposeA), emit.i32(plan.transposeB),
                     i64(plan.m), i64(plan.n), i64(plan.k),
                     emit.at(function.getArgument(factors.argumentA), a),
                     i64(plan.lda), i64(batch.a),
                     emit.at(function.getArgument(factors.argumentB), b),
                     i64(plan.ldb), i64(batch.b), emit.at(result, c),
                     i64(plan.ldc), i64(batch.c), i64(batch.size),
                     emit.i32(!first)});
      first = false;
    }
  }
  func::ReturnOp::create(builder, loc);
  return true;
}
