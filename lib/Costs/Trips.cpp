//===- Trips.cpp - Iterations of loops --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Trips.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

namespace {
bool isOneElement(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return !shaped || (shaped.hasStaticShape() && shaped.getNumElements() == 1);
}

/// Of an integer, or of the elements of a tensor of them.
unsigned widthOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? IndexType::kInternalStorageBitWidth
                           : element.getIntOrFloatBitWidth();
}

/// Whether all bits of its operand are in the result of `op`.
bool keepsNumber(Operation *op) {
  return isa<tensor::ExtractOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             tensor::FromElementsOp, arith::ExtSIOp>(op) ||
         (isa<arith::IndexCastOp>(op) &&
          widthOf(op->getOperand(0).getType()) <=
              widthOf(op->getResult(0).getType()));
}

/// Whether its body runs once.
bool isOneTurn(linalg::GenericOp op) {
  return llvm::all_of(op.getStaticLoopRanges(),
                      [](int64_t size) { return size == 1; });
}

/// What computes the number that `value` is, or holds as its one element: seen
/// through reads of the element, changes of shape, wider integers, and the
/// bodies of structured operations on one element.
Value numberOf(Value value) {
  while (isOneElement(value.getType())) {
    Operation *op = value.getDefiningOp();
    if (op && keepsNumber(op)) {
      value = op->getOperand(0);
      continue;
    }
    auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
    if (generic && isOneTurn(generic)) {
      value = generic.getBody()->getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(value);
    auto around =
        argument
            ? dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp())
            : linalg::GenericOp();
    if (!around || !isOneTurn(around))
      break;
    value = around->getOperand(argument.getArgNumber());
  }
  return value;
}

std::optional<int64_t> constantOf(Value value) {
  APInt number;
  value = numberOf(value);
  if (!isOneElement(value.getType()) ||
      !matchPattern(value, m_ConstantInt(&number)) ||
      number.getSignificantBits() > 62)
    return std::nullopt;
  return number.getSExtValue();
}

/// The loop goes on while `counter` is so to `bound`.
struct Limit {
  arith::CmpIPredicate predicate;
  BlockArgument counter;
  int64_t bound;
};

/// The order that `a` and `b` are in when `b` and `a` are in the order
/// `predicate`; nothing for what is no signed order.
std::optional<arith::CmpIPredicate> swapped(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return std::nullopt;
  }
}

std::optional<Limit> limitOf(scf::WhileOp loop) {
  auto compare = numberOf(loop.getConditionOp().getCondition())
                     .getDefiningOp<arith::CmpIOp>();
  if (!compare || !swapped(compare.getPredicate()))
    return std::nullopt;
  auto match = [&](arith::CmpIPredicate predicate, Value counter,
                   Value bound) -> std::optional<Limit> {
    auto argument = dyn_cast<BlockArgument>(numberOf(counter));
    std::optional<int64_t> number = constantOf(bound);
    if (!argument || argument.getOwner() != loop.getBeforeBody() || !number)
      return std::nullopt;
    return Limit{predicate, argument, *number};
  };
  if (auto limit =
          match(compare.getPredicate(), compare.getLhs(), compare.getRhs()))
    return limit;
  return match(*swapped(compare.getPredicate()), compare.getRhs(),
               compare.getLhs());
}

/// By how much an iteration changes `counter`; in `width` the bits of what
/// adds.
std::optional<int64_t> stepOf(scf::WhileOp loop, BlockArgument counter,
                              unsigned &width) {
  auto add = numberOf(loop.getYieldOp().getOperand(counter.getArgNumber()))
                 .getDefiningOp<arith::AddIOp>();
  if (!add)
    return std::nullopt;
  width = widthOf(add.getType());
  for (unsigned side : {0, 1}) {
    auto former = dyn_cast<BlockArgument>(numberOf(add->getOperand(side)));
    std::optional<int64_t> step = constantOf(add->getOperand(1 - side));
    if (former && step && former.getOwner() == loop.getAfterBody() &&
        numberOf(loop.getConditionOp().getArgs()[former.getArgNumber()]) ==
            counter)
      return step;
  }
  return std::nullopt;
}

/// How many steps from `first` reach `end`; nothing where the last one does not
/// fit `width` bits, or the count 64.
std::optional<int64_t> stepsTo(int64_t first, int64_t end, int64_t step,
                               unsigned width) {
  int64_t way, added, last;
  if (llvm::SubOverflow(end, first, way))
    return std::nullopt;
  int64_t count =
      (way > 0) == (step > 0) ? llvm::divideCeilSigned(way, step) : 0;
  if (llvm::MulOverflow(count, step, added) ||
      llvm::AddOverflow(first, added, last) || !llvm::isIntN(width, last))
    return std::nullopt;
  return count;
}

std::optional<Turns> turnsOfWhile(scf::WhileOp loop) {
  std::optional<Limit> limit = limitOf(loop);
  if (!limit)
    return std::nullopt;
  unsigned width = 0;
  std::optional<int64_t> step = stepOf(loop, limit->counter, width);
  std::optional<int64_t> first =
      constantOf(loop.getInits()[limit->counter.getArgNumber()]);
  if (!step || !first || *step == 0)
    return std::nullopt;
  bool rises = limit->predicate == arith::CmpIPredicate::slt ||
               limit->predicate == arith::CmpIPredicate::sle;
  if (rises != (*step > 0)) // none, or as many as there are numbers
    return std::nullopt;
  // It has 62 bits.
  int64_t end = limit->bound;
  if (limit->predicate == arith::CmpIPredicate::sle)
    ++end;
  if (limit->predicate == arith::CmpIPredicate::sge)
    --end;
  std::optional<int64_t> count = stepsTo(*first, end, *step, width);
  if (!count)
    return std::nullopt;
  return Turns{*count, *first, *step, limit->counter.getArgNumber()};
}
} // namespace

std::optional<Turns> baechi::turnsOf(LoopLikeOpInterface loop) {
  if (auto counting = dyn_cast<scf::WhileOp>(*loop))
    return turnsOfWhile(counting);
  auto counting = dyn_cast<scf::ForOp>(*loop);
  if (!counting || counting.getUnsignedCmp())
    return std::nullopt;
  std::optional<int64_t> first = getConstantIntValue(counting.getLowerBound()),
                         step = getConstantIntValue(counting.getStep());
  std::optional<int64_t> end = getConstantIntValue(counting.getUpperBound());
  if (!end || !first || !step || *step <= 0)
    return std::nullopt;
  std::optional<int64_t> count = stepsTo(
      *first, *end, *step, widthOf(counting.getInductionVar().getType()));
  if (!count)
    return std::nullopt;
  return Turns{*count, *first, *step};
}

double baechi::tripsOf(LoopLikeOpInterface loop) {
  if (auto counting = dyn_cast<scf::WhileOp>(*loop)) {
    std::optional<Turns> turns = turnsOfWhile(counting);
    return turns ? double(turns->count) : 1;
  }
  auto lower = loop.getLoopLowerBounds(), upper = loop.getLoopUpperBounds(),
       steps = loop.getLoopSteps();
  if (!lower || !upper || !steps)
    return 1;
  double trips = 1;
  for (auto [from, to, by] : llvm::zip_equal(*lower, *upper, *steps)) {
    std::optional<int64_t> first = getConstantIntValue(from),
                           end = getConstantIntValue(to),
                           step = getConstantIntValue(by);
    if (first && end && step && *step > 0)
      trips *= std::max<double>(
          0, std::ceil((static_cast<double>(*end) - *first) / *step));
  }
  return trips;
}
