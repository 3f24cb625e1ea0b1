//===- Nest.cpp - Loops that become keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace baechi;

InFlightDiagnostic baechi::notRaised(Operation *loop) {
  return loop->emitRemark("not raised: ");
}

OpFoldResult baechi::stepsOf(OpBuilder &builder, Location loc,
                             OpFoldResult lower, OpFoldResult upper,
                             int64_t step) {
  std::optional<int64_t> from = getConstantIntValue(lower);
  std::optional<int64_t> to = getConstantIntValue(upper);
  if (from && to)
    return builder.getIndexAttr(
        *to > *from ? llvm::divideCeil(*to - *from, step) : 0);
  // Not of affine: what is a number to it depends on where it stands.
  Value size = getValueOrCreateConstantIndexOp(builder, loc, upper);
  if (from != 0)
    size = arith::SubIOp::create(
        builder, loc, size,
        getValueOrCreateConstantIndexOp(builder, loc, lower));
  if (step != 1)
    size = arith::CeilDivSIOp::create(
        builder, loc, size, arith::ConstantIndexOp::create(builder, loc, step));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return arith::MaxSIOp::create(builder, loc, size, zero).getResult();
}

namespace {
using Range = std::pair<int64_t, int64_t>;

/// The least and the most of a sum of dimensions, where that is known.
std::optional<Range> rangeOf(AffineExpr sum,
                             ArrayRef<std::optional<Range>> of) {
  if (auto number = dyn_cast<AffineConstantExpr>(sum))
    return Range(number.getValue(), number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(sum))
    return of[dim.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(sum);
  if (!binary)
    return std::nullopt;
  std::optional<Range> left = rangeOf(binary.getLHS(), of);
  std::optional<Range> right = rangeOf(binary.getRHS(), of);
  if (!left || !right)
    return std::nullopt;
  if (sum.getKind() == AffineExprKind::Add)
    return Range(left->first + right->first, left->second + right->second);
  if (sum.getKind() != AffineExprKind::Mul || right->first != right->second)
    return std::nullopt;
  Range made(left->first * right->first, left->second * right->first);
  return Range(std::min(made.first, made.second),
               std::max(made.first, made.second));
}

/// Makes the levels of one nest.
class Maker {
public:
  explicit Maker(LoopLikeOpInterface outermost)
      : outermost(outermost), builder(outermost) {}

  FailureOr<Nest> make();

private:
  /// A bound: a value from outside, or sums of counters of which the greatest
  /// (a lower bound) or the least counts.
  struct Bound {
    OpFoldResult value;
    SmallVector<AffineExpr> sums;
  };
  std::optional<Bound> boundOf(Value value);
  std::optional<Bound> boundOf(affine::AffineForOp loop, bool isLower);
  std::optional<AffineExpr> sumOf(Value value, int depth = 0);
  bool isOutside(Value value) {
    return !outermost->isAncestor(value.getParentBlock()->getParentOp());
  }
  bool addLevel(LoopLikeOpInterface loop, bool isFirst);
  bool setBounds(Level &level, const Bound &lower, const Bound &upper);
  OpFoldResult hullOf(const Bound &bound, bool isLower);

  LoopLikeOpInterface outermost;
  OpBuilder builder;
  Nest nest;
  SmallVector<AffineExpr> counters;         ///< in the keys; null: not known
  SmallVector<std::optional<Range>> ranges; ///< of the keys
};
} // namespace

std::optional<AffineExpr> Maker::sumOf(Value value, int depth) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return builder.getAffineConstantExpr(number.getSExtValue());
  for (auto [level, counter] : llvm::zip(nest.levels, counters))
    if (level.counter == value)
      return counter ? std::optional(counter) : std::nullopt;
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isIndex() || depth > 16)
    return std::nullopt;
  auto all = [&]() -> std::optional<SmallVector<AffineExpr>> {
    SmallVector<AffineExpr> made;
    for (Value operand : op->getOperands()) {
      std::optional<AffineExpr> sum = sumOf(operand, depth + 1);
      if (!sum)
        return std::nullopt;
      made.push_back(*sum);
    }
    return made;
  };
  if (!isa<arith::AddIOp, arith::SubIOp, affine::AffineApplyOp>(op))
    return std::nullopt;
  std::optional<SmallVector<AffineExpr>> operands = all();
  if (!operands)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return (*operands)[0] + (*operands)[1];
  if (isa<arith::SubIOp>(op))
    return (*operands)[0] - (*operands)[1];
  AffineMap map = cast<affine::AffineApplyOp>(op).getAffineMap();
  return map.getResult(0).replaceDimsAndSymbols(
      ArrayRef(*operands).take_front(map.getNumDims()),
      ArrayRef(*operands).drop_front(map.getNumDims()));
}

std::optional<Maker::Bound> Maker::boundOf(Value value) {
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return Bound{builder.getIndexAttr(*number), {}};
  if (isOutside(value))
    return value.getType().isIndex() ? std::optional(Bound{value, {}})
                                     : std::nullopt;
  std::optional<AffineExpr> sum = sumOf(value);
  return sum ? std::optional(Bound{{}, {*sum}}) : std::nullopt;
}

