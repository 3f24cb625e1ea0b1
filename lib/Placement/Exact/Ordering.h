//===- Ordering.h - The best schedule of an assignment ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Branch and bound over chronological decisions: at time 0 and whenever
/// something ends, which operators and transfers start, and whether to wait
/// instead. That is complete: keep the order of starts of an optimal schedule,
/// and which ends come before which start; then every start can be moved to the
/// earliest time that this allows, which is 0 or an end (or the arrival of a
/// control signal), no two operators come to overlap, and at no start is more
/// memory in use than before.
///
/// What is never worse is not branched on: where memory cannot run short,
/// something that can start and that nothing could disturb before its end
/// starts (Giffler and Thompson's active schedules, 1960). States are not
/// explored that have the same started and all ended no earlier than another
/// one (dominance; memoised). Bounds: longest paths, and Jackson's preemptive
/// schedule of every device and of what carries transfers.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_ORDERING_H
#define BAECHI_LIB_PLACEMENT_EXACT_ORDERING_H

#include "Exact/Memo.h"
#include "Exact/Timetable.h"

namespace baechi::placement::exact {

class Ordering {
public:
  /// All must outlive the search.
  Ordering(const Assigned &problem, Effort &effort);

  /// Looks for a schedule within the memories that ends before \p cutoff, and
  /// for better ones until none is left or the first that ends by \p enough.
  /// Stops, without a proof, when the effort is spent.
  bool improve(int64_t cutoff, int64_t enough, Timetable &best);

private:
  static constexpr int64_t notWaiting = -1;
  struct State {
    int64_t now = 0;
    int32_t rank = 0; ///< actions before it were decided on at this time
    /// Where memory may still run short, since `now`.
    DeviceSet tight = 0;
    Progress progress;
    std::array<int64_t, maxOperators> end;
    std::array<int64_t, maxCopies> copyEnd;
    /// When what could start was made to wait, or notWaiting. It then starts
    /// only after something else on its device or link.
    std::array<int64_t, maxOperators> waitsSince;
    std::array<int64_t, maxCopies> copyWaitsSince;
    std::array<int64_t, maxDevices> deviceFree{};
    std::array<int64_t, maxCarriers> linkFree{};
  };
  /// Starts an operator (copy < 0) or a copy from a device.
  struct Action {
    int32_t node, copy, from;
    int64_t urgency;
  };
  /// When what has not started can start at the earliest.
  struct Heads {
    std::array<int64_t, maxOperators> node;
    std::array<int64_t, maxCopies> arrival;
    std::vector<int64_t> available; ///< per moved tensor, anywhere
    int64_t bound = 0;
  };

  bool stopped() const { return effort.spent() || cutoff <= enough; }
  void explore(const State &state);
  void wait(State state, const Heads &heads);
  void advance(State state);
  bool markWaiting(State &state, const Heads &heads) const;
  bool waitedTooLong(const State &state) const;
  bool canStart(const State &state, const Action &action) const;
  bool mustStart(const State &state, const Heads &heads,
                 const Action &action) const;
  void start(State &state, const Action &action) const;
  int64_t lengthOf(const Action &action) const;
  bool mayShareCarrier(int32_t copy, int32_t from, int32_t to) const;
  DeviceSet tightDevices(const Progress &at) const;
  int32_t deviceOf(const Action &action) const;
  int64_t bytesOf(const Action &action) const;
  bool isMemoryFree(const State &state, const Action &action) const;
  bool copyMayWait(const State &state, const Heads &heads,
                   int32_t waiting) const;
  bool findHeads(const State &state, Heads &heads) const;
  int64_t arrivalOf(const State &state, const Heads &heads, int32_t copy) const;
  bool machinesAllow(const State &state, const Heads &heads);
  bool linksAllow(const State &state, const Heads &heads);
  bool isDominated(const State &state);
  int32_t memorize(const State &state);
  void record(const State &state);

  const Assigned &problem;
  const Instance &instance;
  const Model &model;
  Effort &effort;
  LinkModel linkModel;
  std::vector<Action> actions; ///< most urgent first
  bool hasInstants = false;    ///< something takes no time
  int64_t cutoff = never;
  int64_t enough = 0;
  Timetable *best = nullptr;
  Memo memo;
  std::vector<Job> jobs;
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_ORDERING_H
