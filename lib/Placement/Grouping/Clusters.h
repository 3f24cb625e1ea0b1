//===- Clusters.h - Units that talk a lot -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CLUSTERS_H
#define BAECHI_LIB_PLACEMENT_CLUSTERS_H

#include "Grouping/Grouping.h"
#include "Model/Random.h"

namespace baechi::placement::grouping {

struct ClusterOptions {
  /// A cluster that is smaller than this share of all work may always join...
  double small = 1.0 / 200;
  /// ...and one whose transfers to the other take this many times its work.
  double ratio = 8;
  /// No cluster does more than this share of all work.
  double workShare = 0.6;
  /// Nor holds more than this share of the smallest device's memory.
  double memoryShare = 0.5;
  /// Spread of the scores, to get different clusterings.
  double noise = 0;
};

/// Bounded co-placement by traffic: joins pairs of units in rounds, by
/// descending share of the traffic between them in the traffic of the one that
/// talks less. Scores by weight strand the small operators of recurrences;
/// this one does not. Returns a cluster per unit, the clusters numbered from 0.
std::vector<int32_t> clusterUnits(const Model &model,
                                  const ClusterOptions &options, Random &random,
                                  int32_t &count);

/// Co-placement as the placers use it: what is free to join, then clusters by
/// traffic, so that one transfer is not paid for a few operators.
void coplace(const Model &model, Coarsening &coarsening);

/// The same at several grains, from groups of a cell to a few large ones: a
/// group per unit for each level, the first is coplace's own, none comes twice.
/// Of a large model the first alone.
/// Multilevel as in Karypis & Kumar, "A Fast and High Quality Multilevel Scheme
/// for Partitioning Irregular Graphs" (1998).
std::vector<std::vector<Unit>> coplaceLevels(const Model &model);

} // namespace baechi::placement::grouping

#endif // BAECHI_LIB_PLACEMENT_CLUSTERS_H
