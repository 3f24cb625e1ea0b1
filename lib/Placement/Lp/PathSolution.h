//===- PathSolution.h - A solution and what it proves ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_PATHSOLUTION_H
#define BAECHI_LIB_PLACEMENT_LP_PATHSOLUTION_H

#include "Lp/PathProgram.h"

namespace baechi::placement::lp {

/// What may still be spent, in multiplications: a limit that gives the same
/// result on every machine. What is not arithmetic is charged by the edge, at
/// about what it takes.
struct Work {
  static constexpr double boundsPerEdge = 1500; ///< and a greedy matching
  static constexpr double siftPerEdge = 300;    ///< a round
  static constexpr double orderPerEdge = 1500;  ///< of an interior point
  static constexpr double iteratePerEdge = 300; ///< of an interior point
  double left = 0;
  /// False once there is none left.
  bool spend(double amount) {
    left -= amount;
    return left >= 0;
  }
};

/// A feasible y and proven bounds: `upper` is the value of y, `lower` that of
/// some feasible dual.
struct PathSolution {
  std::vector<double> y;
  double upper = 0;
  double lower = 0;

  bool within(double tolerance) const {
    return upper - lower <= tolerance * upper;
  }
  /// Takes another y where that is better.
  void offer(const PathProgram &program, std::vector<double> other) {
    double value = valueOf(program, other);
    if (y.empty() || value < upper) {
      upper = value;
      y = std::move(other);
    }
  }
};

/// Falls from 1 at 0 about as exp(-x) does, and is the same to the last bit
/// everywhere, which the library's function is not.
inline double fade(double x) {
  return 1 / (1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4))));
}

/// The value of the dual solution nearest to a flow per edge and a price per
/// out-budget: the flow is made to add up, the prices to cover it. A lower
/// bound of \p program whatever they are.
double dualBound(const PathProgram &program, std::span<const double> flow,
                 std::vector<double> outPrice);

/// A feasible 0/1 y, found in \p rounds sorts of the edges.
std::vector<double> greedyMatching(const PathProgram &program, int32_t rounds);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_PATHSOLUTION_H
