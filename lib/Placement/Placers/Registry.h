//===- Registry.h - All placers by name -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One table of everything that proposes an assignment, Baechi's placers and
/// the baselines they are compared with. `place` schedules, repairs and judges
/// what a placer proposes; a placer only proposes.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_REGISTRY_H
#define BAECHI_LIB_PLACEMENT_REGISTRY_H

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Grouping/Coarsen.h"

#include <span>
#include <string_view>

namespace baechi::placement::placers {

/// What a placer works on.
/// One of several groupings of the same model.
struct Level {
  grouping::Coarsening coarsening;
  Model grouped;
};

struct PlacerContext {
  const Problem &problem;
  /// The problem's own model.
  const Model &model;
  /// What the grouping steps made of it.
  const grouping::Coarsening &coarsening;
  const Model &grouped;
  const PlaceOptions &options;
  /// For m-SCT's program in this run; none: the native solver.
  const LpSolver *solver;
  /// What a report should say.
  std::vector<std::string> &notes;
  /// Further levels of a multilevel grouping; m-ETF and m-SCT try them all.
  std::span<const Level> levels = {};
};

struct Proposal {
  /// Set when a placer proposes several: "d0" of "single:d0".
  std::string variant;
  /// Per node of the problem's model.
  Assignment device;
  /// Per node of the problem's model, when the placer would start it; only the
  /// order counts, as a priority. Empty: none.
  std::vector<int64_t> start = {};
  /// Where it exceeds a memory it may be repaired.
  bool mayRepair = true;
};

struct Proposals {
  std::vector<Proposal> list;
  /// Why there is none.
  std::string error;
};

struct Placer {
  std::string_view name;
  /// One line, for help texts and tables.
  std::string_view description;
  /// Part of every comparison, and nobody's recommendation.
  bool baseline = false;
  /// Does not look at the memories: its assignment is neither rescheduled nor
  /// repaired to fit them.
  bool ignoresMemory = false;
  /// Asked for, it is the answer or an error: no repair, no other candidates,
  /// no search.
  bool alone = false;
  /// Also tried when another placer was asked for, in graphs of at most so
  /// many units: larger ones leave too little time for the search.
  int32_t candidateUpTo = 0;
  Proposals (*propose)(const PlacerContext &context) = nullptr;
};

/// All placers, in the order of `placerNames()`.
const std::vector<Placer> &allPlacers();
/// nullptr: there is none of this name.
const Placer *placerNamed(std::string_view name);

/// The proposal that an assignment of a grouped model stands for.
Proposal ungrouped(const grouping::Coarsening &coarsening,
                   const Assignment &device,
                   const std::vector<int64_t> &start = {});

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_REGISTRY_H
