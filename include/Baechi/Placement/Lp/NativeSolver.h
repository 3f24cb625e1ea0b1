//===- NativeSolver.h - Own solvers of m-SCT's program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_LP_NATIVESOLVER_H
#define BAECHI_PLACEMENT_LP_NATIVESOLVER_H

#include "Baechi/Placement/Lp/LpSolver.h"

#include <memory>

namespace baechi::placement {

struct NativeSolverOptions {
  /// Solved when value - bound <= tolerance * value.
  double tolerance = 1e-7;
  /// Multiplications, about. Where a program needs more, the best that was
  /// found is returned with its bound. The clock has no say: the result is the
  /// same everywhere.
  double work = 1.4e10;
};

/// Exact, and made for this program (docs/placement.md, "The linear program").
/// Has no use for a limit in seconds.
std::unique_ptr<LpSolver> createNativeSolver(NativeSolverOptions options = {});

/// Not a solver but a rule: favourites greedily along critical paths, with the
/// bound that comes for free.
std::unique_ptr<LpSolver> createGreedySolver();

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_LP_NATIVESOLVER_H
