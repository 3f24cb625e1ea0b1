//===- Place.h - From a problem to a verified placement -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one entry that tools and compiler passes use: grouping, a placer, the
/// single-device candidate, improvement, verification and the certificate.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_SESSION_PLACE_H
#define BAECHI_PLACEMENT_SESSION_PLACE_H

#include "Baechi/Placement/Lp/LpSolver.h"
#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Baechi/Placement/Placers/Partitioner.h"
#include "Baechi/Placement/Schedule/Verify.h"

#include <optional>

namespace baechi::placement {

struct Candidate {
  std::string name;
  bool feasible = false;
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
  /// For Objective::Period alone.
  int64_t periodNs = 0;
  /// Why it is not feasible. The makespan and the load are then those of the
  /// placement that overflows, 0 when there is none.
  std::string problem = {};
};

/// What a grouping step did. A group is a set of operators on one device.
struct GroupingStep {
  std::string name;
  int32_t operatorsBefore = 0;
  int32_t operatorsAfter = 0;
  int32_t groupsBefore = 0;
  int32_t groupsAfter = 0;
  /// Of the group that does most, in all work; of the one that holds most, in
  /// all resident bytes and outputs. 0 to 1, after the step.
  double largestWork = 0;
  double largestMemory = 0;
};

struct Phase {
  std::string name;
  double seconds = 0;
};

struct PlaceResult {
  /// Set when every constraint is met; otherwise `error` says why.
  std::optional<Placement> placement;
  /// A diagnostic: what was needed, what there is, per device, the largest
  /// culprits.
  std::string error;
  /// The operator that `error` is about; -1: about none alone.
  int32_t errorOp = -1;
  /// Which candidate won.
  std::string winner;
  std::vector<Candidate> candidates;
  /// A valid lower bound of the objective, and its name.
  int64_t lowerBoundNs = 0;
  std::string lowerBoundName;
  int64_t maxLoadNs = 0;
  /// For Objective::Period alone: the average, rounded up, and exactly the
  /// nanoseconds of so many steps, after which all distances repeat.
  int64_t periodNs = 0;
  int64_t cycleNs = 0, cycleSteps = 0;
  /// Makespan of the best device alone; nullopt when none can hold the graph.
  std::optional<int64_t> singleDeviceNs;
  std::vector<DeviceUsage> usage;
  std::vector<Phase> phases;
  /// Operators before and after grouping.
  int32_t operatorsBefore = 0;
  int32_t operatorsAfter = 0;
  /// What every grouping step did, in their order.
  std::vector<GroupingStep> grouping;
  std::vector<std::string> notes;
};

/// The value of an objective that the placement of \p result has, ns.
int64_t objectiveNs(const PlaceResult &result, Objective objective);

/// Names of the placers ("mtopo", "metf", "msct", "single", ...).
const std::vector<std::string> &placerNames();
/// Names of the grouping steps ("colocate", "forward", "coplace", "multilevel",
/// "fuse"), in the order that suits them. `PlaceOptions` has those that are on
/// by default; "forward", forward-only placement, and "multilevel",
/// co-placement at several grains, are asked for by name or by
/// `usualGrouping`.
const std::vector<std::string> &groupingNames();

/// Places \p problem. Deterministic unless a budget of seconds is given. The
/// returned placement has passed `verify`.
PlaceResult place(const Problem &problem, const PlaceOptions &options);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_SESSION_PLACE_H
