//===- Period.h - The distance between steps that overlap -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a placement is worth when its steps overlap (docs/placement.md,
/// "Steps that overlap"). Each device computes its operators, and each link
/// carries its transfers, in the order that the placement has, as early as may
/// be; a device begins its next step when its own operators have ended, all
/// that it sends or receives was delivered, and what it lent was given back. A
/// message is delivered to a device that is in the message's step.
///
/// All of this is sums and maxima, so that steps follow each other as the
/// powers of a matrix over (max, +): after some steps their distances repeat,
/// and the average is the largest mean of a cycle (Baccelli et al.,
/// "Synchronization and Linearity", 1992, sections 3.2 and 3.7). The steps are
/// replayed until all distances repeat or, where that takes longer, as often as
/// there is state, which is enough for the exact mean (Karp, "A
/// characterization of the minimum cycle mean in a digraph", 1978).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SCHEDULE_PERIOD_H
#define BAECHI_LIB_PLACEMENT_SCHEDULE_PERIOD_H

#include "Schedule/Schedule.h"

namespace baechi::placement {

/// The average distance between steps: `cycleNs` for `cycle` steps.
struct Period {
  int64_t cycleNs = 0;
  int64_t cycle = 1;
  int64_t replayed = 0; ///< steps that were looked at

  /// Rounded up.
  int64_t ns() const { return (cycleNs + cycle - 1) / cycle; }
};

/// Replays steps of placements of one model, which must outlive it. It knows
/// nothing of network cards that nodes share.
class PeriodReplay {
public:
  explicit PeriodReplay(const Model &model);

  /// \p schedule is a valid one of \p device.
  Period run(const Assignment &device, const Schedule &schedule);
  Period run(const Placement &placement);

private:
  enum class Kind : uint8_t { Operator, Transfer, Signal };
  /// What happens once a step. The order is one in which nothing comes before
  /// what it waits for, and that of each device and link.
  struct Task {
    int64_t start, end;
    int32_t depth;    ///< of the operator, or of what is moved
    Kind kind;        ///< operators before what they send at that time
    int32_t hops;     ///< transfers that the tensor has behind it
    int32_t id;       ///< an operator, a tensor, or who signals
    int32_t user;     ///< who is signalled
    int32_t from, to; ///< devices
    auto key() const {
      return std::tie(start, end, depth, kind, hops, id, user, to);
    }
  };

  void order(const Assignment &device, const Schedule &schedule);
  void connect(const Assignment &device);
  bool isLent(const Task &task) const {
    return task.kind == Kind::Transfer &&
           model.machine->link(task.from, task.to)->lends;
  }
  void join(int32_t a, int32_t b);
  int32_t find(int32_t device);
  void replay(std::vector<int64_t> &state);
  bool repeats(Period &period) const;
  Period meanOfCycles() const;

  const Model &model;
  std::vector<int32_t> depth; ///< per node: operators on the longest path to it

  // One placement. The state between steps is when each device may begin its
  // next one, and when each link is free.
  std::vector<Task> tasks;
  Rows needs;                 ///< task -> tasks that it waits for
  Rows borrowers;             ///< lent transfer -> tasks that give it back
  std::vector<int32_t> links; ///< [2 * task + k]: positions in the state; -1
  std::vector<int32_t> group; ///< per device: of those that wait for each other
  std::vector<int32_t> groupOf;           ///< per position in the state
  std::vector<int64_t> finish;            ///< per task
  std::vector<std::vector<int64_t>> past; ///< states, oldest first
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SCHEDULE_PERIOD_H
