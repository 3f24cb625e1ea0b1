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
#ifndef BAECHI_PLACEMENT_PLACE_H
#define BAECHI_PLACEMENT_PLACE_H

#include "Baechi/Placement/LpSolver.h"
#include "Baechi/Placement/Partitioner.h"
#include "Baechi/Placement/Placement.h"

#include <functional>
#include <string_view>

namespace baechi::placement {

enum class Objective {
  Makespan, ///< time of one step
  MaxLoad,  ///< largest load of a device or link: a pipeline's throughput
};

/// What improvement over the placer may cost.
struct Budget {
  enum class Kind {
    Automatic,   ///< evaluations by the size of the graph: at most about 1 s
    None,        ///< the placer's own pure result: no candidates, no search
    Seconds,     ///< any-time; results depend on the machine's speed
    Evaluations, ///< schedules of the search
  };
  Kind kind = Kind::Automatic;
  double seconds = 0;
  int64_t evaluations = 0;

  static Budget none() { return {Kind::None}; }
  static Budget ofSeconds(double s) { return {Kind::Seconds, s}; }
  static Budget ofEvaluations(int64_t n) { return {Kind::Evaluations, 0, n}; }
};

/// Reads "auto", "0" (none), seconds ("30", "0.5s") or evaluations ("5000e").
/// Returns an error, empty on success.
std::string parseBudget(std::string_view text, Budget &budget);
/// The text that reads as \p budget.
std::string formatBudget(const Budget &budget);

/// A rule of the placer "expert": operators whose name the pattern, a POSIX
/// extended regular expression, occurs in go to the device.
struct ExpertRule {
  std::string pattern;
  std::string device;
};

struct PlaceOptions {
  /// One of `placerNames()`.
  std::string placer = "msct";
  /// Grouping steps, in order, from `groupingNames()`; empty: none. The
  /// graph's own colocation groups always hold.
  std::vector<std::string> grouping = {"colocate", "coplace", "fuse"};
  Objective objective = Objective::Makespan;
  /// Of the other candidates (every placer, every single device) and the
  /// search; the best of all wins.
  Budget budget;
  /// Of the search's random numbers.
  uint64_t seed = 1;
  /// Solves m-SCT's linear program; none: the native solver, which is exact
  /// (NativeSolver.h). Must outlive the call.
  const LpSolver *solver = nullptr;
  /// Seconds for a solver that has no limit of its own, as GLPK.
  double solverSeconds = 40;
  /// For the placer "min-cut". Must outlive the call.
  const Partitioner *partitioner = nullptr;
  /// For the placer "expert"; the first rule that matches counts.
  std::vector<ExpertRule> expert;
  /// Called with the name of every phase as it begins.
  std::function<void(const std::string &)> progress;
  /// Asked often, from the calling thread; once it says true the call ends soon
  /// with the error `cancelledError`.
  std::function<bool()> cancelled;
};

/// The whole error of a call that was cancelled.
inline constexpr const char *cancelledError = "cancelled";

struct Candidate {
  std::string name;
  bool feasible = false;
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
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
  /// Which candidate won.
  std::string winner;
  std::vector<Candidate> candidates;
  /// A valid lower bound of the objective, and its name.
  int64_t lowerBoundNs = 0;
  std::string lowerBoundName;
  int64_t maxLoadNs = 0;
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

/// Names of the placers ("mtopo", "metf", "msct", "single", ...).
const std::vector<std::string> &placerNames();
/// Names of the grouping steps ("colocate", "forward", "coplace", "fuse"), in
/// the order that suits them. `PlaceOptions` has those that are on by default;
/// "forward", forward-only placement, is asked for by name.
const std::vector<std::string> &groupingNames();

/// Places \p problem. Deterministic unless a budget of seconds is given. The
/// returned placement has passed `verify`.
PlaceResult place(const Problem &problem, const PlaceOptions &options);

/// The groups that bounded co-placement (Jeon et al., SoCC 2020, section 3.3)
/// makes of a problem: a number per operator, equal for operators that should
/// be on one device. \p error is set, and the result empty, when the problem is
/// not well formed.
std::vector<int32_t> coplacedGroups(const Problem &problem, std::string &error);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_PLACE_H
