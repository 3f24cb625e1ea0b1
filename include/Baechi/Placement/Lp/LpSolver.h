//===- LpSolver.h - m-SCT's linear program ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The program of favourite children (Hanen & Munier 1995), and the face of
/// what solves it: the native solver (NativeSolver.h), which `place` uses
/// unless it is given another, or GLPK (Glpk.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_LP_LPSOLVER_H
#define BAECHI_PLACEMENT_LP_LPSOLVER_H

#include <cstdint>
#include <string>
#include <vector>

namespace baechi::placement {

/// Minimise w over starts s >= 0 and 0 <= x <= 1:
///   s_i + k_i + c_ij x_ij <= s_j     for every edge
///   s_i + k_i <= w                   for every node
///   sum_j x_ij >= outdegree(i) - 1   one favourite child at most
///   sum_i x_ij >= indegree(j) - 1    one favourite parent at most
/// Nodes are numbered in topological order; there is one edge a pair; edges
/// are sorted by their tails.
struct LpProgram {
  struct Edge {
    int32_t from;
    int32_t to;
    double transfer; ///< c_ij, >= 0
  };
  std::vector<double> time; ///< k_i, >= 0
  std::vector<Edge> edges;
};

struct LpSolution {
  /// Per edge; 0: the head is the tail's favourite child. Empty: none found
  /// that would be the same on every run.
  std::vector<double> x;
  /// The longest path under `x`, recomputed from it: w, when `x` is optimal.
  double value = 0;
  /// Proven: no x has a smaller value. 0 where the solver has no proof.
  double bound = 0;
  /// False: a limit came first, or something went wrong; `x` may be improved.
  bool optimal = false;
  /// What a report should say: the limit that was hit, the error.
  std::string note;
};

class LpSolver {
public:
  virtual ~LpSolver() = default;
  virtual std::string name() const = 0;
  /// Deterministic. A solver without a limit of its own gives up after about
  /// \p seconds, and then returns no x.
  virtual LpSolution solve(const LpProgram &program, double seconds) const = 0;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_LP_LPSOLVER_H
