//===- Seeding.h - Good assignments from coarse clusters --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The first stage of the search: annealed assignments of known groups,
/// clusterings of several grains, assignments of their clusters that balance a
/// surrogate, and mutations of the best by real evaluation.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_SEEDING_H
#define BAECHI_LIB_PLACEMENT_SEARCH_SEEDING_H

#include "Search/Levels.h"
#include "Search/MeteredEvaluator.h"
#include "Search/Surrogate.h"

#include <deque>

namespace baechi::placement::search {

class Seeding {
public:
  Seeding(MeteredEvaluator &evaluator, const UnitTable &units,
          const Traffic &traffic, Random &random);

  /// Adds an assignment from elsewhere.
  void add(Solution solution);
  /// Adds a known grouping of the units, to be annealed first.
  void addGroups(const Level &groups);
  /// Goes on until that share of the budget is spent.
  void run(double until);

  /// The best few that differ in more than a little of the work, best first.
  std::vector<Solution> best(size_t count) const;
  const std::deque<Level> &clusterings() const { return levels; }

private:
  static constexpr size_t eliteSize = 12;
  static constexpr int samplesEach = 8;

  void addClustering();
  void addLevel(Level level, Traffic traffic);
  void gather(Solution &solution, const Level &level) const;
  void annealGroups(size_t level, double until);
  void sample(size_t level);
  void mutate();
  bool consider(Solution solution, size_t level);
  void moveCluster(Solution &solution, const Level &level, int32_t cluster,
                   int32_t d) const;

  MeteredEvaluator &evaluator;
  const UnitTable &units;
  const Traffic &traffic;
  Random &random;
  // Deques: surrogates refer to their level's traffic.
  std::deque<Level> levels;
  std::deque<Traffic> between;
  std::deque<Surrogate> surrogates;
  std::vector<std::vector<double>> picks; ///< cumulated roots of the work
  size_t groupings = 0; ///< how many of the levels are known groupings
  struct Member {
    Solution solution;
    size_t level;
  };
  std::vector<Member> elite; ///< best first
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_SEEDING_H
