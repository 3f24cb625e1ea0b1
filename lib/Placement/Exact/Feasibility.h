//===- Feasibility.h - Does any order fit the memories? ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Whether an assignment has any schedule within the memories, whatever time it
/// takes. It has one only if it has one in which everything runs one after the
/// other: run what a schedule starts in the order of its starts, and at each
/// start no more is held than before. So the search is over sets of what is
/// done, a pebble game (Sethi, "Complete register allocation problems", 1975).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_EXACT_FEASIBILITY_H
#define BAECHI_LIB_PLACEMENT_EXACT_FEASIBILITY_H

#include "Exact/Memo.h"
#include "Exact/Timetable.h"

#include <unordered_set>

namespace baechi::placement::exact {

class Feasibility {
public:
  /// All must outlive it.
  Feasibility(const Assigned &problem, Effort &effort)
      : problem(problem), instance(problem.instance), model(problem.model),
        effort(effort) {}

  enum class Answer { Fits, Never, Unknown };
  /// `Fits` leaves an order. It is certain unless something takes no time and
  /// waits for a signal: then only `schedule` can tell.
  Answer run();

  /// The schedule that starts everything in the order that was found, each as
  /// early as that allows; a makespan of `never` when it does not fit.
  Timetable schedule() const;

private:
  /// Runs an operator (copy < 0) or a copy from a device; with from < 0 the
  /// copy, or with node >= 0 a moved tensor at home, is given up.
  struct Step {
    enum class Kind : int8_t { Run, Copy, DropCopy, DropHome } kind;
    int32_t id; ///< operator, copy or moved tensor
    int32_t from = -1;
  };
  bool explore(const Progress &at);
  bool isReady(const Progress &at, const Step &step) const;
  void begin(Progress &at, const Step &step) const;
  void finish(Progress &at, const Step &step) const;
  int64_t lengthOf(const Step &step) const;

  const Assigned &problem;
  const Instance &instance;
  const Model &model;
  Effort &effort;
  std::vector<Step> steps; ///< operators and copies
  std::vector<Step> order;
  std::unordered_set<MemoKey, MemoHash> failed;
};

} // namespace baechi::placement::exact

#endif // BAECHI_LIB_PLACEMENT_EXACT_FEASIBILITY_H
