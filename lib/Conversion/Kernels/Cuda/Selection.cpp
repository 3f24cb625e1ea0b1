//===- Selection.cpp - Reductions that pick one of their terms -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frontends write the position of a maximum in several ways, which treat ties
// and NaN differently. They are not told apart by their looks: a body that only
// compares what it holds with the term, and picks, is evaluated on values that
// lie to each other in every possible way. With P . t for what is held after
// term t, S for the start, and P, Q for all that can be held,
//
//     P . S = P   and   P . (Q . t) = (P . Q) . t
//
// say that a part of the terms, which began from S, can be taken as one term.
// No other values need be tried: comparisons see nothing but the order of three
// values and S, and the values below have three on either side of S, the
// infinities, zeros of both signs, and two kinds of NaN.
//
//===----------------------------------------------------------------------===//

#include "Selection.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <variant>

using namespace mlir;
using namespace baechi;

namespace {
/// Bounds the table of all pairs of values.
constexpr size_t kMostValues = 200;

using Number = std::variant<APFloat, APInt>;

bool areSame(const Number &a, const Number &b) {
  if (auto *x = std::get_if<APFloat>(&a))
    return x->bitwiseIsEqual(std::get<APFloat>(b));
  return std::get<APInt>(a) == std::get<APInt>(b);
}

/// Numbers that lie to each other, and to `start`, in every way that three can.
std::optional<SmallVector<Number>> sampleAround(Attribute start) {
  SmallVector<Number> samples;
  auto add = [&](const Number &number) {
    if (llvm::none_of(samples,
                      [&](auto &known) { return areSame(known, number); }))
      samples.push_back(number);
  };
  if (auto real = dyn_cast<FloatAttr>(start)) {
    const llvm::fltSemantics &kind = real.getValue().getSemantics();
    bool known = real.getType().isF32() || real.getType().isF64() ||
                 real.getType().isF16() || real.getType().isBF16();
    if (!known || real.getValue().isNaN())
      return std::nullopt;
    add(real.getValue());
    for (bool down : {true, false}) {
      APFloat next = real.getValue();
      for (int i = 0; i < 3 && !next.isNaN(); ++i) {
        next.next(down);
        add(next);
      }
      add(APFloat::getInf(kind, down));
      add(APFloat::getZero(kind, down));
      add(APFloat::getQNaN(kind, down));
    }
    return samples;
  }
  auto integer = dyn_cast<IntegerAttr>(start);
  if (!integer || integer.getValue().getBitWidth() < 8)
    return std::nullopt;
  APInt value = integer.getValue();
  for (int64_t by : {0, -1, -2, -3, 1, 2, 3})
    add(value + APInt(value.getBitWidth(), by, /*isSigned=*/true));
  return samples;
}

/// The body of a reduction, evaluated on samples.
class Trial {
public:
  Trial(linalg::GenericOp op, const Selection &selection)
      : op(op), selection(selection) {}

  /// Values for what each result holds at the start.
  bool sample(ArrayRef<Attribute> starts);
  bool partsAreTerms();

private:
  /// Of which result a value is, held or the term's; or a truth.
  struct Picked {
    size_t result = 0, number = 0;
    bool truth = false;
  };
  Picked evaluate(Operation *step);
  Picked valueOf(Value value);
  /// What is held after the term: numbers of joint values.
  size_t after(size_t held, size_t term);
  /// Joint value `joint` as a number of a sample of each result.
  SmallVector<size_t> split(size_t joint) const {
    SmallVector<size_t> numbers;
    for (const auto &all : samples) {
      numbers.push_back(joint % all.size());
      joint /= all.size();
    }
    return numbers;
  }

  linalg::GenericOp op;
  const Selection &selection;
  SmallVector<SmallVector<Number>> samples;
  llvm::DenseMap<Value, Picked> values;
  size_t count = 1;
};
} // namespace

bool Trial::sample(ArrayRef<Attribute> starts) {
  for (Attribute start : starts) {
    std::optional<SmallVector<Number>> around = sampleAround(start);
    if (!around)
      return false;
    count *= around->size();
    samples.push_back(std::move(*around));
  }
  return count <= kMostValues;
}

Trial::Picked Trial::valueOf(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  APInt truth; // matchSelection lets no other values pass.
  matchPattern(value, m_ConstantInt(&truth));
  return {0, 0, truth.getBoolValue()};
}

Trial::Picked Trial::evaluate(Operation *step) {
  auto at = [&](unsigned operand) {
    return valueOf(step->getOperand(operand));
  };
  if (isa<arith::SelectOp>(step))
    return at(0).truth ? at(1) : at(2);
  if (isa<arith::AndIOp>(step))
    return {0, 0, at(0).truth && at(1).truth};
  if (isa<arith::OrIOp>(step))
    return {0, 0, at(0).truth || at(1).truth};
  if (isa<arith::XOrIOp>(step))
    return {0, 0, at(0).truth != at(1).truth};
  const Number &a = samples[at(0).result][at(0).number];
  const Number &b = samples[at(1).result][at(1).number];
  if (auto compare = dyn_cast<arith::CmpFOp>(step))
    return {0, 0,
            arith::applyCmpPredicate(compare.getPredicate(),
                                     std::get<APFloat>(a),
                                     std::get<APFloat>(b))};
  auto compare = cast<arith::CmpIOp>(step);
  return {0, 0,
          arith::applyCmpPredicate(compare.getPredicate(), std::get<APInt>(a),
                                   std::get<APInt>(b))};
}

