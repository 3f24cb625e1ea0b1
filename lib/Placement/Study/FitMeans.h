//===- FitMeans.h - What makes a step fit one device ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_STUDY_FITMEANS_H
#define BAECHI_LIB_PLACEMENT_STUDY_FITMEANS_H

#include "Baechi/Placement/Recompute/Chains.h"
#include "Baechi/Placement/Study/FitSweep.h"

namespace baechi::placement::study {

/// The step of a graph on one device within some memory, by each means. Its
/// functions throw WasCancelled where the options say so.
class FitMeans {
public:
  struct WasCancelled {};

  /// \p given, \p place: outlive it. \p about: gets what is known of the graph
  /// and the machine, or an error, after which nothing else is asked.
  /// \p keepsPlans: ways have their plans.
  FitMeans(const Problem &given, const PlaceOptions &place, bool keepsPlans,
           FitSweep &about);

  /// Looks for the orders that all means begin with.
  void findBases();

  /// Any order, as placement does by itself.
  FitWay inOrder(int64_t limit);
  /// What runs again is kept for withBoth().
  FitWay runningAgain(int64_t limit);
  /// Waiting in the pool alone.
  FitWay waiting(int64_t limit) { return waiting(graph, bases, limit); }
  /// What little runs again for more memory, as runningAgain() has found it,
  /// and the rest waits. \p which of these are tried: the last ones, or some
  /// from the first to the last.
  enum class Picked { Last, Evenly };
  FitWay withBoth(int64_t limit, Picked which);
  /// All at once, where the graph is small enough; \p known: the best so far.
  FitWay bestOfSmall(const FitWay &known, int64_t limit);

  /// What runs again within \p limit with the least time.
  std::optional<RepeatedOrder> repeatedWithin(int64_t limit) const {
    return recomputeWithin(graph, repeats, bases, limit, *chains);
  }

  /// Says in \p way which of \p runs are not an operator's first.
  void countRepeats(std::span<const int32_t> runs, FitWay &way) const;

  int64_t memory() const { return machine.devices.front().memory; }
  /// The device and the pool by their numbers; no pool: it is assumed.
  int32_t deviceNumber() const { return device; }
  std::optional<int32_t> poolNumber() const { return pool; }

  void say(const std::string &what) const;

private:
  void findDevice();
  void assumePool();
  std::vector<const RepeatedOrder *> pickRewrites(Picked which) const;
  bool isLikeSum(int32_t op) const;
  FitWay judged(const Graph &written, const SpillPlan &plan, int64_t limit);
  FitWay oneAfterTheOther(std::span<const int32_t> runs, int64_t limit);
  FitWay waiting(const Graph &written, std::span<const RepeatedOrder> orders,
                 int64_t limit);
  int64_t timeOf(const Operator &op) const { return *timeOn(op, kind); }

  const Problem &given;
  const Graph &graph;
  const PlaceOptions &place;
  bool keepsPlans;
  FitSweep &about;
  Machine machine; ///< the device, and the pool
  int32_t device = 0;
  std::optional<int32_t> pool;
  std::string kind;
  RecomputeOptions repeats;
  std::vector<RepeatedOrder> bases;
  LeanestOrder leanest;
  std::optional<ChainRewrites> chains;
  /// Of the limits so far, each for less memory than the one before.
  std::vector<RepeatedOrder> rewrites;
};

} // namespace baechi::placement::study

#endif // BAECHI_LIB_PLACEMENT_STUDY_FITMEANS_H
