//===- IntegerSystem.h - Integer points of constraints ---------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Whether linear constraints have an integer point. Equations are solved by
/// changes of variables, inequalities by elimination as in W. Pugh, "The Omega
/// Test: A Fast and Practical Integer Programming Algorithm for Dependence
/// Analysis", Supercomputing 1991, sections 2.1 to 2.3; where neither shadow
/// decides, by trying the values of one variable.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_LOOPS_INTEGERSYSTEM_H
#define BAECHI_LIB_LOOPS_INTEGERSYSTEM_H

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace baechi::loops {

class IntegerSystem {
public:
  enum class Answer : uint8_t {
    Empty,
    Point,
    Unknown, ///< too large to tell: to be taken as a point
  };
  using Number = __int128;
  /// The sum of coefficients times variables, and a constant.
  struct Sum {
    std::vector<Number> coefficients;
    Number constant = 0;
  };

  explicit IntegerSystem(size_t variables) : variables(variables) {}

  Sum sum() const { return {std::vector<Number>(variables, 0), 0}; }
  void addAtLeastZero(Sum sum) { inequalities.push_back(std::move(sum)); }
  void addZero(Sum sum) { equations.push_back(std::move(sum)); }

  Answer solve() const;
  /// Integers that \p of lies between: a hull, not always the closest; none on
  /// a side without an end, or when it is too large to tell.
  std::pair<std::optional<int64_t>, std::optional<int64_t>>
  boundsOf(const Sum &of) const;

private:
  size_t variables;
  std::vector<Sum> equations, inequalities;
};

} // namespace baechi::loops

#endif // BAECHI_LIB_LOOPS_INTEGERSYSTEM_H
