//===- PlanCuts.h - Which operators are cut, and where ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Places a graph that states other ways to do its operators. A pairwise
/// program (SolveChoice.h) proposes ways, for several weights of transfers,
/// numbers of pieces and memories; the graph is expanded by each, and what
/// `place` makes of the graphs decides. The graph as it is takes part, so that
/// the answer is never worse.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_CUTS_PLANCUTS_H
#define BAECHI_PLACEMENT_CUTS_PLANCUTS_H

#include "Baechi/Placement/Model/Alternatives.h"
#include "Baechi/Placement/Session/Place.h"

namespace baechi::placement {

struct CutPlan {
  Ways ways;
  /// The machine, and the graph in those ways: what the result is of.
  Problem problem;
  std::vector<Expansion::Origin> origins;
  PlaceResult result;
  /// The objective of the best placement of the graph as it is; nullopt: none
  /// was found.
  std::optional<int64_t> wholeNs;
  int32_t proposed = 0;      ///< ways that were looked at
  int32_t placed = 0;        ///< of them, placed with the whole budget
  bool isExhaustive = false; ///< all ways there are were looked at
};

/// Plans. The result has an error where `check` or `checkAlternatives` has
/// anything to say, or no placement was found. Deterministic unless a budget of
/// seconds is given. Up to six graphs get the whole budget each; without
/// seconds, of a graph of up to 100 operators and 64 ways, all.
CutPlan planCuts(const Problem &problem, const Alternatives &alternatives,
                 const PlaceOptions &options);

/// Places the graph in ways that somebody else chose, and in no others.
CutPlan placeWays(const Problem &problem, const Alternatives &alternatives,
                  const Ways &ways, const PlaceOptions &options);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_CUTS_PLANCUTS_H
