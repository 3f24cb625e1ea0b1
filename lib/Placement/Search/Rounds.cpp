//===- Rounds.cpp - How much every round of a search may do ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Rounds.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::search;

Rounds::Rounds(const PlaceOptions &options, int64_t automatic)
    : options(options), limit(std::numeric_limits<int64_t>::max()),
      begin(std::chrono::steady_clock::now()) {
  if (options.budget.kind == Budget::Kind::Evaluations)
    limit = options.budget.evaluations;
  if (options.budget.kind != Budget::Kind::Automatic)
    return;
  // The nearest number of whole rounds, and one at least.
  constexpr double halfWay = 1.41;
  limit = first;
  while (static_cast<double>(automatic) > halfWay * static_cast<double>(limit))
    limit *= 2;
}

bool Rounds::isOver() const {
  if (options.cancelled && options.cancelled())
    return true;
  return options.budget.kind == Budget::Kind::Seconds &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
                 .count() >= options.budget.seconds;
}

bool Rounds::next(Round &round, int64_t patience) {
  constexpr int64_t most = int64_t(1) << 50;
  int64_t size = count == 0 ? first : std::min(total, most);
  int64_t may = limit;
  if (options.budget.kind == Budget::Kind::Automatic)
    may *= patience;
  if (size > may - total || isOver())
    return false;
  round.index = count++;
  round.evaluations = size;
  round.total = total = std::min(total + size, most);
  round.limit = options.budget.kind == Budget::Kind::Automatic ? limit : 0;
  round.isLast = round.limit > 0 && total >= limit;
  round.seed = options.seed + static_cast<uint64_t>(round.index);
  round.expired = [this] { return isOver(); };
  return true;
}
