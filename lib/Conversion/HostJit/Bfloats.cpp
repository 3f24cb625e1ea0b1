//===- Bfloats.cpp - Numbers to bfloat16 without a library ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the processor has no instruction for it, LLVM rounds to bfloat16 by
// calling __truncsfbf2 and __truncdfbf2, which GCC's library lacks before
// version 13. A module that has such numbers gets its own.
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace baechi;
using namespace llvm;

namespace {
bool isBfloat(const Type *type) { return type->getScalarType()->isBFloatTy(); }

bool hasBfloats(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isBfloat(instruction.getType()) ||
          llvm::any_of(instruction.operands(), [](const Use &operand) {
            return isBfloat(operand->getType());
          }))
        return true;
  return false;
}

/// The float `number` (a double) rounds to, such that rounding that again to
/// fewer bits is as rounding `number` itself: of its two neighbours the one
/// whose last bit is set (Boldo and Melquiond, "Emulation of a FMA and
/// Correctly Rounded Sums", 2008).
Value *roundToOdd(IRBuilder<> &builder, Value *number) {
  Type *i32 = builder.getInt32Ty();
  auto magnitude = [&](Value *value) {
    return builder.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  };
  Value *nearest = builder.CreateFPTrunc(number, builder.getFloatTy());
  Value *back = builder.CreateFPExt(nearest, builder.getDoubleTy());
  Value *bits = builder.CreateBitCast(nearest, i32);
  Value *isEven = builder.CreateIsNull(builder.CreateAnd(bits, 1));
  Value *wrong = builder.CreateAnd(builder.CreateFCmpONE(back, number), isEven);
  Value *isAbove = builder.CreateFCmpOGT(magnitude(back), magnitude(number));
  Value *step =
      builder.CreateSelect(isAbove, builder.getInt32(-1), builder.getInt32(1));
  Value *odd = builder.CreateAdd(bits, step);
  return builder.CreateBitCast(builder.CreateSelect(wrong, odd, bits),
                               builder.getFloatTy());
}

/// `number`, a float, to the nearest bfloat16, ties to even. NaNs stay NaNs.
Value *roundToNearest(IRBuilder<> &builder, Value *number) {
  Value *bits = builder.CreateBitCast(number, builder.getInt32Ty());
  Value *upper = builder.CreateLShr(bits, 16);
  Value *bias =
      builder.CreateAdd(builder.CreateAnd(upper, 1), builder.getInt32(0x7fff));
  Value *rounded = builder.CreateLShr(builder.CreateAdd(bits, bias), 16);
  Value *quiet = builder.CreateOr(upper, 0x40);
  Value *chosen = builder.CreateSelect(builder.CreateFCmpUNO(number, number),
                                       quiet, rounded);
  return builder.CreateBitCast(
      builder.CreateTrunc(chosen, builder.getInt16Ty()), builder.getBFloatTy());
}

GlobalValue *define(Module &module, StringRef name, Type *argument) {
  auto *function = Function::Create(
      FunctionType::get(Type::getBFloatTy(module.getContext()), {argument},
                        /*isVarArg=*/false),
      GlobalValue::InternalLinkage, name, module);
  IRBuilder<> builder(
      BasicBlock::Create(module.getContext(), "entry", function));
  Value *number = function->getArg(0);
  if (argument->isDoubleTy())
    number = roundToOdd(builder, number);
  builder.CreateRet(roundToNearest(builder, number));
  return function;
}
} // namespace

void baechi::defineBfloatRounding(Module &module) {
  if (!hasBfloats(module))
    return;
  // The calls appear only when instructions are selected.
  appendToCompilerUsed(
      module,
      {define(module, "__truncsfbf2", Type::getFloatTy(module.getContext())),
       define(module, "__truncdfbf2", Type::getDoubleTy(module.getContext()))});
}
