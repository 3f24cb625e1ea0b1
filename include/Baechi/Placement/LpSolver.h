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
/// what solves it. A solver is handed to `place` by its caller: the placement
/// library links none.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_LPSOLVER_H
#define BAECHI_PLACEMENT_LPSOLVER_H

#include <cstdint>
#include <string>
#include <vector>

namespace baechi::placement {

/// Minimise w over starts s >= 0 and 0 <= x <= 1:
///   s_i + k_i + c_ij x_ij <= s_j     for every edge
///   s_i + k_i <= w                   for every node
///   sum_j x_ij >= outdegree(i) - 1   one favourite child at most
///   sum_i x_ij >= indegree(j) - 1    one favourite parent at most
/// Nodes are numbered in topological order; there is one edge a pair.
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
  /// Per edge; 0: the head is the tail's favourite child. Empty: none found.
  std::vector<double> x;
  /// False: the time limit came first, or something went wrong; `x`, if there
  /// is one, may be improved.
  bool optimal = false;
  /// What a report should say: the limit that was hit, the error.
  std::string note;
};

class LpSolver {
public:
  virtual ~LpSolver() = default;
  virtual std::string name() const = 0;
  /// Takes about \p seconds at most. Deterministic when it ends in time.
  virtual LpSolution solve(const LpProgram &program, double seconds) const = 0;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_LPSOLVER_H
