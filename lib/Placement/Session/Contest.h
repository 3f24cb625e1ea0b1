//===- Contest.h - The best of what was proposed ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CONTEST_H
#define BAECHI_LIB_PLACEMENT_CONTEST_H

#include "Baechi/Placement/Session/Place.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Schedule/Period.h"
#include "Schedule/Schedule.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baechi::placement::session {

/// A placement with the name of what found it.
struct Winner {
  std::string name;
  Placement placement;
  int64_t value = never;
  std::vector<std::string> notes; ///< shown when it wins
};

/// What was found of a graph and the memories, whatever its links can do at a
/// time.
struct KnownOfMemory {
  explicit KnownOfMemory(const Model &model)
      : lean(std::make_shared<memory::LeanOrders>(model)) {}

  std::shared_ptr<memory::LeanOrders> lean;
  std::set<Assignment> unfit; ///< what could not be repaired
  /// What was packed by memory alone, where that does not fit.
  std::optional<Assignment> unfitPacking;
};

/// Schedules the assignments that placers and searches propose, and keeps the
/// best one that is within the memories.
class Contest {
public:
  /// \p candidates: gets one of each proposal, with its values or what is
  /// wrong with it.
  Contest(const Problem &problem, const Model &model, Objective objective,
          std::vector<Candidate> &candidates)
      : problem(problem), model(model), objective(objective),
        candidates(candidates), scheduler(model), periods(model),
        known(std::make_shared<KnownOfMemory>(model)) {}

  /// \p other, which outlives this, is of the same graph and devices, but for
  /// what links can do at a time: what fits the memories is found once.
  void shareMemory(const Contest &other) { known = other.known; }
  /// \p other, which outlives this, is of the same graph on a machine whose
  /// devices are all of the same kind: orders of few bytes are found once.
  void shareOrders(const Contest &other) { known->lean = other.known->lean; }
  KnownOfMemory &ofMemory() { return *known; }
  /// Schedules an assignment within the memories, in the orders of \p starts
  /// (ns) too, and repairs it where that is needed.
  void consider(const std::string &name, Assignment device,
                const std::vector<std::vector<int64_t>> &starts = {},
                bool mayRepair = true);
  /// The same; it is a candidate only when it is the best so far.
  void considerIfBest(const std::string &name, Assignment device,
                      const std::vector<std::vector<int64_t>> &starts = {},
                      bool mayRepair = true);
  /// The same without a look at the memories while scheduling, for what is
  /// compared as it is: where it does not fit the candidate says so.
  void considerAsIs(const std::string &name, const Assignment &device,
                    const std::vector<int64_t> &start);
  /// Where a search may begin, of about that value.
  void remember(int64_t value, const Assignment &device);
  /// A placement that is valid: notes its values, and it when it is the best.
  void keep(Candidate &candidate, Placement placement,
            std::vector<std::string> notes);

  /// False before the first valid one.
  bool hasWinner() const { return winner.value != never; }
  Winner &leading() { return winner; }
  const Winner &leading() const { return winner; }
  /// Of the valid assignments up to \p count of different values, the best
  /// first.
  std::vector<Assignment> best(size_t count) const;
  /// Whether all devices can talk where this assignment lets them.
  bool canTalk(const Assignment &device) {
    return scheduler.run(device) != never;
  }

private:
  bool schedule(const Assignment &device, Schedule &schedule,
                const std::vector<std::vector<int64_t>> &priorities);
  std::string overflow(const std::vector<int64_t> &peaks) const;

  const Problem &problem;
  const Model &model;
  Objective objective;
  std::vector<Candidate> &candidates;
  Scheduler scheduler;
  PeriodReplay periods;
  Winner winner;
  std::map<int64_t, Assignment> tried; ///< one for every value
  std::shared_ptr<KnownOfMemory> known;

  /// What did not fit, and what repair made of it; empty: nothing that fits.
  std::map<Assignment, Assignment> repaired;
};

} // namespace baechi::placement::session

#endif // BAECHI_LIB_PLACEMENT_CONTEST_H
