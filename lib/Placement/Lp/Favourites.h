//===- Favourites.h - Favourite children of a model ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_FAVOURITES_H
#define BAECHI_LIB_PLACEMENT_FAVOURITES_H

#include "Baechi/Placement/Lp/LpSolver.h"
#include "Model/Model.h"

#include <string>
#include <vector>

namespace baechi::placement::lp {

/// The linear program of a model (LpSolver.h): its nodes in topological order,
/// an edge a pair of them, mean times over devices and links.
LpProgram favouriteProgram(const Model &model);

/// m-SCT's first phase: favourite children from the linear program
/// (LpSolver.h), rounded by a matching. \p solver: none is the native one;
/// where it finds nothing, they are chosen greedily along critical paths.
/// \p notes says what fell short of the optimum.
std::vector<int32_t> favouriteChildren(const Model &model,
                                       const LpSolver *solver, double seconds,
                                       std::vector<std::string> &notes);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_FAVOURITES_H
