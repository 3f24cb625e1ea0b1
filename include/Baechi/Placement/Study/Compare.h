//===- Compare.h - All placers on one problem -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_COMPARE_H
#define BAECHI_PLACEMENT_STUDY_COMPARE_H

#include "Baechi/Placement/Session/Place.h"

#include <span>

namespace baechi::placement {

/// The name of the row that is no single placer's: `place` as it is asked for
/// in the options, by default with all candidates and the search.
inline constexpr const char *wholeAnswer = "default";

/// What one placer makes of the problem.
struct ComparisonRow {
  std::string name;
  std::string description;
  /// In the comparison for the sake of the others.
  bool baseline = false;
  /// There is a placement, and `verify` accepts it.
  bool valid = false;
  /// Why there is none, or what is wrong with it.
  std::string problem;
  /// Of a placement that is not valid, too; 0 when there is none.
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
  // Of valid placements.
  /// The best single device's time over this one's; nullopt when no device can
  /// hold the graph.
  std::optional<double> speedUp;
  /// How far the objective is above its lower bound; 0: proven optimal.
  double gap = 0;
  /// The device whose peak is the largest share of its memory; -1: no device
  /// has any.
  int32_t fullest = -1;
  int64_t peakBytes = 0;
  double peakShare = 0;
  /// Which candidate won: of interest for `wholeAnswer`.
  std::string winner;
  std::vector<std::string> notes;
  /// Time of the whole call, verification included.
  double seconds = 0;
};

struct Comparison {
  Objective objective = Objective::Makespan;
  std::vector<ComparisonRow> rows;
  int64_t lowerBoundNs = 0;
  std::string lowerBoundName;
  std::optional<int64_t> singleDeviceNs;
  /// The valid row that is best by the objective, of equals the first; -1:
  /// none.
  int32_t best = -1;
  /// What is wrong with the input; then there are no rows.
  std::string error;
};

/// Runs each of \p placers (names of `placerNames()`, or `wholeAnswer`; empty:
/// all of them) alone, with no budget: its own pure result. `wholeAnswer` alone
/// has the placer and the budget of \p options.
Comparison compare(const Problem &problem, const PlaceOptions &options,
                   std::span<const std::string> placers = {});

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_COMPARE_H
