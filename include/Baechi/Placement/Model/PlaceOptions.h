//===- PlaceOptions.h - What is asked of a placement ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_PLACEOPTIONS_H
#define BAECHI_PLACEMENT_MODEL_PLACEOPTIONS_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::placement {

struct Graph;
class LpSolver;
class Partitioner;

enum class Objective {
  Makespan, ///< time of one step
  MaxLoad,  ///< largest load of a device or link: a pipeline's throughput
  Period,   ///< distance between steps that overlap (runtime: Session::steps)
};

/// "makespan", "max-load" or "period".
std::string_view objectiveText(Objective objective);
/// What an objective's value is called in reports: "step", "max load" or
/// "period".
std::string_view objectiveWord(Objective objective);
/// Reads what `objectiveText` writes. Returns an error that does not say where
/// the name was given, empty on success.
std::string parseObjective(std::string_view name, Objective &objective);

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

/// What is asked of `place`.
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
  /// What is found is spread over time: operators and transfers run one after
  /// the other, in the order of their ends. It needs no more memory, and a plan
  /// that follows it none for what would have run meanwhile.
  bool inTurn = false;
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

/// The grouping steps for the placer and the budget of \p options where nobody
/// asks for others: those of `PlaceOptions`, but for m-ETF and m-SCT by
/// themselves (no budget) the paper's, with co-placement at several grains.
std::vector<std::string> usualGrouping(const Graph &graph,
                                       const PlaceOptions &options);

/// The whole error of a call that was cancelled.
inline constexpr const char *cancelledError = "cancelled";

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_PLACEOPTIONS_H
