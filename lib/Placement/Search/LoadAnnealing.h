//===- LoadAnnealing.h - Annealing of the largest load ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LOADANNEALING_H
#define BAECHI_LIB_PLACEMENT_LOADANNEALING_H

#include "Model/Random.h"
#include "Search/LoadState.h"

#include <functional>

namespace baechi::placement::search {

/// Simulated annealing (Kirkpatrick et al. 1983) of the devices of a load
/// graph's vertices. The largest load alone says nothing about most moves, so
/// what is annealed is the p-norm of all loads. Bytes above a memory and pairs
/// that cannot talk are charged.
class LoadAnnealing {
public:
  LoadAnnealing(const LoadGraph &graph, const Machine &machine,
                double passingShare, Random &random);

  struct Schedule {
    double hot;  ///< the temperature at first, in shares of the largest load
    double cold; ///< and in the end
    /// Share of the annealing that is done; it ends at 1.
    std::function<double()> progress;
  };

  /// Anneals from \p deviceOf. Leaves the best feasible assignment it met, by
  /// its largest load, in \p deviceOf and returns that load; when there was
  /// none leaves the last state and returns `never`.
  int64_t run(std::vector<int32_t> &deviceOf, const Schedule &schedule);

  /// Vertices and nets looked at so far.
  int64_t visits() const { return visited; }

private:
  struct Step {
    int32_t vertex = -1;
    int32_t to = -1;
  };

  double cost(size_t index, int64_t value) const;
  double allCosts() const;
  double costOfMove(int32_t v, int32_t to);
  Step pickMove();
  bool tryMove(double limit);
  bool trySwap(double limit);
  int32_t pickVertex();
  int32_t mostLoaded() const;

  const LoadGraph &graph;
  const Machine &machine;
  Random &random;
  LoadState state;
  int64_t visited = 0;
  double scale = 1;  ///< the load that counts as 1
  double energy = 0; ///< sum of all costs
  std::vector<int64_t> change;
  std::vector<int32_t> changed;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_LOADANNEALING_H
