//===- BranchAndBound.h - Branch and bound over assignments --------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// First the devices are decided, unit by unit, then the order (allocation and
/// ordering as in Orr and Sinnen, "Optimal task scheduling benefits from a
/// duplicate-free state-space", 2020). Deciding devices first makes loads,
/// transfers and memory known early, and with them good bounds.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_BRANCHANDBOUND_H
#define BAECHI_LIB_PLACEMENT_EXACT_BRANCHANDBOUND_H

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Exact/Timetable.h"

namespace baechi::placement::exact {

struct Found {
  /// True when the search came to its end.
  bool complete = false;
  /// Of the best placement below the cut-off; `never`: there is none.
  int64_t value = never;
  Assignment device;
  Timetable timetable;
  /// No placement is better than this, or than the cut-off where that is less.
  int64_t bound = 0;
  int64_t nodes = 0;
};

/// Looks for a placement whose objective is below \p cutoff, and for the best,
/// or the first that is at most \p enough. \p model is not too large
/// (`whyTooLarge`). Ends where \p expired says true.
Found search(const Model &model, Objective objective, int64_t cutoff,
             int64_t nodeLimit, int64_t enough = 0,
             const std::function<bool()> &expired = {});

/// The placement that was found.
Placement toPlacement(const Found &found);

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_BRANCHANDBOUND_H