std::optional<Maker::Bound> Maker::boundOf(affine::AffineForOp loop,
                                           bool isLower) {
  AffineMap map = isLower ? loop.getLowerBoundMap() : loop.getUpperBoundMap();
  SmallVector<Value> operands(isLower ? loop.getLowerBoundOperands()
                                      : loop.getUpperBoundOperands());
  if (llvm::all_of(operands, [&](Value of) { return isOutside(of); })) {
    SmallVector<OpFoldResult> folded(operands.begin(), operands.end());
    Location loc = loop.getLoc();
    OpFoldResult value =
        map.getNumResults() == 1
            ? affine::makeComposedFoldedAffineApply(builder, loc, map, folded)
        : isLower
            ? affine::makeComposedFoldedAffineMax(builder, loc, map, folded)
            : affine::makeComposedFoldedAffineMin(builder, loc, map, folded);
    return Bound{value, {}};
  }
  SmallVector<AffineExpr> sums;
  for (Value operand : operands) {
    std::optional<AffineExpr> sum = sumOf(operand);
    if (!sum)
      return std::nullopt;
    sums.push_back(*sum);
  }
  Bound bound;
  for (AffineExpr result : map.getResults())
    bound.sums.push_back(result.replaceDimsAndSymbols(
        ArrayRef(sums).take_front(map.getNumDims()),
        ArrayRef(sums).drop_front(map.getNumDims())));
  // A number, though written with counters.
  if (auto number = dyn_cast<AffineConstantExpr>(bound.sums.front());
      number && bound.sums.size() == 1)
    return Bound{builder.getIndexAttr(number.getValue()), {}};
  return bound;
}

/// A number that is on the bound's side of all values that it has.
OpFoldResult Maker::hullOf(const Bound &bound, bool isLower) {
  if (bound.value)
    return bound.value;
  std::optional<int64_t> hull;
  for (AffineExpr sum : bound.sums)
    if (std::optional<Range> range = rangeOf(sum, ranges)) {
      int64_t end = isLower ? range->first : range->second;
      hull = !hull     ? end
             : isLower ? std::max(*hull, end)
                       : std::min(*hull, end);
    } else {
      return {};
    }
  return builder.getIndexAttr(*hull);
}

bool Maker::setBounds(Level &level, const Bound &lower, const Bound &upper) {
  level.lower = hullOf(lower, true);
  level.upper = hullOf(upper, false);
  if (!level.lower || !level.upper)
    return false;
  AffineExpr key = builder.getAffineDimExpr(nest.levels.size());
  if (level.step != 1) {
    if (!lower.value || !upper.value)
      return false;
    level.first = level.lower;
    level.upper = stepsOf(builder, level.loop.getLoc(), level.lower,
                          level.upper, level.step);
    level.lower = builder.getIndexAttr(0);
    std::optional<int64_t> number = getConstantIntValue(level.first);
    counters.push_back(number ? *number + level.step * key : AffineExpr());
  } else {
    counters.push_back(key);
    for (AffineExpr sum : lower.sums)
      level.inside.push_back(key - sum);
    for (AffineExpr sum : upper.sums)
      level.inside.push_back(sum - key - 1);
  }
  std::optional<int64_t> from = getConstantIntValue(level.lower);
  std::optional<int64_t> to = getConstantIntValue(level.upper);
  for (std::optional<int64_t> number : {from, to})
    if (number &&
        (*number > ForeachOp::kMostOfKey || *number < -ForeachOp::kMostOfKey))
      return false;
  if (from && to && *to < *from)
    level.upper = builder.getIndexAttr(*(to = from));
  ranges.push_back(from && to ? std::optional(Range(*from, *to - 1))
                              : std::nullopt);
  return true;
}

bool Maker::addLevel(LoopLikeOpInterface loop, bool isFirst) {
  Level level;
  level.loop = loop;
  std::optional<Bound> lower, upper;
  if (auto affine = dyn_cast<affine::AffineForOp>(loop.getOperation())) {
    level.counter = affine.getInductionVar();
    level.step = affine.getStepAsInt();
    lower = boundOf(affine, true);
    upper = boundOf(affine, false);
  } else {
    auto scf = cast<scf::ForOp>(loop.getOperation());
    level.counter = scf.getInductionVar();
    std::optional<int64_t> step = getConstantIntValue(scf.getStep());
    if (!step || *step <= 0) {
      if (isFirst)
        notRaised(loop) << "its step is no positive number";
      return false;
    }
    level.step = *step;
    lower = boundOf(scf.getLowerBound());
    upper = boundOf(scf.getUpperBound());
  }
  if (!lower || !upper || !level.counter.getType().isIndex() ||
      !setBounds(level, *lower, *upper)) {
    if (isFirst)
      notRaised(loop) << "its counter is no index within 2^40";
    return false;
  }
  nest.levels.push_back(level);
  return true;
}

FailureOr<Nest> Maker::make() {
  LoopLikeOpInterface loop = outermost;
  if (!addLevel(loop, /*isFirst=*/true))
    return failure();
  while (loop.getInits().empty()) {
    LoopLikeOpInterface inner;
    bool perfect = true;
    for (Operation &op : loop.getLoopRegions().front()->front()) {
      if (isa<affine::AffineForOp, scf::ForOp>(op)) {
        perfect &= !inner && op.getNumResults() == 0;
        inner = cast<LoopLikeOpInterface>(op);
      } else if (!op.hasTrait<OpTrait::IsTerminator>()) {
        perfect &= isPure(&op) && op.getNumRegions() == 0;
      }
    }
    if (!inner || !perfect || !addLevel(inner, /*isFirst=*/false))
      break;
    loop = inner;
  }
  return std::move(nest);
}

FailureOr<Nest> baechi::nestOf(LoopLikeOpInterface loop) {
  return Maker(loop).make();
}
