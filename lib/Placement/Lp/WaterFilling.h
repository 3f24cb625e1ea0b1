//===- WaterFilling.h - Bounds from one budget at a time -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lower bounds of a path program in time O(m log degree): every node is
/// reached as early as its own in-budget allows, given the same for its
/// predecessors; backwards with the out-budgets.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_WATERFILLING_H
#define BAECHI_LIB_PLACEMENT_LP_WATERFILLING_H

#include "Lp/PathSolution.h"

namespace baechi::placement::lp {

struct WaterLevels {
  std::vector<double> earliest; ///< per node; of any y
  std::vector<double> rest;     ///< per node, to the end; of any y
  double bound = 0;             ///< of the value: the largest sum of both
};

WaterLevels waterLevels(const PathProgram &program);

/// The bound, and the best of a few feasible y that aim at the levels. Solves
/// programs without conflicts between budgets.
PathSolution waterSolution(const PathProgram &program,
                           const WaterLevels &levels);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_WATERFILLING_H
