//===- Graphs.h - What the benchmarks place ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_BENCHMARKS_GRAPHS_H
#define BAECHI_BENCHMARKS_GRAPHS_H

#include "Baechi/Placement/Model/Problem.h"

#include <string>

namespace baechi::placement::benchmarks {

/// A graph of data/graphs, or a generated one of at least `operators`.
struct GraphName {
  std::string name;
  int32_t operators = 0; ///< 0: a file

  std::string text() const;
  bool operator==(const GraphName &) const = default;
};

/// Every graph that the benchmarks place: those of data/graphs and every
/// family of generators from 1,000 to 1,000,000 operators.
std::vector<GraphName> benchmarkGraphs();

/// The problem of a graph: files on data/graphs/machine_4x8GiB.json, generated
/// graphs on eight devices with ample memory. The last one is kept. Ends the
/// program when a file cannot be read.
const Problem &problemOf(const GraphName &graph);

/// Adds the benchmarks of whole placers, "place/PLACER[-grouped]/GRAPH".
void registerPlacers();
/// Adds the benchmarks of what they consist of, "part/PART/GRAPH".
void registerParts();

} // namespace baechi::placement::benchmarks

#endif // BAECHI_BENCHMARKS_GRAPHS_H
