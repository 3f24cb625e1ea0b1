//===- IndexWidth.cpp - Kernels that need 64-bit indices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the host an index has 64 bits. On the device 32 bits, whose divisions take
// half the time, do the same where every index is within them. What addressing
// needs is bounded by the tensors' sizes; what a kernel computes on indices by
// itself is bounded by intervals here.
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/ConstantRange.h"

using namespace mlir;
using namespace baechi;
using llvm::ConstantRange;

namespace {
ConstantRange everything() { return ConstantRange::getFull(64); }

/// `from` to `to`, that included.
ConstantRange between(int64_t from, int64_t to) {
  return ConstantRange::getNonEmpty(APInt(64, from, true),
                                    APInt(64, to, true) + 1);
}

ConstantRange ofType(Type type) {
  if (!type.isInteger() || type.getIntOrFloatBitWidth() >= 64)
    return everything();
  unsigned bits = type.getIntOrFloatBitWidth();
  return between(llvm::minIntN(bits), llvm::maxIntN(bits));
}

bool isNotNegative(const ConstantRange &range) {
  return !range.isEmptySet() && range.getSignedMin().isNonNegative();
}

/// What the integers and indices of a kernel may be, sign-extended to 64 bits.
class Ranges {
public:
  ConstantRange of(Value value) {
    if (auto known = ranges.find(value); known != ranges.end())
      return known->second;
    ConstantRange range = value.getDefiningOp()
                              ? compute(value.getDefiningOp())
                              : compute(cast<BlockArgument>(value));
    // Narrow integers wrap around; code that does not run has no values.
    ConstantRange possible = ofType(value.getType());
    if (range.isEmptySet() || !possible.contains(range))
      range = possible;
    ranges.insert({value, range});
    return range;
  }

private:
  ConstantRange compute(BlockArgument argument);
  ConstantRange compute(Operation *op);
  ConstantRange compute(AffineExpr expr, affine::AffineApplyOp apply);

  DenseMap<Value, ConstantRange> ranges;
};
} // namespace

/// Counters of loops, and positions in what is generated.
ConstantRange Ranges::compute(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent);
      loop && argument == loop.getInductionVar()) {
    ConstantRange from = of(loop.getLowerBound()),
                  to = of(loop.getUpperBound());
    if (from.getSignedMin().slt(to.getSignedMax()))
      return ConstantRange::getNonEmpty(from.getSignedMin(), to.getSignedMax());
    return from;
  }
  if (isa<tensor::PadOp, tensor::GenerateOp>(parent)) {
    auto type = cast<RankedTensorType>(parent->getResult(0).getType());
    int64_t size = type.getDimSize(argument.getArgNumber());
    if (size > 0)
      return between(0, size - 1);
  }
  return everything();
}

/// What fused row loops write: sums and multiples.
ConstantRange Ranges::compute(AffineExpr expr, affine::AffineApplyOp apply) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return between(constant.getValue(), constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return of(apply.getOperand(dim.getPosition()));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return of(apply.getOperand(apply.getAffineMap().getNumDims() +
                               symbol.getPosition()));
  auto both = cast<AffineBinaryOpExpr>(expr);
  ConstantRange a = compute(both.getLHS(), apply);
  ConstantRange b = compute(both.getRHS(), apply);
  ConstantRange range = expr.getKind() == AffineExprKind::Add   ? a.add(b)
                        : expr.getKind() == AffineExprKind::Mul ? a.multiply(b)
                                                                : everything();
  // A part that is not within 32 bits is as bad as a result.
  return between(INT32_MIN, INT32_MAX).contains(range) ? range : everything();
}

ConstantRange Ranges::compute(Operation *op) {
  APInt constant;
  if (op->getNumResults() == 1 && matchPattern(op, m_ConstantInt(&constant)))
    return constant.getBitWidth() <= 64 ? ConstantRange(constant.sext(64))
                                        : everything();
  auto a = [&] { return of(op->getOperand(0)); };
  auto b = [&] { return of(op->getOperand(1)); };
  return llvm::TypeSwitch<Operation *, ConstantRange>(op)
      .Case([&](linalg::IndexOp index) {
        auto parent = cast<linalg::LinalgOp>(op->getParentOp());
        int64_t size = parent.getStaticLoopRanges()[index.getDim()];
        return size > 0 ? between(0, size - 1) : everything();
      })
      .Case([&](affine::AffineApplyOp apply) {
        return compute(apply.getAffineMap().getResult(0), apply);
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto) { return a(); })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>(
          [&](auto) { return isNotNegative(a()) ? a() : everything(); })
      .Case([&](arith::AddIOp) { return a().add(b()); })
      .Case([&](arith::SubIOp) { return a().sub(b()); })
      .Case([&](arith::MulIOp) { return a().multiply(b()); })
      .Case([&](arith::DivSIOp) { return a().sdiv(b()); })
      .Case([&](arith::RemSIOp) { return a().srem(b()); })
      .Case([&](arith::MinSIOp) { return a().smin(b()); })
      .Case([&](arith::MaxSIOp) { return a().smax(b()); })
      // Sign extension keeps the order of unsigned numbers.
      .Case([&](arith::MinUIOp) { return a().umin(b()); })
      .Case([&](arith::MaxUIOp) { return a().umax(b()); })
      .Case([&](arith::DivUIOp) {
        return isNotNegative(a()) && isNotNegative(b()) ? a().udiv(b())
                                                        : everything();
      })
      .Case([&](arith::RemUIOp) {
        return isNotNegative(a()) && isNotNegative(b()) ? a().urem(b())
                                                        : everything();
      })
      .Case([&](arith::SelectOp select) {
        return of(select.getTrueValue()).unionWith(of(select.getFalseValue()));
      })
      .Default([](Operation *) { return everything(); });
}

bool baechi::needsWideIndices(func::FuncOp kernel) {
  constexpr int64_t kMostElements = int64_t(1) << 30;
  Ranges ranges;
  auto isWide = [&](Value value) {
    if (auto tensor = dyn_cast<ShapedType>(value.getType()))
      return tensor.hasStaticShape() && tensor.getNumElements() > kMostElements;
    if (!value.getType().isSignlessIntOrIndex())
      return false;
    // Of integers, too: what comes later finds those that it is made of, and
    // long chains are not followed back.
    ConstantRange range = ranges.of(value);
    return value.getType().isIndex() &&
           !between(INT32_MIN, INT32_MAX).contains(range);
  };
  return kernel
      .walk([&](Operation *op) {
        bool wide = llvm::any_of(op->getResults(), isWide);
        for (Region &region : op->getRegions())
          for (Block &block : region)
            wide |= llvm::any_of(block.getArguments(), isWide);
        // Gives an integer of what would be another number in 32 bits.
        if (auto cast = dyn_cast<arith::IndexCastUIOp>(op))
          wide |= cast.getIn().getType().isIndex() &&
                  !isNotNegative(ranges.of(cast.getIn()));
        return wide ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}
