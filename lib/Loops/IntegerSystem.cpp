//===- IntegerSystem.cpp - Integer points of constraints -------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerSystem.h"
#include <algorithm>
#include <limits>
#include <tuple>

using namespace baechi::loops;

namespace {
using Number = IntegerSystem::Number;
using Sum = IntegerSystem::Sum;
using Answer = IntegerSystem::Answer;

/// Beyond this nothing is computed: products of two would overflow.
constexpr Number kLargest = Number(1) << 60;
/// Inequalities of an elimination, and values that are tried in all.
constexpr size_t kMostInequalities = 2000;
constexpr int kMostValues = 20000;

struct TooLarge {};

Number magnitude(Number x) { return x < 0 ? -x : x; }
Number gcd(Number a, Number b) {
  for (a = magnitude(a), b = magnitude(b); b != 0;)
    a = std::exchange(b, a % b);
  return a;
}
Number floorOf(Number a, Number b) { // b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

void checkSize(const Sum &sum) {
  if (magnitude(sum.constant) > kLargest)
    throw TooLarge();
  for (Number c : sum.coefficients)
    if (magnitude(c) > kLargest)
      throw TooLarge();
}

Number contentOf(const Sum &sum) {
  Number content = 0;
  for (Number c : sum.coefficients)
    content = gcd(content, c);
  return content;
}

/// a * x + b * y.
Sum combine(Number a, const Sum &x, Number b, const Sum &y) {
  Sum made = x;
  for (size_t i = 0; i < made.coefficients.size(); ++i)
    made.coefficients[i] = a * x.coefficients[i] + b * y.coefficients[i];
  made.constant = a * x.constant + b * y.constant;
  checkSize(made);
  return made;
}

/// Solves the equations, and rewrites \p inequalities and \p followed with what
/// that says of the variables; false where there is no integer solution.
bool solveEquations(std::vector<Sum> equations, std::vector<Sum> &inequalities,
                    Sum *followed) {
  while (!equations.empty()) {
    Sum &equation = equations.back();
    Number content = contentOf(equation);
    if (content == 0) {
      if (equation.constant != 0)
        return false;
      equations.pop_back();
      continue;
    }
    if (equation.constant % content != 0)
      return false;
    for (Number &c : equation.coefficients)
      c /= content;
    equation.constant /= content;
    // The variable of the least coefficient, a: the others are a * q + r, and
    // a new variable in its place is it and the sum of the others times q.
    size_t least = 0;
    Number size = 0;
    for (size_t i = 0; i < equation.coefficients.size(); ++i)
      if (Number c = magnitude(equation.coefficients[i]);
          c != 0 && (size == 0 || c < size)) {
        least = i;
        size = c;
      }
    Number a = equation.coefficients[least];
    Sum quotients = equation;
    for (Number &q : quotients.coefficients)
      q = (a > 0 ? 1 : -1) * floorOf(q, size);
    quotients.constant = (a > 0 ? 1 : -1) * floorOf(equation.constant, size);
    quotients.coefficients[least] = 0;
    auto substitute = [&](Sum &sum) {
      Number c = sum.coefficients[least];
      for (size_t i = 0; i < sum.coefficients.size(); ++i)
        sum.coefficients[i] -= c * quotients.coefficients[i];
      sum.constant -= c * quotients.constant;
      checkSize(sum);
    };
    bool solved = size == 1; // the new variable is zero
    for (auto *sums : {&equations, &inequalities})
      for (Sum &sum : *sums) {
        substitute(sum);
        if (solved)
          sum.coefficients[least] = 0;
      }
    if (followed) {
      substitute(*followed);
      if (solved)
        followed->coefficients[least] = 0;
    }
    if (solved)
      equations.pop_back();
  }
  return true;
}

/// Divides by common factors and keeps the tightest of parallel ones; false
/// for a contradiction.
bool normalise(std::vector<Sum> &inequalities) {
  std::vector<Sum> kept;
  for (Sum &sum : inequalities) {
    Number content = contentOf(sum);
    if (content == 0) {
      if (sum.constant < 0)
        return false;
      continue;
    }
    for (Number &c : sum.coefficients)
      c /= content;
    sum.constant = floorOf(sum.constant, content);
    kept.push_back(std::move(sum));
  }
  std::sort(kept.begin(), kept.end(), [](const Sum &a, const Sum &b) {
    return std::tie(a.coefficients, a.constant) <
           std::tie(b.coefficients, b.constant);
  });
  kept.erase(std::unique(kept.begin(), kept.end(),
                         [](const Sum &a, const Sum &b) {
                           return a.coefficients == b.coefficients;
                         }),
             kept.end());
  inequalities = std::move(kept);
  return true;
}

struct Elimination {
  std::vector<Sum> lower, upper, others; ///< by the variable's sign
  bool isExact = true;

  Elimination(const std::vector<Sum> &inequalities, size_t variable) {
    bool unitLower = true, unitUpper = true;
    for (const Sum &sum : inequalities) {
      Number c = sum.coefficients[variable];
      (c > 0 ? lower : c < 0 ? upper : others).push_back(sum);
      unitLower &= c <= 1;
      unitUpper &= c >= -1;
    }
    isExact = unitLower || unitUpper;
  }

  /// The shadow; the dark one has an integer of the variable above each point.
  std::vector<Sum> shadow(size_t variable, bool dark) const {
    std::vector<Sum> made = others;
    if (made.size() + lower.size() * upper.size() > kMostInequalities)
      throw TooLarge();
    for (const Sum &below : lower)
      for (const Sum &above : upper) {
        Number a = below.coefficients[variable];
        Number b = -above.coefficients[variable];
        Sum both = combine(b, below, a, above);
        if (dark)
          both.constant -= (a - 1) * (b - 1);
        made.push_back(std::move(both));
      }
    return made;
  }
};

std::vector<size_t> variablesOf(const std::vector<Sum> &inequalities) {
  std::vector<size_t> found;
  for (size_t i = 0;
       !inequalities.empty() && i < inequalities[0].coefficients.size(); ++i)
    if (std::any_of(inequalities.begin(), inequalities.end(),
                    [&](const Sum &sum) { return sum.coefficients[i] != 0; }))
      found.push_back(i);
  return found;
}

/// Bounds of a variable in the rational hull; false where that is empty.
bool rationalBounds(std::vector<Sum> inequalities, size_t variable,
                    std::optional<Number> &lowest,
                    std::optional<Number> &highest) {
  while (true) {
    if (!normalise(inequalities))
      return false;
    std::optional<size_t> next;
    size_t best = 0;
    for (size_t other : variablesOf(inequalities)) {
      if (other == variable)
        continue;
      Elimination elimination(inequalities, other);
      size_t size = elimination.lower.size() * elimination.upper.size();
      if (!next || size < best) {
        next = other;
        best = size;
      }
    }
    if (!next)
      break;
    inequalities =
        Elimination(inequalities, *next).shadow(*next, /*dark=*/false);
  }
  for (const Sum &sum : inequalities) { // the coefficient is 1 or -1
    if (sum.coefficients[variable] > 0)
      lowest = std::max(lowest.value_or(-sum.constant), -sum.constant);
    else
      highest = std::min(highest.value_or(sum.constant), sum.constant);
  }
  return !lowest || !highest || *lowest <= *highest;
}

Answer search(std::vector<Sum> inequalities, int &budget) {
  while (true) {
    if (!normalise(inequalities))
      return Answer::Empty;
    std::vector<size_t> variables = variablesOf(inequalities);
    if (variables.empty())
      return Answer::Point;
    std::optional<size_t> chosen;
    size_t best = 0;
    bool exact = false;
    for (size_t variable : variables) {
      Elimination elimination(inequalities, variable);
      size_t size = elimination.lower.size() * elimination.upper.size();
      if (!chosen || elimination.isExact > exact ||
          (elimination.isExact == exact && size < best)) {
        chosen = variable;
        best = size;
        exact = elimination.isExact;
      }
    }
    Elimination elimination(inequalities, *chosen);
    if (exact) {
      inequalities = elimination.shadow(*chosen, /*dark=*/false);
      continue;
    }
    if (search(elimination.shadow(*chosen, /*dark=*/false), budget) ==
        Answer::Empty)
      return Answer::Empty;
    if (search(elimination.shadow(*chosen, /*dark=*/true), budget) ==
        Answer::Point)
      return Answer::Point;
    std::optional<Number> lowest, highest;
    if (!rationalBounds(inequalities, *chosen, lowest, highest))
      return Answer::Empty;
    if (!lowest || !highest || *highest - *lowest > budget)
      return Answer::Unknown;
    for (Number value = *lowest; value <= *highest; ++value) {
      if (--budget < 0)
        return Answer::Unknown;
      std::vector<Sum> with = inequalities;
      for (Sum &sum : with)
        sum.constant += std::exchange(sum.coefficients[*chosen], 0) * value;
      if (Answer answer = search(std::move(with), budget);
          answer != Answer::Empty)
        return answer;
    }
    return Answer::Empty;
  }
}

std::optional<int64_t> narrow(std::optional<Number> number) {
  if (!number || magnitude(*number) > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return static_cast<int64_t>(*number);
}
} // namespace

Answer IntegerSystem::solve() const {
  try {
    std::vector<Sum> left = inequalities;
    if (!solveEquations(equations, left, nullptr))
      return Answer::Empty;
    int budget = kMostValues;
    return search(std::move(left), budget);
  } catch (TooLarge) {
    return Answer::Unknown;
  }
}

std::pair<std::optional<int64_t>, std::optional<int64_t>>
IntegerSystem::boundsOf(const Sum &of) const {
  try {
    std::vector<Sum> left = inequalities;
    Sum followed = of;
    if (!solveEquations(equations, left, &followed))
      return {};
    // One variable more, between two inequalities that make it the sum.
    for (Sum &sum : left)
      sum.coefficients.push_back(0);
    followed.coefficients.push_back(-1);
    left.push_back(followed);
    Sum negated = followed;
    for (Number &c : negated.coefficients)
      c = -c;
    negated.constant = -negated.constant;
    left.push_back(negated);
    std::optional<Number> lowest, highest;
    rationalBounds(std::move(left), variables, lowest, highest);
    return {narrow(lowest), narrow(highest)};
  } catch (TooLarge) {
    return {};
  }
}
