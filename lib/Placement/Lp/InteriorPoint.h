//===- InteriorPoint.h - Solves a path program -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mehrotra's predictor-corrector interior point ("On the Implementation of a
/// Primal-Dual Interior Point Method", SIAM J. Optim. 2(4), 1992) with one of
/// Gondzio's correctors (Comput. Optim. Appl. 6, 1996), on a path program:
///   primal  potentials, slacks = potential(head) - potential(tail)
///           + saving y - length >= 0, y >= 0, and what budgets have left
///   dual    a unit of flow along the edges >= 0, prices of the budgets >= 0,
///           and per y: its budgets' prices - saving * flow >= 0
/// Newton.h has the linear system.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_INTERIORPOINT_H
#define BAECHI_LIB_PLACEMENT_LP_INTERIORPOINT_H

#include "Lp/Newton.h"
#include "Lp/PathSolution.h"

namespace baechi::placement::lp {

class InteriorPoint {
public:
  /// \p start: a feasible y. The program must outlive this.
  InteriorPoint(const PathProgram &program, std::vector<double> start);

  /// Goes on until the solution is within \p tolerance, the work is spent
  /// (false) or rounding stops progress.
  bool solve(double tolerance, Work &work);
  const PathSolution &solution() const { return best; }

private:
  struct Steps {
    double primal, dual;
  };
  void begin();
  void spreadMatching();
  void setPotentials(double room);
  double spreadFlow(double room);
  void setPrices(double product);

  Steps direction(double gap);
  Steps longest(double most) const;
  void advance(const Steps &steps);
  void certify();

  template <typename Self, typename Visit>
  static void forEachPair(Self &self, Visit visit);
  double products(const Steps &steps) const;
  void aimAt(double product, double trust);
  void aimCloser(const Steps &steps, double product);

  const PathProgram &program;
  Newton newton;
  int32_t edges, budgets;
  bool begun = false;
  bool stuck = false; ///< rounding forbids more
  double pairs = 0;   ///< how many products there are
  double unit = 1;    ///< nanoseconds; lengths are near 1
  Point at, step;
  Point before; ///< the step without the last corrector
  Targets targets;
  PathSolution best;
};

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_INTERIORPOINT_H
