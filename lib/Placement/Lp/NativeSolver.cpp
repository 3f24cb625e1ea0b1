//===- NativeSolver.cpp - The exact solver of m-SCT's program -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Lp/NativeSolver.h"
#include "Lp/Presolve.h"
#include "Lp/Sifting.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::lp;

namespace {

/// Bounds, reduction, parts; what is left is sifted.
PathSolution solvePath(const PathProgram &program, double tolerance,
                       Work &work) {
  constexpr double equal = 1e-10;
  WaterLevels levels = waterLevels(program);
  PathSolution best = waterSolution(program, levels);
  if (best.within(equal))
    return best;
  work.spend(Work::boundsPerEdge * program.numEdges());
  best.offer(program, greedyMatching(program, 6));
  PathProgram tight = tighten(program, best.upper * (1 + 1e-9), best.lower);
  std::vector<PathProgram> parts = split(tight);
  std::vector<double> y(program.edges.size(), 0);
  double lower = 0;
  auto take = [&](int32_t edge, double value) {
    if (int32_t origin = tight.edges[edge].origin; origin >= 0)
      y[origin] = value;
  };
  if (parts.size() > 1) {
    for (const PathProgram &part : parts) {
      PathSolution solution = solvePath(part, tolerance, work);
      lower += solution.lower;
      for (int32_t e = 0; e < part.numEdges(); ++e)
        take(part.edges[e].origin, solution.y[e]);
    }
  } else {
    std::vector<double> start(tight.edges.size(), 0);
    for (int32_t e = 0; e < tight.numEdges(); ++e)
      if (int32_t origin = tight.edges[e].origin; origin >= 0)
        start[e] = best.y[origin];
    PathSolution solution =
        sift(tight, waterLevels(tight), std::move(start), tolerance, work);
    lower = solution.lower;
    for (int32_t e = 0; e < tight.numEdges(); ++e)
      take(e, solution.y[e]);
  }
  scaleIntoBudgets(program, y);
  best.offer(program, std::move(y));
  best.lower = std::max(best.lower, lower);
  return best;
}

class NativeSolver : public LpSolver {
public:
  explicit NativeSolver(NativeSolverOptions options) : options(options) {}
  std::string name() const override { return "native"; }
  LpSolution solve(const LpProgram &program, double seconds) const override;

private:
  NativeSolverOptions options;
};

LpSolution NativeSolver::solve(const LpProgram &program,
                               double /*seconds*/) const {
  PathProgram path = pathProgram(program);
  std::vector<uint8_t> all(path.edges.size(), 1);
  std::vector<double> none(path.numNodes, 0);
  Contraction core = contract(path, all, none, none);
  Work work{options.work};
  PathSolution found = solvePath(core.program, options.tolerance, work);
  std::vector<double> y(path.edges.size(), 0);
  for (int32_t e : core.certain)
    y[e] = 1;
  for (int32_t e = 0; e < core.program.numEdges(); ++e) {
    const PathProgram::Edge &edge = core.program.edges[e];
    if (edge.origin >= 0 && edge.saving > 0)
      y[edge.origin] = found.y[e];
  }
  scaleIntoBudgets(path, y);
  PathSolution solution;
  solution.lower = found.lower;
  solution.offer(path, std::move(y));
  return toLpSolution(program, path, solution,
                      work.left < 0 ? "the work that it may take is spent"
                                    : "rounding stopped it");
}

} // namespace

std::unique_ptr<LpSolver>
baechi::placement::createNativeSolver(NativeSolverOptions options) {
  return std::make_unique<NativeSolver>(options);
}
