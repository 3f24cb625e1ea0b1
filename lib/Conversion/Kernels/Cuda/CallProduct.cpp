//===- CallProduct.cpp - Products by the runtime's library -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaAbi.h"
#include "Common/PointerCode.h"
#include "LibraryCall.h"
#include "Mapping.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace baechi;

namespace {
/// One call: where A, B and C start, in elements, and in which arguments.
struct Call {
  ProductFactors factors;
  int64_t offsetC = 0;
  bool accumulates = false;
};

baechi_cuda_product describe(const LibraryProduct &product,
                             ArrayRef<Call> calls) {
  const GemmPlan &plan = product.plan;
  const ProductLoop &batch = product.batch;
  baechi_cuda_product to{};
  to.transpose_a = plan.transposeA;
  to.transpose_b = plan.transposeB;
  to.m = plan.m;
  to.n = plan.n;
  to.k = plan.k;
  to.ld_a = plan.lda;
  to.stride_a = batch.a;
  to.ld_b = plan.ldb;
  to.stride_b = batch.b;
  to.ld_c = plan.ldc;
  to.stride_c = batch.c;
  to.batch = batch.size;
  auto bytesOf = [](Type type) -> int64_t {
    return type.getIntOrFloatBitWidth() / 8;
  };
  to.align_a = to.align_b = to.align_c = kPointerAlignment;
  for (const Call &call : calls) {
    int64_t factor = bytesOf(plan.factorType);
    to.align_a = std::gcd(to.align_a, call.factors.offsetA * factor);
    to.align_b = std::gcd(to.align_b, call.factors.offsetB * factor);
    to.align_c = std::gcd(to.align_c, call.offsetC * bytesOf(plan.resultType));
  }
  to.factor_type = cudaTypeOf(plan.factorType);
  to.result_type = cudaTypeOf(plan.resultType);
  CudaProductAttr how = product.how;
  to.math = llvm::find(CudaProductAttr::knownMath(), how.getMath()) -
            CudaProductAttr::knownMath().begin();
  to.has_bias = product.bias.has_value();
  to.workspace_bytes = how.getWorkspace();
  if (how.getAlgorithm())
    llvm::copy(how.getAlgorithm().asArrayRef(), to.algorithm);
  return to;
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

func::FuncOp baechi::createProductFunction(OpBuilder &builder,
                                           func::FuncOp kernel,
                                           int64_t scratchBytes) {
  func::FuncOp function = createPointerKernel(builder, kernel, scratchBytes);
  StringRef name = LLVM::LLVMDialect::getDereferenceableAttrName();
  auto tell = [&](unsigned argument, int64_t bytes) {
    if (bytes > 0)
      function.setArgAttr(argument, name, builder.getI64IntegerAttr(bytes));
  };
  unsigned number = 0;
  for (TypeRange types : {kernel.getArgumentTypes(), kernel.getResultTypes()})
    for (Type type : types)
      tell(number++, bytesOf(cast<ShapedType>(type)).value_or(0));
  tell(number, scratchBytes);
  return function;
}

void baechi::launchStart(OpBuilder &builder, func::FuncOp function,
                         const ProductOperands &operands, Value result,
                         RankedTensorType resultType, Executor executor) {
  Location loc = function.getLoc();
  Type element = resultType.getElementType();
  int64_t elements = resultType.getNumElements();
  PointerCode emit(builder, loc, element);
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
          source ? Value(LLVM::LoadOp::create(builder, loc, element,
                                              emit.at(source, at)))
                 : Value(arith::ConstantOp::create(
                       builder, loc,
                       builder.getFloatAttr(element, operands.startValue)));
      LLVM::StoreOp::create(builder, loc, value, emit.at(result, at));
    });
  });
  code.finish();
}

static SmallVector<Call> callsOf(const LibraryProduct &product) {
  const GemmPlan &plan = product.plan;
  SmallVector<Call> calls;
  for (const auto &counters : countersOf(product.others)) {
    bool accumulates = !plan.operands.startsFromZero();
    for (const ProductFactors &factors : plan.operands.factors) {
      Call &call = calls.emplace_back(Call{factors, 0, accumulates});
      for (auto [loop, counter] : llvm::zip_equal(product.others, counters)) {
        call.factors.offsetA += counter * loop.a;
        call.factors.offsetB += counter * loop.b;
        call.offsetC += counter * loop.c;
      }
      accumulates = true;
    }
  }
  return calls;
}

std::optional<CudaProductCalls> baechi::cudaProductOf(func::FuncOp kernel) {
  std::optional<LibraryProduct> product = matchLibraryProduct(kernel);
  if (!product || !kernel->hasAttr(BaechiDialect::kCudaProduct))
    return std::nullopt;
  SmallVector<Call> calls = callsOf(*product);
  return CudaProductCalls{describe(*product, calls),
                          static_cast<int64_t>(calls.size())};
}

void baechi::callProduct(OpBuilder &builder, func::FuncOp kernel,
                         const LibraryProduct &product, Executor executor) {
  const GemmPlan &plan = product.plan;
  SmallVector<Call> calls = callsOf(product);
  OpBuilder::InsertionGuard guard(builder);
  Location loc = kernel.getLoc();
  func::FuncOp function = createProductFunction(
      builder, kernel, scratchFor(product.how.getWorkspace()));
  PointerCode factor(builder, loc, plan.factorType);
  PointerCode sum(builder, loc, plan.resultType);
  Value result = function.getArgument(kernel.getNumArguments());
  Value workspace = function.getArguments().back();
  if (product.how.getWorkspace() > 0)
    workspace = alignWorkspace(builder, loc, workspace);
  launchStart(builder, function, plan.operands, result,
              cast<RankedTensorType>(kernel.getResultTypes()[0]), executor);
  LLVM::LLVMFuncOp multiply =
      declareLibraryCall(builder, function, "baechi_cuda_multiply",
                         /*pointers=*/6, /*numbers=*/1);
  Value description =
      constantWords(builder, function, "__product", describe(product, calls));
  Value bias =
      product.bias
          ? Value(function.getArgument(*product.bias))
          : Value(LLVM::ZeroOp::create(builder, loc, result.getType()));
  for (const Call &call : calls) {
    const ProductFactors &at = call.factors;
    LLVM::CallOp::create(
        builder, loc, multiply,
        ValueRange{description,
                   factor.at(function.getArgument(at.argumentA), at.offsetA),
                   factor.at(function.getArgument(at.argumentB), at.offsetB),
                   sum.at(result, call.offsetC), bias, workspace,
                   sum.i32(call.accumulates)});
  }
  func::ReturnOp::create(builder, loc);
}
