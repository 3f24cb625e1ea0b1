//===- Meter.cpp - What is left of a search's budget ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Meter.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

int64_t baechi::placement::search::automaticEvaluations(const Model &merged) {
  // An evaluation looks at every node; small graphs need fewer.
  constexpr int64_t visits = 24'000'000, most = 20'000, each = 200, least = 20;
  // It looks at every device, too, at every step.
  constexpr int32_t fewDevices = 8;
  int64_t rounds = std::max(1, merged.numDevices / fewDevices);
  int64_t limit = visits / (std::max(merged.numNodes, 1) * rounds);
  limit = std::min({limit, most, each * merged.numUnits});
  return std::max(limit, least);
}

Meter::Meter(const Model &merged, const SearchOptions &options)
    : budget(options.budget), cancelled(options.cancelled),
      lowerBound(options.lowerBound),
      automatic(static_cast<double>(automaticEvaluations(merged))),
      begin(std::chrono::steady_clock::now()) {}

bool Meter::affords(double evaluations) const {
  switch (budget.kind) {
  case Budget::Kind::Seconds:
    return true;
  case Budget::Kind::Evaluations:
    return charged + evaluations <= static_cast<double>(budget.evaluations);
  default:
    return charged + evaluations <= automatic;
  }
}

double Meter::spent() const {
  if (isBest || (cancelled && cancelled()))
    return 1;
  switch (budget.kind) {
  case Budget::Kind::Seconds:
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
               .count() /
           budget.seconds;
  case Budget::Kind::Evaluations:
    return charged / static_cast<double>(budget.evaluations);
  default:
    return charged / automatic;
  }
}

double Meter::size() const {
  switch (budget.kind) {
  case Budget::Kind::Seconds:
    return budget.seconds;
  case Budget::Kind::Evaluations:
    return static_cast<double>(budget.evaluations) / automatic;
  default:
    return 1;
  }
}
