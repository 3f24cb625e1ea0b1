//===- GreedySolver.cpp - Favourites without a linear program -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Lp/Presolve.h"
#include "Lp/WaterFilling.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::lp;

namespace {

class GreedySolver : public LpSolver {
public:
  std::string name() const override { return "greedy"; }

  LpSolution solve(const LpProgram &program, double) const override {
    PathProgram path = pathProgram(program);
    PathSolution found;
    found.offer(path, greedyMatching(path, 6));
    found.lower = waterLevels(path).bound;
    return toLpSolution(program, path, found,
                        "favourite children are chosen greedily along "
                        "critical paths");
  }
};

} // namespace

std::unique_ptr<LpSolver> baechi::placement::createGreedySolver() {
  return std::make_unique<GreedySolver>();
}
