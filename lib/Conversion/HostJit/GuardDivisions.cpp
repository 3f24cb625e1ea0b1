//===- GuardDivisions.cpp - No kernel divides by zero -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace baechi;
using namespace llvm;

namespace {
bool isSigned(const BinaryOperator &division) {
  return division.getOpcode() == Instruction::SDiv ||
         division.getOpcode() == Instruction::SRem;
}

/// Whether some operands would end the process: a divisor of zero and, signed,
/// the smallest number divided by -1.
bool mayTrap(const BinaryOperator &division) {
  auto *divisor = dyn_cast<Constant>(division.getOperand(1));
  if (auto *number = dyn_cast_or_null<ConstantInt>(
          divisor && divisor->getType()->isVectorTy() ? divisor->getSplatValue()
                                                      : divisor))
    return number->isZero() || (isSigned(division) && number->isMinusOne());
  return true;
}

/// Divides by one instead, and reports a zero. The smallest number divided by
/// -1 becomes itself, without a remainder, as XLA has it.
void guard(BinaryOperator &division, FunctionCallee report) {
  IRBuilder<> builder(&division);
  Value *dividend = division.getOperand(0), *divisor = division.getOperand(1);
  Type *type = divisor->getType();
  Value *zero = builder.CreateIsNull(divisor);
  Value *traps = zero;
  if (isSigned(division)) {
    Constant *smallest = ConstantInt::get(
        type, APInt::getSignedMinValue(type->getScalarSizeInBits()));
    Value *overflows = builder.CreateAnd(
        builder.CreateICmpEQ(divisor, Constant::getAllOnesValue(type)),
        builder.CreateICmpEQ(dividend, smallest));
    traps = builder.CreateOr(zero, overflows);
  }
  division.setOperand(
      1, builder.CreateSelect(traps, ConstantInt::get(type, 1), divisor));
  Value *any = type->isVectorTy() ? builder.CreateOrReduce(zero) : zero;
  MDNode *rarely =
      MDBuilder(division.getContext()).createUnlikelyBranchWeights();
  Instruction *then = SplitBlockAndInsertIfThen(any, division.getIterator(),
                                                /*Unreachable=*/false, rarely);
  IRBuilder<>(then).CreateCall(report);
}
} // namespace

void baechi::guardDivisions(Module &module) {
  SmallVector<BinaryOperator *> divisions;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *division = dyn_cast<BinaryOperator>(&instruction))
        if (division->isIntDivRem() && mayTrap(*division))
          divisions.push_back(division);
  if (divisions.empty())
    return;
  FunctionCallee report = module.getOrInsertFunction(
      kDividedByZero, Type::getVoidTy(module.getContext()));
  for (BinaryOperator *division : divisions)
    guard(*division, report);
}
