//===- Glpk.h - The GLPK back end -------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GLPK is under the GPL: this back end is a library of its own,
/// BaechiPlacementGlpk, that programs link when they may.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_LP_GLPK_H
#define BAECHI_PLACEMENT_LP_GLPK_H

#include "Baechi/Placement/Lp/LpSolver.h"

#include <memory>

namespace baechi::placement {

std::unique_ptr<LpSolver> createGlpkSolver();

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_LP_GLPK_H
