//===- Presolve.h - What decides itself ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Exact steps from a path program to smaller ones with the same value.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_PRESOLVE_H
#define BAECHI_LIB_PLACEMENT_LP_PRESOLVE_H

#include "Baechi/Placement/Lp/LpSolver.h"
#include "Lp/PathSolution.h"

namespace baechi::placement::lp {

/// The program of m-SCT as a path program: node 0, the operators, the sink.
/// `origin` is the edge of \p program.
PathProgram pathProgram(const LpProgram &program);

/// The answer to \p program, from a solution of its path program. \p note says
/// why it is not optimal, should it not be.
LpSolution toLpSolution(const LpProgram &program, const PathProgram &path,
                        const PathSolution &solution, const std::string &note);

/// A program on some of the edges of another, without what is then decided.
struct Contraction {
  PathProgram program;          ///< `origin`: the edge it was
  std::vector<int32_t> certain; ///< edges with y = 1
  std::vector<int32_t> node;    ///< per old node, its new one; -1: left out
  std::vector<double> offset;   ///< old node's distance behind it
};

/// Keeps the edges of \p program that \p keep says. The only edge of its
/// out-budget and into its head has y = 1. A node with one edge in, of fixed
/// length, merges into that edge's tail; its out-budgets stay its own. A node
/// that lost all edges in starts at \p earliest, one that lost all edges out
/// has \p rest to the end: both must hold for every y that is optimal.
Contraction contract(const PathProgram &program, std::span<const uint8_t> keep,
                     std::span<const double> earliest,
                     std::span<const double> rest);

/// Drops edges that bind for no y as good as \p upper, a value that is known
/// to be reached; raises \p lower to the best bound found. The result has the
/// same value; it has new edges (origin -1) that carry bounds.
PathProgram tighten(const PathProgram &program, double upper, double &lower);

/// The parts of a program between the nodes that every path visits: its value
/// is the sum of theirs. One part when there is no such node.
std::vector<PathProgram> split(const PathProgram &program);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_PRESOLVE_H
