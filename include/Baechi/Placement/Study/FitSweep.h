//===- FitSweep.h - The step over the memory --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The step of a graph on one device over its memory, by what makes it fit: an
/// order alone, running again, waiting in a pool, or both; and by the best of
/// these where sums of many operands are done one after the other. The device
/// is the machine's first that can run all operators; the pool is the
/// machine's, or one of the short form's link that has all the room it needs.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_FITSWEEP_H
#define BAECHI_PLACEMENT_STUDY_FITSWEEP_H

#include "Baechi/Placement/Recompute/Rewrite.h"
#include "Baechi/Placement/Study/Sweep.h"

#include <memory>

namespace baechi::placement {

struct FitSweepOptions {
  /// Shares are of the peak of the order in the file.
  std::vector<SweepMemory> memory;
  /// How the order alone is sought; who hears of the progress and may end it.
  PlaceOptions place;
  /// Operators that add up what they read, which may be done one after the
  /// other (Recompute/Sums.h).
  std::vector<int32_t> sums;
};

/// The shortest step that was found by one means within some memory, replayed
/// by the rules of placements.
struct FitWay {
  bool fits = false;
  int64_t stepNs = 0;
  int64_t peakBytes = 0;     ///< by the replay
  int64_t poolPeakBytes = 0; ///< by the replay
  int64_t movedBytes = 0;    ///< to the pool and back
  int64_t againNs = 0;       ///< of runs that are not an operator's first
  int64_t againBytes = 0;    ///< that these make
  /// What was replayed, for those who ask for plans.
  std::shared_ptr<const PlacedFit> plan;
};

struct FitPoint {
  int64_t memoryBytes = 0;
  FitWay order, again, pool, both;
  /// The best of these with the sums one after the other.
  FitWay inTurn;
  /// The one with the shortest step; the plainer one of equals.
  const FitWay *best() const;
  const char *bestName() const; ///< "none" where nothing fits
};

struct FitFloor {
  int64_t bytes = 0;
  std::string op; ///< that needs most by itself
};

/// What no order goes under: one of these operators takes it in any of them.
struct FitOrderFloor {
  int64_t bytes = 0;
  std::vector<std::string> ops;
};

struct FitSweep {
  std::string device, pool; ///< names
  Link out, in;
  int64_t poolBytes = 0;
  int64_t unlimitedNs = 0; ///< all operators one after the other
  int64_t fileBytes = 0;   ///< peak of the order in the file
  int64_t leanBytes = 0;   ///< of the leanest order that was found
  int64_t residentBytes = 0;
  FitOrderFloor orderFloor; ///< as far as it is proven
  FitFloor floor;           ///< what none of the means goes under
  /// Its operator may be a sum of more than two, which was not asked for.
  bool mayBeSum = false;
  /// The same with the sums one after the other, where there are any.
  std::optional<FitFloor> floorInTurn;
  std::vector<FitPoint> points; ///< most memory first
  std::vector<std::string> notes;
  /// What is wrong with the input; then there are no points.
  std::string error;
};

/// Less memory never gives a shorter step than more, by any means.
/// Deterministic, unless the budget is of seconds.
FitSweep fitSweep(const Problem &problem, const FitSweepOptions &options);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_FITSWEEP_H