size_t Trial::after(size_t held, size_t term) {
  values.clear();
  SmallVector<size_t> heldNumbers = split(held), termNumbers = split(term);
  for (size_t i = 0; i < samples.size(); ++i) {
    values[op.getRegionOutputArgs()[i]] = {i, heldNumbers[i]};
    values[selection.terms[i]] = {i, termNumbers[i]};
  }
  for (Operation *step : selection.steps)
    values[step->getResult(0)] = evaluate(step);
  size_t joint = 0, scale = 1;
  for (auto [i, yielded] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands())) {
    joint += scale * values.lookup(yielded).number;
    scale *= samples[i].size();
  }
  return joint;
}

bool Trial::partsAreTerms() {
  std::vector<size_t> table(count * count);
  for (size_t held = 0; held < count; ++held)
    for (size_t term = 0; term < count; ++term)
      table[held * count + term] = after(held, term);
  auto next = [&](size_t held, size_t term) {
    return table[held * count + term];
  };
  // Everything starts from the first samples.
  llvm::SetVector<size_t> reached;
  reached.insert(0);
  for (size_t i = 0; i < reached.size(); ++i)
    for (size_t term = 0; term < count; ++term)
      reached.insert(next(reached[i], term));
  for (size_t p : reached) {
    if (next(p, 0) != p)
      return false;
    for (size_t q : reached)
      for (size_t t = 0; t < count; ++t)
        if (next(p, next(q, t)) != next(next(p, q), t))
          return false;
  }
  return true;
}

/// Collects what `value` is computed by from what is held and the terms, in
/// order; false when that is more than comparing and picking.
static bool collectSteps(linalg::GenericOp op, Value value,
                         Selection &selection,
                         llvm::SetVector<Operation *> &steps) {
  auto resultOf = [&](Value leaf) -> std::optional<size_t> {
    for (size_t i = 0; i < selection.terms.size(); ++i)
      if (leaf == selection.terms[i] || leaf == op.getRegionOutputArgs()[i])
        return i;
    return std::nullopt;
  };
  if (resultOf(value))
    return true;
  Operation *step = value.getDefiningOp();
  if (!step || steps.contains(step))
    return step;
  if (isa<arith::ConstantOp>(step))
    return value.getType().isInteger(1);
  if (isa<arith::CmpFOp, arith::CmpIOp>(step)) {
    std::optional<size_t> of = resultOf(step->getOperand(0));
    if (!of || of != resultOf(step->getOperand(1)))
      return false;
  } else if (auto pick = dyn_cast<arith::SelectOp>(step)) {
    std::optional<size_t> of = resultOf(pick.getTrueValue());
    bool truths = value.getType().isInteger(1);
    if (!pick.getCondition().getType().isInteger(1) ||
        (!truths && (!of || of != resultOf(pick.getFalseValue()))))
      return false;
  } else if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(step) ||
             !value.getType().isInteger(1)) {
    return false;
  }
  if (!llvm::all_of(step->getOperands(), [&](Value operand) {
        return collectSteps(op, operand, selection, steps);
      }))
    return false;
  steps.insert(step);
  return true;
}

/// Whether `value` of the body of `op` depends on what the results hold.
static bool dependsOnHeld(linalg::GenericOp op, Value value) {
  llvm::SetVector<Value> work;
  work.insert(value);
  for (size_t i = 0; i < work.size(); ++i) {
    if (llvm::is_contained(op.getRegionOutputArgs(), work[i]))
      return true;
    Operation *producer = work[i].getDefiningOp();
    if (!producer || producer->getBlock() != op.getBody())
      continue;
    if (producer->getNumRegions() > 0)
      return true;
    work.insert_range(producer->getOperands());
  }
  return false;
}

std::optional<Selection> baechi::matchSelection(linalg::GenericOp op,
                                                const StartValues &starts) {
  Selection selection;
  SmallVector<Attribute> constants;
  Operation *terminator = op.getBody()->getTerminator();
  for (auto [number, held] : llvm::enumerate(op.getRegionOutputArgs())) {
    auto pick = terminator->getOperand(number).getDefiningOp<arith::SelectOp>();
    Attribute start;
    Value from = starts.lookup({op, unsigned(number)});
    if (!pick || !from || !matchPattern(from, m_Constant(&start)))
      return std::nullopt;
    Value term = pick.getTrueValue() == held ? pick.getFalseValue()
                                             : pick.getTrueValue();
    bool picks = pick.getTrueValue() == held || pick.getFalseValue() == held;
    if (!picks || dependsOnHeld(op, term) ||
        llvm::is_contained(selection.terms, term))
      return std::nullopt;
    selection.terms.push_back(term);
    constants.push_back(start);
  }
  llvm::SetVector<Operation *> steps;
  for (Value yielded : terminator->getOperands())
    if (!collectSteps(op, yielded, selection, steps))
      return std::nullopt;
  selection.steps = steps.takeVector();
  Trial trial(op, selection);
  if (!trial.sample(constants) || !trial.partsAreTerms())
    return std::nullopt;
  return selection;
}
