//===- PathProgram.h - The path that a matching shortens -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The program of favourite children (LpSolver.h) with y = 1 - x: a fractional
/// matching y shortens edges, and the longest path is to be as short as can be.
/// Everything the native solver does is a step between two such programs or a
/// bound of one. Lengths are nanoseconds; all of it is exact arithmetic's
/// reasoning in doubles.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_PATHPROGRAM_H
#define BAECHI_LIB_PLACEMENT_LP_PATHPROGRAM_H

#include <cstdint>
#include <span>
#include <vector>

namespace baechi::placement::lp {

/// Minimise the longest path from node 0 to the last node, where edge e has
/// the length `length - saving * y_e`, over y >= 0 with
///   sum of y <= 1 over the edges of one out-budget   one favourite child
///   sum of y <= 1 over the edges into one node       one favourite parent
/// Only edges with a saving have a y. Nodes are in topological order, edges
/// sorted by tail and, among those of a tail, by out-budget. Every node but the
/// first has an edge in, every node but the last an edge out.
struct PathProgram {
  struct Edge {
    int32_t from;
    int32_t to;
    double length;
    double saving;
    int32_t outBudget; ///< a tail may stand for several operators; -1: no y
    int32_t origin;    ///< in the program that this one was made from; or -1
  };
  int32_t numNodes = 0;
  int32_t numBudgets = 0; ///< out-budgets are below this
  std::vector<Edge> edges;
  std::vector<int32_t> firstOut; ///< per node, and the end
  std::vector<int32_t> inEdges;  ///< grouped by head
  std::vector<int32_t> firstIn;  ///< per node, and the end

  int32_t numEdges() const { return static_cast<int32_t>(edges.size()); }
  int32_t sink() const { return numNodes - 1; }
  std::span<const int32_t> in(int32_t node) const {
    return {inEdges.data() + firstIn[node], inEdges.data() + firstIn[node + 1]};
  }

  /// Sorts the edges by tail (stable), numbers the budgets in that order and
  /// fills the rows. The edges of a tail's budget must follow each other.
  void finish();
};

/// The longest path from node 0 to every node; \p y may be empty (all 0).
void longestFromSource(const PathProgram &program, std::span<const double> y,
                       std::vector<double> &distance);
/// The longest path from every node to the last.
void longestToSink(const PathProgram &program, std::span<const double> y,
                   std::vector<double> &distance);
/// The longest path of all: the value of a feasible y.
double valueOf(const PathProgram &program, std::span<const double> y);

/// Scales y, edge by edge, until every budget holds; negative values become 0.
void scaleIntoBudgets(const PathProgram &program, std::vector<double> &y);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_PATHPROGRAM_H
