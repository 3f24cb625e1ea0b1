//===- Annealing.h - Moves around the critical path -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_ANNEALING_H
#define BAECHI_LIB_PLACEMENT_SEARCH_ANNEALING_H

#include "Schedule/CriticalPath.h"
#include "Search/Levels.h"
#include "Search/MeteredEvaluator.h"

namespace baechi::placement::search {

/// Levels from every unit alone to a few clusters.
using Hierarchy = std::vector<Level>;

/// Simulated annealing (Kirkpatrick et al. 1983) of one solution: clusters
/// around critical transfers and operators move, whole or within a window of
/// time, to the other end of a transfer or elsewhere; or they become more or
/// less urgent; or they go where another good solution has them. The further it
/// goes, the smaller the clusters.
class Annealing {
public:
  Annealing(MeteredEvaluator &evaluator, const UnitTable &units,
            const std::vector<Hierarchy> &hierarchies, Random &random);

  struct Options {
    double until = 1;        ///< share of the budget
    double hot = 0.003;      ///< first temperature, as a share of the makespan
    double coarse = 0.8;     ///< how fine the moves are at first...
    double fine = 1.5;       ///< ...and at last
    double guided = 0.05;    ///< share that follow another solution
    double urgencies = 0.15; ///< share of the moves that are of urgency
  };
  /// Solutions whose parts may be taken over.
  void setGuides(const std::vector<Solution> &solutions);
  /// The best solution on the way.
  Solution run(Solution solution, const Options &options);

private:
  void findCritical();
  Unit pickUnit(int32_t &target);
  void pickSet(Unit u, double exponent);
  bool moveSet(Unit u, int32_t target);
  void addSwap(Unit u, int32_t from);
  void shiftSet();
  void undoAll();
  bool followGuide(Unit u);
  std::vector<int32_t> relabel(const Solution &guide) const;

  MeteredEvaluator &evaluator;
  const UnitTable &units;
  const Model &model; ///< whose units the evaluator's model has, too
  const std::vector<Hierarchy> &hierarchies;
  Random &random;

  std::vector<Solution> guides;
  bool devicesAreEqual;
  Solution current;
  CriticalPath critical;        ///< in the evaluator's model
  const Level *level = nullptr; ///< of the last set
  std::vector<Unit> set;
  std::vector<std::pair<Unit, int32_t>> moved;
  std::vector<std::pair<Unit, int64_t>> shifted;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_ANNEALING_H
