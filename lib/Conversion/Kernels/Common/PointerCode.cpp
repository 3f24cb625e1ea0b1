//===- PointerCode.cpp - Building code on pointers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/PointerCode.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

func::FuncOp baechi::createPointerKernel(OpBuilder &builder,
                                         func::FuncOp kernel,
                                         int64_t scratchBytes) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  SmallVector<Type> inputs(kernel.getNumArguments() + 2, pointer);
  auto function =
      func::FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(),
                           builder.getFunctionType(inputs, {}));
  function.setPrivate();
  function->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
  function->setAttr(BaechiDialect::kKernelScratch,
                    builder.getI64IntegerAttr(scratchBytes));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

Value PointerCode::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value PointerCode::i32(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value PointerCode::f32(float value) {
  return arith::ConstantFloatOp::create(builder, loc, builder.getF32Type(),
                                        APFloat(value));
}

Value PointerCode::at(Value pointer, Value offset) {
  Value i64 =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), element, pointer,
                             ValueRange(i64));
}

Value PointerCode::at(Value pointer, int64_t offset) {
  if (offset == 0)
    return pointer;
  return at(pointer, index(offset));
}

Value PointerCode::at(Value pointer, ArrayRef<Term> terms) {
  for (auto [iv, stride] : terms) {
    if (stride == 0)
      continue;
    pointer =
        at(pointer, arith::MulIOp::create(builder, loc, iv, index(stride)));
  }
  return pointer;
}

Value PointerCode::enterLoop(int64_t size) {
  auto loop = scf::ForOp::create(builder, loc, index(0), index(size), index(1));
  builder.setInsertionPointToStart(loop.getBody());
  return loop.getInductionVar();
}
