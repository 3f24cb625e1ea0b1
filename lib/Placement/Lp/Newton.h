//===- Newton.h - The interior point's linear system -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Newton's equations of the interior point (InteriorPoint.h). Eliminating y
/// edge by edge leaves a quasi-definite system in the nodes' potentials and the
/// budgets' prices, with a clique of four per edge.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_NEWTON_H
#define BAECHI_LIB_PLACEMENT_LP_NEWTON_H

#include "Lp/PathProgram.h"
#include "Lp/SparseLdl.h"

#include <array>
#include <optional>

namespace baechi::placement::lp {

/// A point, or a direction: one value per node, edge or budget. Edges without
/// a saving have y = z = 0.
struct Point {
  std::vector<double> potential;             ///< per node; 0 at the first
  std::vector<double> slack, flow, y, price; ///< per edge; `price` is z
  std::vector<double> rest, budgetPrice;     ///< per budget

  void resize(size_t nodes, size_t edges, size_t budgets);
};

/// What the products of the pairs shall become, less what they are.
struct Targets {
  std::vector<double> slack;  ///< per edge: slack * flow
  std::vector<double> y;      ///< per edge: y * price
  std::vector<double> budget; ///< per budget: rest * budgetPrice

  void resize(size_t edges, size_t budgets);
};

class Newton {
public:
  /// Finds the order of elimination; the program must outlive this.
  explicit Newton(const PathProgram &program);

  int32_t numBudgets() const { return budgets; }
  /// The budgets that an edge's y counts in; -1: none. A budget of one edge is
  /// left out where the other one bounds its y.
  const std::array<int32_t, 2> &budgetsOf(int32_t edge) const {
    return edgeBudgets[edge];
  }
  /// The out-budget of the program that a budget is; -1: it is a head's.
  int32_t outBudgetOf(int32_t budget) const { return outBudget[budget]; }

  double factorWork() const { return system->factorWork(); }
  double solveWork() const { return system->solveWork(); }
  void allocate();

  /// Lengths and savings are the program's, divided by \p unit.
  void setLengths(double unit);
  double length(int32_t edge) const { return lengths[edge]; }
  double saving(int32_t edge) const { return savings[edge]; }

  /// How far \p at is from feasible.
  void findResiduals(const Point &at);
  double primalResidual() const { return primalError; }
  double dualResidual() const { return dualError; }

  /// Factors the matrix at a point and solves. A node's and a budget's own term
  /// is raised a little, more where pivots vanish: what lies loose stays put.
  void factorAndSolve(const Point &at, const Targets &targets,
                      Point &direction);
  /// The direction in which products meet the targets and residuals vanish.
  void solve(const Point &at, const Targets &targets, Point &direction);

private:
  std::array<int32_t, 4> corners(int32_t edge) const;
  void assemble(const Point &at);
  void setRight(const Point &at, const Targets &targets);
  void setDirection(const Point &at, const Targets &targets, Point &direction);

  const PathProgram &program;
  int32_t nodes, edges, budgets = 0;
  std::vector<std::array<int32_t, 2>> edgeBudgets;
  std::vector<int32_t> outBudget;
  std::vector<double> lengths, savings;
  std::optional<SparseLdl> system;
  /// Per edge, the places of its clique in the matrix: rows and columns tail,
  /// head, budget, budget, upper half.
  std::vector<std::array<int32_t, 10>> slots;
  std::vector<int32_t> diagonal;
  std::vector<double> slackResidual, yResidual, restResidual, flowResidual;
  std::vector<double> theta, eta, shift, right;
  double primalError = 0, dualError = 0;
  double regularization = 1e-9;
};

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_NEWTON_H
