//===- Search.h - Improvement of an assignment ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Local search on a lightly merged model. Problems with few assignments are
/// searched exhaustively.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_SEARCH_H
#define BAECHI_LIB_PLACEMENT_SEARCH_SEARCH_H

#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Grouping/Coarsen.h"
#include "Schedule/Schedule.h"
#include "Search/Levels.h"

#include <optional>

namespace baechi::placement::search {

struct SearchOptions {
  Objective objective = Objective::Makespan;
  /// Not `None`.
  Budget budget;
  /// Of the objective: nothing better can be found, the search ends there.
  int64_t lowerBound = 0;
  uint64_t seed = 1;
  /// Groups of units that are worth a device of their own: a group a unit of
  /// the model, for every grouping that is known.
  std::vector<std::vector<Unit>> groupings = {};
  /// Of several rounds: what finds the same in each is left to the first.
  bool isFirst = true;
  /// Ends the search where it says true; none: never.
  std::function<bool()> cancelled = {};
};

struct Found {
  Assignment device;
  /// The start of every node in each of the search's own schedules, in ns or
  /// as a rank; none when the objective has none.
  std::vector<std::vector<int64_t>> starts;
  /// What the search took it for, where it is not worth more than the start of
  /// another search.
  std::optional<int64_t> value = {};
};

struct SearchResult {
  /// The best few, best first.
  std::vector<Found> best;
  int64_t evaluations = 0;
  /// Every assignment was looked at.
  bool allTried = false;
};

/// A model, and orders of its nodes that hold few bytes (Memory/Orders.h),
/// which take as long as many evaluations; none where all bytes of the model
/// fit each device.
struct SearchModel {
  Model model;
  std::vector<std::vector<int32_t>> leanOrders;

  SearchModel() = default;
  /// \p known: the orders of a model that is the same but for its devices and
  /// links; null: to be found.
  explicit SearchModel(Model of,
                       const std::vector<std::vector<int32_t>> *known);
};

/// What the searches of a model work on, in all their rounds.
struct SearchModels {
  /// \p alike: those of the same graph on another machine, whose devices are
  /// all of the same kind; may be null.
  explicit SearchModels(const Model &model,
                        const SearchModels *alike = nullptr);
  SearchModels(const SearchModels &) = delete; ///< `units` knows where it is

  grouping::Coarsening joining, merging;
  SearchModel joined; ///< without what is never worth being apart
  SearchModel merged; ///< fewer nodes still, which allow more evaluations
  // Of the merged model.
  std::optional<UnitTable> units;
  Traffic traffic;
};

/// \p starts are assignments of \p model to begin with besides its own.
SearchResult search(const Model &model, const SearchModels &models,
                    const std::vector<Assignment> &starts,
                    const SearchOptions &options);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_SEARCH_H
