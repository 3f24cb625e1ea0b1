//===- Exhaustive.cpp - All assignments of a small problem ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Exhaustive.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

std::optional<int64_t>
baechi::placement::search::fewAssignments(const Model &model) {
  constexpr int64_t few = 4096;
  int64_t count = 1;
  for (Unit u = 0; u < model.numUnits && count <= few; ++u) {
    int32_t devices = 0;
    for (int32_t d = 0; d < model.numDevices; ++d)
      devices += model.mayUse(u, d);
    count *= devices;
  }
  return count <= few ? std::optional(count) : std::nullopt;
}

/// Assignments are numbers whose digits are the units' devices.
std::vector<Solution>
baechi::placement::search::tryAll(MeteredEvaluator &evaluator, size_t count) {
  const Model &model = evaluator.model();
  auto next = [&](Unit u, int32_t d) {
    while (d < model.numDevices && !model.mayUse(u, d))
      ++d;
    return d;
  };
  Solution solution;
  solution.device.resize(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    solution.device[u] = next(u, 0);
  std::vector<Solution> best;
  for (Unit carry = 0; carry < model.numUnits && evaluator.spent() < 1;) {
    int64_t worst = best.size() < count ? never : best.back().value - 1;
    solution.value = evaluator.value(solution, worst);
    if (solution.value != never && solution.value <= worst) {
      auto at = std::upper_bound(best.begin(), best.end(), solution,
                                 [](const Solution &a, const Solution &b) {
                                   return a.value < b.value;
                                 });
      best.insert(at, solution);
      if (best.size() > count)
        best.pop_back();
    }
    for (carry = 0; carry < model.numUnits; ++carry) {
      solution.device[carry] = next(carry, solution.device[carry] + 1);
      if (solution.device[carry] < model.numDevices)
        break;
      solution.device[carry] = next(carry, 0);
    }
  }
  return best;
}
