//===- Meter.h - What is left of a search's budget --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_METER_H
#define BAECHI_LIB_PLACEMENT_SEARCH_METER_H

#include "Search/Search.h"

#include <chrono>

namespace baechi::placement::search {

/// The evaluations of an automatic budget: about a second, or where more are of
/// no use.
int64_t automaticEvaluations(const Model &merged);

/// Counts evaluations of the merged model, or time, against the budget.
class Meter {
public:
  Meter(const Model &merged, const SearchOptions &options);

  /// Counts work that takes as long as so many evaluations.
  void charge(double evaluations) { charged += evaluations; }
  /// A value was found; nothing is better than the lower bound.
  void found(int64_t value) { isBest |= value <= lowerBound; }
  /// Share of the budget that is spent; all of it at the lower bound, and when
  /// the search is cancelled.
  double spent() const;
  double evaluations() const { return charged; }
  /// Whether the budget allows so many evaluations, as far as is known.
  bool affords(double evaluations) const;
  /// The budget in automatic budgets, about seconds.
  double size() const;

private:
  Budget budget;
  std::function<bool()> cancelled;
  int64_t lowerBound;
  double automatic; ///< evaluations of an automatic budget
  std::chrono::steady_clock::time_point begin;
  double charged = 0;
  bool isBest = false;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_METER_H
