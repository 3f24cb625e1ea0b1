//===- IntegerPowers.cpp - Powers of whole numbers as products --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// math.fpowi becomes a call of libdevice, whose exponents have 32 bits: one of
/// 64, as PyTorch's, would be read from another place. A constant exponent is
/// products instead, as PyTorch's x ** 2 and x ** 3 are, and libdevice's own
/// way for what is left.
///
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

/// Larger exponents take more products than a call.
constexpr int64_t kMostByProducts = 64;

static Value power(OpBuilder &builder, Location loc, Value base,
                   int64_t exponent) {
  uint64_t left = std::abs(exponent);
  Value found, square = base;
  for (; left; left >>= 1) {
    if (left & 1)
      found =
          found ? arith::MulFOp::create(builder, loc, found, square) : square;
    if (left > 1)
      square = arith::MulFOp::create(builder, loc, square, square);
  }
  if (exponent > 0)
    return found;
  Value one = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(base.getType(), 1.0));
  return found ? arith::DivFOp::create(builder, loc, one, found) : one;
}

LogicalResult baechi::expandIntegerPowers(gpu::GPUModuleOp module) {
  SmallVector<math::FPowIOp> powers;
  module.walk([&](math::FPowIOp op) { powers.push_back(op); });
  for (math::FPowIOp op : powers) {
    OpBuilder builder(op);
    APInt number;
    bool isConstant = matchPattern(op.getRhs(), m_ConstantInt(&number));
    bool isShort = op.getRhs().getType().isInteger(32);
    if (isConstant && isa<FloatType>(op.getType()) &&
        number.sge(-kMostByProducts) && number.sle(kMostByProducts)) {
      op.replaceAllUsesWith(
          power(builder, op.getLoc(), op.getLhs(), number.getSExtValue()));
      op.erase();
    } else if (isConstant && !isShort && number.isSignedIntN(32)) {
      Value narrow = arith::ConstantOp::create(
          builder, op.getLoc(),
          builder.getI32IntegerAttr(int32_t(number.getSExtValue())));
      op.getRhsMutable().assign(narrow);
    } else if (!isShort) {
      return op.emitError("a power of a whole number that is not known has 32 "
                          "bits in GPU code: narrow it (arith.trunci), or pin "
                          "the operator to a host device");
    }
  }
  return success();
}
