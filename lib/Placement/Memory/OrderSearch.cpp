//===- OrderSearch.cpp - Some order that fits, if there is one --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Orders.h"

#include <algorithm>
#include <unordered_set>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// Depth first over the sets of steps that can be done within the memories.
class OrderSearch {
public:
  OrderSearch(const Steps &steps, int64_t stateLimit)
      : steps(steps), stateLimit(stateLimit), before(steps.size(), 0) {
    for (Step s = 0; s < steps.size(); ++s)
      steps.forEachPrevious(s, [&](Step p) { before[s] |= bit(p); });
  }
  bool run() { return extend(0, Levels(steps)); }

  StepOrder order;
  bool complete = true;

private:
  static uint64_t bit(Step s) { return uint64_t(1) << s; }
  bool fits(const Levels &levels, Step s) const {
    int32_t d = steps.deviceOf(s);
    return levels.need(s) <= steps.model.deviceMemory(d) - levels.level[d];
  }
  bool extend(uint64_t done, const Levels &levels);
  bool take(uint64_t done, Levels levels, Step s);

  const Steps &steps;
  int64_t stateLimit;
  std::vector<uint64_t> before; ///< step -> what it waits for
  std::unordered_set<uint64_t> seen;
};

bool OrderSearch::take(uint64_t done, Levels levels, Step s) {
  levels.begin(s);
  levels.end(s);
  order.push_back(s);
  if (extend(done | bit(s), levels))
    return true;
  order.pop_back();
  return false;
}

bool OrderSearch::extend(uint64_t done, const Levels &levels) {
  if (static_cast<Step>(order.size()) == steps.size())
    return true;
  if (static_cast<int64_t>(seen.size()) >= stateLimit) {
    complete = false;
    return false;
  }
  if (!seen.insert(done).second)
    return false;
  std::vector<std::pair<int64_t, Step>> choices;
  for (Step s = 0; s < steps.size(); ++s) {
    if ((done & bit(s)) || (before[s] & ~done) || !fits(levels, s))
      continue;
    int64_t growth = levels.growth(s);
    // What leaves every device with no more than before can come first in any
    // order that fits: nothing else need be tried.
    if (growth <= 0)
      return take(done, levels, s);
    if (!steps.isRun(s))
      growth -= levels.released(s);
    choices.emplace_back(growth, s);
  }
  std::sort(choices.begin(), choices.end());
  return std::any_of(choices.begin(), choices.end(), [&](const auto &choice) {
    return take(done, levels, choice.second);
  });
}

} // namespace

StepOrder baechi::placement::memory::searchOrder(const Steps &steps,
                                                 int64_t stateLimit,
                                                 bool &complete) {
  complete = false;
  if (steps.size() > 64)
    return {};
  auto resident = steps.resident();
  complete = true;
  if (excessOf(steps.model, resident) > 0)
    return {};
  OrderSearch search(steps, stateLimit);
  bool found = search.run();
  complete = found || search.complete;
  return found ? std::move(search.order) : StepOrder();
}
