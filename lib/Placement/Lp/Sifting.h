//===- Sifting.h - Solves with the edges that matter -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// At the optimum only a part of the edges, 3 to 25 %, is on a longest path.
/// Sifting solves the program on few edges, looks which others its solution
/// violates, and adds those: cutting planes in the manner of Kelley ("The
/// Cutting-Plane Method for Solving Convex Programs", J. SIAM 8(4), 1960),
/// with whole longest paths as cuts.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_SIFTING_H
#define BAECHI_LIB_PLACEMENT_LP_SIFTING_H

#include "Lp/PathSolution.h"
#include "Lp/WaterFilling.h"

namespace baechi::placement::lp {

/// Solves \p program until the solution is within \p tolerance or the work is
/// spent. \p start: a feasible y.
PathSolution sift(const PathProgram &program, const WaterLevels &levels,
                  std::vector<double> start, double tolerance, Work &work);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_SIFTING_H
