//===- Rounds.h - How much every round of a search may do -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search goes on in rounds, each with as many evaluations as all before it
/// together. What a round does depends on the rounds before it alone, never on
/// the budget: that only says how many there are. So a larger budget finds all
/// that a smaller one does.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_ROUNDS_H
#define BAECHI_LIB_PLACEMENT_SEARCH_ROUNDS_H

#include "Baechi/Placement/Model/PlaceOptions.h"

#include <chrono>
#include <functional>

namespace baechi::placement::search {

struct Round {
  int32_t index = 0;
  int64_t evaluations = 0; ///< of this round
  int64_t total = 0;       ///< with those before it
  /// Of an automatic budget: it ends there, or already has.
  bool isLast = false;
  int64_t limit = 0; ///< the total of an automatic budget; 0: of another
  uint64_t seed = 1;
  /// Ends the round where it says true: cancelled, or out of time.
  std::function<bool()> expired;
};

class Rounds {
public:
  /// The evaluations of the first round, and the least of any search.
  static constexpr int64_t first = 20;

  /// \p automatic: evaluations of an automatic budget, about.
  Rounds(const PlaceOptions &options, int64_t automatic);
  /// The next round is in \p round; false when the budget allows none. An
  /// automatic budget allows \p patience times as much.
  bool next(Round &round, int64_t patience);

private:
  bool isOver() const;

  const PlaceOptions &options;
  int64_t limit;
  int64_t total = 0;
  int32_t count = 0;
  std::chrono::steady_clock::time_point begin;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_ROUNDS_H
