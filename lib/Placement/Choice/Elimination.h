//===- Elimination.h - All but a few nodes at once --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Bucket elimination (Dechter 1999) with tables of bounded size: where the
/// next table would be too large, a node of many neighbours is fixed at the
/// value that it has. What is not fixed is chosen exactly, so a sweep never
/// makes a choice worse.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_ELIMINATION_H
#define BAECHI_LIB_PLACEMENT_CHOICE_ELIMINATION_H

#include "Choice/Core.h"
#include "Model/Random.h"

namespace baechi::placement::choice {

/// Which nodes are fixed, and in which order the others are eliminated.
class Elimination {
public:
  /// Draws a plan for the nodes of \p free (empty: all) whose tables have at
  /// most \p maxEntries; the others are fixed.
  Elimination(const Core &core, Random &random, double maxEntries,
              std::vector<int32_t> free = {});

  /// Chooses the strategies of all nodes that are not fixed, beside those that
  /// are, for the least cost. Returns the entries that this and the plan looked
  /// at.
  uint64_t run(const Costs &costs, Strategies &choice);

private:
  /// A table that a bucket reads: an edge's or an earlier bucket's.
  struct Factor {
    const double *table = nullptr; ///< of an edge; else of a bucket
    int32_t bucket = -1;
    int32_t level = 0; ///< of the last of the bucket's scope that it has
    std::vector<int64_t> strides; ///< by scope; the own strategy has 1
  };
  /// What eliminating one node reads and makes.
  struct Bucket {
    int32_t node = -1;
    std::vector<int32_t> scope; ///< the last to be eliminated first
    std::vector<Neighbour> fixed;
    std::vector<Factor> factors; ///< by level
    size_t offset = 0;           ///< of its table
    size_t entries = 0;
  };

  void drawOrder(Random &random, double maxEntries,
                 const std::vector<int32_t> &free);
  void layOut();
  void fill(Bucket &bucket, const Costs &costs, const Strategies &choice);
  void choose(const Bucket &bucket, const Costs &costs, Strategies &choice);
  const double *start(const Factor &factor) const {
    return factor.table ? factor.table
                        : messages.data() + buckets[factor.bucket].offset;
  }

  const Core &core;
  std::vector<int32_t> order;
  std::vector<int32_t> position; ///< in the order; -1 where fixed
  std::vector<Bucket> buckets;
  std::vector<double> messages, rows;
  std::vector<int32_t> counters;
  uint64_t entries = 0;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_ELIMINATION_H
