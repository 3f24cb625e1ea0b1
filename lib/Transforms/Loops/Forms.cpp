//===- Forms.cpp - Positions as sums of keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Integers of the type index do not wrap, as in the affine dialect. Those of a
/// width may: they are sums where they say that they do not (nsw), or where the
/// keys' bounds show it.
///
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

/// What lib/Loops computes with (`loops::check`).
static constexpr int64_t kMostCoefficient = int64_t(1) << 20;
static constexpr int64_t kMost = ForeachOp::kMostOfKey;

static bool isZero(ArrayRef<int64_t> numbers) {
  return llvm::all_of(numbers, [](int64_t c) { return c == 0; });
}

bool Form::isConstant() const {
  return isZero(at.coefficients) && isZero(at.symbols) && low == high;
}

static Form constant(int64_t number) { return {{{}, number, {}}, 0, 0}; }

static std::optional<Form> ifSmall(Form form) {
  for (const std::vector<int64_t> *all :
       {&form.at.coefficients, &form.at.symbols})
    for (int64_t c : *all)
      if (c > kMostCoefficient || c < -kMostCoefficient)
        return std::nullopt;
  for (int64_t number : {form.at.constant, form.low, form.high})
    if (number > kMost || number < -kMost)
      return std::nullopt;
  return form;
}

std::optional<Form> baechi::times(const std::optional<Form> &a,
                                  int64_t factor) {
  if (!a || factor > kMostCoefficient || factor < -kMostCoefficient)
    return std::nullopt;
  Form made = *a;
  for (std::vector<int64_t> *all : {&made.at.coefficients, &made.at.symbols})
    for (int64_t &c : *all)
      c *= factor;
  made.at.constant *= factor;
  made.low *= factor;
  made.high *= factor;
  if (factor < 0)
    std::swap(made.low, made.high);
  return ifSmall(std::move(made));
}

std::optional<Form> baechi::plus(const std::optional<Form> &a,
                                 const std::optional<Form> &b, int64_t factor) {
  std::optional<Form> other = times(b, factor);
  if (!a || !other)
    return std::nullopt;
  Form made = *a;
  auto add = [](std::vector<int64_t> &to, const std::vector<int64_t> &from) {
    to.resize(std::max(to.size(), from.size()));
    for (auto [into, number] : llvm::zip(to, from))
      into += number;
  };
  add(made.at.coefficients, other->at.coefficients);
  add(made.at.symbols, other->at.symbols);
  made.at.constant += other->at.constant;
  // Both may move by the same counter.
  made.isTight &=
      other->isTight && (made.low == made.high || other->low == other->high);
  made.low += other->low;
  made.high += other->high;
  return ifSmall(std::move(made));
}

Forms::Forms(ForeachOp loop) : loop(loop) {
  for (auto [number, key] : llvm::enumerate(loop.getKeys())) {
    Form form;
    form.at.coefficients.assign(number + 1, 0);
    form.at.coefficients[number] = 1;
    known[key] = form;
  }
}

std::optional<Form> Forms::of(OpFoldResult value) {
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return ifSmall(constant(*number));
  return of(cast<Value>(value));
}

/// What the form of a value of the body is made of.
static ValueRange summandsOf(Value value) {
  Operation *op = value.getDefiningOp();
  bool isSum = isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp,
                               arith::IndexCastOp, arith::ExtSIOp,
                               affine::AffineApplyOp>(op);
  return isSum ? ValueRange(op->getOperands()) : ValueRange();
}

/// Operands first, by a stack of our own: chains of a program may be long.
std::optional<Form> Forms::of(Value value) {
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.back();
    size_t count = open.size();
    if (!known.contains(next) &&
        loop.getBody().isAncestor(next.getParentRegion()))
      for (Value summand : llvm::reverse(summandsOf(next)))
        if (!known.contains(summand))
          open.push_back(summand);
    if (open.size() > count)
      continue;
    if (!known.contains(next)) {
      std::optional<Form> form = compute(next);
      known[next] = std::move(form);
    }
    open.pop_back();
  }
  return known.lookup(value);
}

std::optional<Form> Forms::of(AffineExpr expression, ValueRange operands,
                              unsigned dims) {
  switch (expression.getKind()) {
  case AffineExprKind::Constant:
    return ifSmall(constant(cast<AffineConstantExpr>(expression).getValue()));
  case AffineExprKind::DimId:
    return of(operands[cast<AffineDimExpr>(expression).getPosition()]);
  case AffineExprKind::SymbolId:
    return of(
        operands[dims + cast<AffineSymbolExpr>(expression).getPosition()]);
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expression);
  std::optional<Form> left = of(binary.getLHS(), operands, dims);
  std::optional<Form> right = of(binary.getRHS(), operands, dims);
  if (!left || !right)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add)
    return plus(left, right);
  if (binary.getKind() == AffineExprKind::Mul && right->isConstant())
    return times(left, right->at.constant + right->low);
  if (binary.getKind() == AffineExprKind::Mul && left->isConstant())
    return times(right, left->at.constant + left->low);
  // A remainder is somewhere below what it is of.
  if (binary.getKind() == AffineExprKind::Mod && right->isConstant() &&
      right->at.constant + right->low > 0)
    return ifSmall(
        {{}, 0, right->at.constant + right->low - 1, /*isTight=*/false});
  return std::nullopt;
}

