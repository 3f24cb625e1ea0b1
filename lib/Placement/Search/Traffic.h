//===- Traffic.h - What clusters send each other ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tensors between clusters of units, as rows: one cluster sends to a set
/// of others. Clusterings contract rows round by round, and what is left is
/// what a surrogate of the makespan needs.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_TRAFFIC_H
#define BAECHI_LIB_PLACEMENT_SEARCH_TRAFFIC_H

#include "Model/Model.h"
#include "Model/Random.h"

namespace baechi::placement::search {

class Traffic {
public:
  struct Row {
    int32_t from;
    int32_t begin, end; ///< of its targets, ascending
    double ns;          ///< mean time of one copy of all its tensors
  };
  struct Pair {
    int32_t a, b; ///< a < b
    double ns;
  };

  Traffic() = default;
  /// Between the units of a model. A tensor with very many users says little
  /// about neighbours and is left out.
  explicit Traffic(const Model &model);

  /// The same with cluster c as part of into[c], of \p count.
  Traffic contracted(std::span<const int32_t> into, int32_t count) const;
  /// The traffic of every pair that has some, by (a, b).
  std::vector<Pair> pairs() const;

  int32_t size() const { return clusters; }
  const std::vector<Row> &rows() const { return all; }
  std::span<const int32_t> targets(const Row &row) const {
    return {items.data() + row.begin, items.data() + row.end};
  }

private:
  /// Appends a row of the unsorted \p row.
  void add(int32_t from, std::vector<int32_t> &row, double ns);
  void mergeEqualRows();

  int32_t clusters = 0;
  std::vector<Row> all;
  std::vector<int32_t> items;
};

/// How pairs are ranked for joining.
enum class Affinity {
  Work,    ///< traffic by the smaller work of the two
  Traffic, ///< traffic alone
  Share,   ///< share of the pair's traffic in all of the one that talks less
};

/// Clusters of a model's units while they join.
class Clustering {
public:
  Clustering(const Model &model, const Traffic &traffic);

  struct Options {
    Affinity affinity = Affinity::Share;
    /// No cluster does more than this share of all work.
    double workShare = 0.6;
    /// Joins at most this share of the clusters a round.
    double roundShare = 0.3;
    /// Of two that join, the smaller does at most this share of all work...
    double small = 1;
    /// ...unless their transfers take this many times its time.
    double ratio = 0;
    /// Spread of the ranks, to get different clusterings.
    double noise = 0;
  };
  /// One round; false when nothing joined.
  bool joinRound(const Options &options, Random &random);

  int32_t size() const { return between.size(); }
  const std::vector<int32_t> &clusterOf() const { return cluster; }
  const Traffic &traffic() const { return between; }

private:
  Traffic between;
  std::vector<int32_t> cluster; ///< per unit
  std::vector<double> work;     ///< per cluster, ns
  /// [cluster * devices + d]: all its units may be there.
  std::vector<uint8_t> allowed;
  int32_t devices;
  double allWork = 0;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_TRAFFIC_H
