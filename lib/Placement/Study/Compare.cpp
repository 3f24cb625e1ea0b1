//===- Compare.cpp - All placers on one problem -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Compare.h"
#include "Baechi/Placement/Model/Text.h"
#include "Placers/Registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

using namespace baechi::placement;

namespace {

int64_t valueOf(Objective objective, const ComparisonRow &row) {
  return objective == Objective::MaxLoad ? row.maxLoadNs : row.makespanNs;
}

/// The device that is closest to its limit.
void findFullest(const Problem &problem, const PlaceResult &result,
                 ComparisonRow &row) {
  for (size_t d = 0; d < result.usage.size(); ++d) {
    int64_t peak = result.usage[d].peakBytes;
    int64_t memory = problem.machine.devices[d].memory;
    if (memory == 0)
      continue;
    double share = static_cast<double>(peak) / static_cast<double>(memory);
    if (row.fullest >= 0 && share <= row.peakShare)
      continue;
    row.fullest = static_cast<int32_t>(d);
    row.peakBytes = peak;
    row.peakShare = share;
  }
}

/// One call of `place`, timed.
PlaceResult run(const Problem &problem, const PlaceOptions &options,
                ComparisonRow &row) {
  auto begin = std::chrono::steady_clock::now();
  PlaceResult result = place(problem, options);
  row.valid = result.placement && verify(problem, *result.placement).empty();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  row.seconds = seconds.count();
  row.problem = result.error;
  row.notes = result.notes;
  if (result.placement) {
    row.makespanNs = result.placement->makespanNs;
    row.maxLoadNs = result.maxLoadNs;
    row.winner = result.winner;
    findFullest(problem, result, row);
  } else if (!result.candidates.empty()) {
    row.makespanNs = result.candidates.front().makespanNs;
    row.maxLoadNs = result.candidates.front().maxLoadNs;
  }
  return result;
}

} // namespace

Comparison baechi::placement::compare(const Problem &problem,
                                      const PlaceOptions &options,
                                      std::span<const std::string> placers) {
  Comparison comparison;
  comparison.objective = options.objective;
  if (auto errors = check(problem); !errors.empty()) {
    comparison.error = fmt::format("{}", fmt::join(errors, "\n"));
    return comparison;
  }
  if (options.objective == Objective::Period) {
    comparison.error = "placers are compared by makespan or max-load, not by "
                       "the period of steps that overlap";
    return comparison;
  }
  std::vector<std::string> names(placers.begin(), placers.end());
  if (names.empty()) {
    names = placerNames();
    names.emplace_back(wholeAnswer);
  }
  for (const std::string &name : names)
    if (name != wholeAnswer && !placers::placerNamed(name)) {
      comparison.error =
          fmt::format("unknown placer '{}'{}: the placers are {}, and {}", name,
                      suggestion(name, placerNames()),
                      fmt::join(placerNames(), ", "), wholeAnswer);
      return comparison;
    }

  // Where nobody asked for others each placer has the steps that it has alone.
  bool isUsual = options.grouping == usualGrouping(problem.graph, options);
  auto optionsFor = [&](const std::string &name) {
    PlaceOptions own = options;
    if (name != wholeAnswer) {
      own.placer = name;
      own.budget = Budget::none();
      if (isUsual)
        own.grouping = usualGrouping(problem.graph, own);
    }
    if (options.progress)
      own.progress = [&options, name](const std::string &phase) {
        options.progress(name + ": " + phase);
      };
    return own;
  };
  for (const std::string &name : names) {
    ComparisonRow &row = comparison.rows.emplace_back();
    row.name = name;
    row.description = "the placer that is asked for, all candidates, search";
    if (options.cancelled && options.cancelled()) {
      comparison.rows.clear();
      comparison.error = cancelledError;
      return comparison;
    }
    if (const placers::Placer *placer = placers::placerNamed(name)) {
      row.description = placer->description;
      row.baseline = placer->baseline;
    }
    PlaceResult result = run(problem, optionsFor(name), row);
    if (result.lowerBoundNs > comparison.lowerBoundNs ||
        comparison.lowerBoundName.empty()) {
      comparison.lowerBoundNs = result.lowerBoundNs;
      comparison.lowerBoundName = result.lowerBoundName;
    }
    if (result.singleDeviceNs)
      comparison.singleDeviceNs = result.singleDeviceNs;
  }
  if (!comparison.singleDeviceNs &&
      std::find(names.begin(), names.end(), "single") == names.end()) {
    ComparisonRow unused;
    comparison.singleDeviceNs =
        run(problem, optionsFor("single"), unused).singleDeviceNs;
  }
  for (ComparisonRow &row : comparison.rows) {
    if (!row.valid)
      continue;
    auto value = static_cast<double>(
        std::max<int64_t>(valueOf(comparison.objective, row), 1));
    if (comparison.singleDeviceNs)
      row.speedUp = static_cast<double>(*comparison.singleDeviceNs) / value;
    if (comparison.lowerBoundNs > 0)
      row.gap = value / static_cast<double>(comparison.lowerBoundNs) - 1;
    auto index = static_cast<int32_t>(&row - comparison.rows.data());
    if (comparison.best < 0 ||
        valueOf(comparison.objective, row) <
            valueOf(comparison.objective, comparison.rows[comparison.best]))
      comparison.best = index;
  }
  return comparison;
}