bool Forms::isInvariant(Value value) {
  llvm::SetVector<Operation *> computing;
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!loop.getBody().isAncestor(next.getParentRegion()))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || op->getNumRegions() > 0 || !isPure(op))
      return false;
    if (!invariant.contains(op) && computing.insert(op))
      llvm::append_range(open, op->getOperands());
  }
  invariant.insert(computing.begin(), computing.end());
  return true;
}

std::optional<Form> Forms::symbol(Value value) {
  if (!isInvariant(value))
    return std::nullopt;
  Form form;
  form.at.symbols.assign(symbols.size() + 1, 0);
  form.at.symbols.back() = 1;
  symbols.push_back(value);
  return form;
}

/// A counter of a loop in the body: [lower, upper) where both move alike.
std::optional<Form> Forms::counter(BlockArgument argument) {
  auto inner =
      dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
  if (!inner)
    return std::nullopt;
  std::optional<SmallVector<Value>> counters = inner.getLoopInductionVars();
  if (!counters || !llvm::is_contained(*counters, argument))
    return std::nullopt;
  std::optional<Form> lower, upper;
  std::optional<int64_t> step;
  if (auto loop = dyn_cast<affine::AffineForOp>(inner.getOperation())) {
    AffineMap lowers = loop.getLowerBoundMap(),
              uppers = loop.getUpperBoundMap();
    if (lowers.getNumResults() != 1 || uppers.getNumResults() != 1)
      return std::nullopt;
    lower = of(lowers.getResult(0), loop.getLowerBoundOperands(),
               lowers.getNumDims());
    upper = of(uppers.getResult(0), loop.getUpperBoundOperands(),
               uppers.getNumDims());
    step = loop.getStepAsInt();
  } else {
    size_t at = llvm::find(*counters, argument) - counters->begin();
    auto lowers = inner.getLoopLowerBounds(),
         uppers = inner.getLoopUpperBounds();
    auto steps = inner.getLoopSteps();
    if (!lowers || !uppers || !steps)
      return std::nullopt;
    lower = of((*lowers)[at]);
    upper = of((*uppers)[at]);
    step = getConstantIntValue((*steps)[at]);
  }
  std::optional<Form> size = plus(upper, lower, -1);
  if (!lower || !size || !step || *step <= 0 ||
      !isZero(size->at.coefficients) || !isZero(size->at.symbols))
    return std::nullopt;
  // `size` counts what loops around it may add to a bound on both sides.
  int64_t last =
      upper->at.constant + upper->high - lower->at.constant - lower->low - 1;
  if (lower->low == lower->high && last > 0)
    last -= last % *step;
  Form form = *lower;
  form.isTight =
      last >= 0 && lower->low == lower->high && upper->low == upper->high;
  form.high = std::max(lower->high, lower->low + std::max<int64_t>(last, 0));
  return ifSmall(std::move(form));
}

/// The form, if no value of the result's width is beyond it.
std::optional<Form> Forms::inWidth(std::optional<Form> form, Operation *op) {
  Type type = op->getResult(0).getType();
  if (!form || type.isIndex())
    return form;
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    if (flags.hasNoSignedWrap())
      return form;
  unsigned width = type.getIntOrFloatBitWidth();
  if (!isZero(form->at.symbols) || width > 64)
    return std::nullopt;
  __int128 least = form->at.constant + form->low;
  __int128 most = form->at.constant + form->high;
  for (auto [key, c] : llvm::enumerate(form->at.coefficients)) {
    int64_t lower = loop.getLowers()[key], upper = loop.getUppers()[key];
    if (lower == ShapedType::kDynamic)
      lower = -kMost;
    if (upper == ShapedType::kDynamic)
      upper = kMost;
    __int128 first = __int128(c) * lower, last = __int128(c) * (upper - 1);
    least += std::min(first, last);
    most += std::max(first, last);
  }
  __int128 end = __int128(1) << (width - 1);
  return least >= -end && most < end ? form : std::nullopt;
}

std::optional<Form> Forms::compute(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSignificantBits() <= 64
               ? ifSmall(constant(number.getSExtValue()))
               : std::nullopt;
  if (!value.getType().isSignlessIntOrIndex())
    return std::nullopt;
  if (!loop.getBody().isAncestor(value.getParentRegion()))
    return symbol(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return counter(argument);
  Operation *op = value.getDefiningOp();
  std::optional<Form> form =
      llvm::TypeSwitch<Operation *, std::optional<Form>>(op)
          .Case([&](arith::AddIOp add) {
            return plus(of(add.getLhs()), of(add.getRhs()));
          })
          .Case([&](arith::SubIOp subtract) {
            return plus(of(subtract.getLhs()), of(subtract.getRhs()), -1);
          })
          .Case([&](arith::MulIOp multiply) -> std::optional<Form> {
            std::optional<Form> left = of(multiply.getLhs());
            std::optional<Form> right = of(multiply.getRhs());
            if (right && right->isConstant())
              return times(left, right->at.constant + right->low);
            if (left && left->isConstant())
              return times(right, left->at.constant + left->low);
            return std::nullopt;
          })
          .Case<arith::IndexCastOp, arith::ExtSIOp>(
              [&](auto cast) { return of(cast.getIn()); })
          .Case([&](affine::AffineApplyOp apply) {
            AffineMap map = apply.getAffineMap();
            return of(map.getResult(0), apply.getMapOperands(),
                      map.getNumDims());
          })
          .Default(std::nullopt);
  form = inWidth(form, op);
  return form ? form : symbol(value);
}
