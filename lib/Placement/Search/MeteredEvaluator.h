//===- MeteredEvaluator.h - What an assignment is worth --------------------*-
// C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_METEREDEVALUATOR_H
#define BAECHI_LIB_PLACEMENT_SEARCH_METEREDEVALUATOR_H

#include "Memory/PeakEstimate.h"
#include "Schedule/Evaluator.h"
#include "Search/Meter.h"

namespace baechi::placement::search {

/// What the search moves through.
struct Solution {
  std::vector<int32_t> device; ///< per unit
  std::vector<int64_t> offset; ///< per unit, ns; empty: all zero
  int64_t value = never;
};

/// Evaluates solutions by the makespan, against the budget.
class MeteredEvaluator {
public:
  /// An evaluation costs \p cost of those that \p meter counts.
  MeteredEvaluator(const SearchModel &searched, Meter &meter, double cost = 1);

  /// The makespan in ns; above the cut-off any value above it. Bytes above the
  /// limits in every order that is known cost their share of the memory, so
  /// that the search finds its way back.
  int64_t value(const Solution &solution, int64_t cutoff);
  /// The same for one that differs little from the last: while memory is far
  /// from short, most calls do not look at it.
  int64_t valueNearby(const Solution &solution, int64_t cutoff);
  /// The schedule itself; counts as one evaluation.
  bool record(const Solution &solution, Schedule &schedule);
  /// Counts other work that takes as long as so many evaluations.
  void charge(double count) { meter.charge(count * cost); }
  double spent() const { return meter.spent(); }
  /// Whether the budget allows so many evaluations.
  bool affords(int64_t count) const {
    return meter.affords(static_cast<double>(count) * cost);
  }
  const Model &model() const { return of; }

private:
  bool memoryIsShort(std::span<const int32_t> device);
  int64_t penalty(int64_t makespan, std::span<const int32_t> device);

  const Model &of;
  Meter &meter;
  double cost;
  Evaluator evaluator;
  /// None: all bytes of the model fit each device.
  std::optional<memory::PeakEstimate> estimate;
  std::vector<int32_t> lastDevice; ///< memoryIsShort: per device, last tensor
  /// Of valueNearby: calls that need not look at memory.
  int skips = 0;
  Assignment nodeDevice;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_METEREDEVALUATOR_H
