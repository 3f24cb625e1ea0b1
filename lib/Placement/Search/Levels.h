//===- Levels.h - Clusterings that moves are made of ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_LEVELS_H
#define BAECHI_LIB_PLACEMENT_SEARCH_LEVELS_H

#include "Model/Model.h"
#include "Search/Traffic.h"

namespace baechi::placement::search {

/// Units in clusters, those of a cluster in order of time.
struct Level {
  std::vector<int32_t> clusterOf;
  Rows members;
};

/// Facts about units that all moves need.
class UnitTable {
public:
  explicit UnitTable(const Model &model);

  const Model &model() const { return of; }
  Level makeLevel(const std::vector<int32_t> &clusterOf, int32_t count) const;
  /// A unit by its share of the work, a little for each.
  Unit pickByWork(Random &random) const;
  /// A few units that it exchanges tensors with.
  const std::vector<Unit> &neighbours(Unit u) const { return near[u]; }
  double work(Unit u) const { return workOf[u]; } ///< mean ns
  double allWork() const { return total; }

private:
  const Model &of;
  std::vector<Unit> byTime; ///< by the longest path to their first node
  std::vector<double> workOf, cumulated;
  double total = 0;
  std::vector<std::vector<Unit>> near;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_LEVELS_H
