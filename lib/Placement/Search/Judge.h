//===- Judge.h - What an assignment is worth --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_JUDGE_H
#define BAECHI_LIB_PLACEMENT_SEARCH_JUDGE_H

#include "Search/Evaluator.h"
#include "Search/Search.h"

#include <chrono>

namespace baechi::placement {

/// What the search moves through.
struct Solution {
  std::vector<int32_t> device; ///< per unit
  std::vector<int64_t> offset; ///< per unit, ns; empty: all zero
  int64_t value = never;
};

/// Evaluates solutions by the makespan, counts, and knows what is left of the
/// budget.
class Judge {
public:
  Judge(const Model &model, const SearchOptions &options);

  /// The makespan in ns; above the cut-off any value above it. Bytes above the
  /// limits cost their share of the memory, so that the search finds its way
  /// back.
  int64_t value(const Solution &solution, int64_t cutoff);
  /// The schedule itself; counts as one evaluation.
  bool record(const Solution &solution, Schedule &schedule);
  /// Counts other work that takes as long as so many evaluations.
  void charge(int64_t count) { evaluations += count; }

  /// Share of the budget that is spent; all of it at the lower bound.
  double spent() const;
  int64_t spentEvaluations() const { return evaluations; }
  /// The budget in automatic budgets, about seconds.
  double size() const;
  const Model &model() const { return of; }

private:
  bool memoryIsShort(std::span<const int32_t> device);
  int64_t penalty(int64_t makespan, std::span<const int32_t> device);

  const Model &of;
  SearchOptions options;
  Evaluator evaluator;
  std::chrono::steady_clock::time_point begin;
  int64_t limit;     ///< of evaluations, unless seconds count
  int64_t automatic; ///< the same of an automatic budget
  int64_t evaluations = 0;
  int64_t best = never;
  /// False: all bytes of the model fit each device.
  bool memoryMatters = false;
  std::vector<int32_t> lastDevice; ///< memoryIsShort: per device, last tensor
  Schedule recorded;
  Assignment nodeDevice;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SEARCH_JUDGE_H
