//===- FastestSplits.cpp - Splits as starts for the makespan ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Splits.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::placers;

/// Whether some device is too small for all bytes of the graph at once.
static bool memoryMatters(const Model &model) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    bytes += model.resident[i] + model.scratch[i];
  for (int32_t t = 0; t < model.numTensors; ++t)
    bytes += model.memory[t];
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (bytes > model.deviceMemory(d))
      return true;
  return false;
}

std::vector<Assignment>
baechi::placement::placers::fastestSplits(const Model &model,
                                          Scheduler &scheduler, size_t count) {
  // Orders and schedules so that all takes well below a second.
  int64_t nodes = std::max(model.numNodes, 1);
  SplitOptions options;
  options.orders =
      static_cast<int32_t>(std::clamp<int64_t>(30'000 / nodes, 1, 8));
  options.fewerDevices = true;
  auto mostRuns =
      static_cast<size_t>(std::clamp<int64_t>(400'000 / nodes, 4, 300));
  std::vector<std::vector<Assignment>> lists;
  for (double share : {0.0, 0.5}) {
    if (share > 0 && !memoryMatters(model))
      break;
    options.passingShare = share;
    for (SplitGoal goal : {SplitGoal::Total, SplitGoal::MaxLoad}) {
      options.goal = goal;
      lists.push_back(contiguousSplits(model, options));
    }
  }
  struct Timed {
    int64_t makespan;
    Assignment device;
  };
  std::vector<Timed> best;
  size_t runs = 0;
  for (size_t k = 0; runs < mostRuns; ++k) {
    bool any = false;
    for (std::vector<Assignment> &list : lists) {
      if (k >= list.size())
        continue;
      any = true;
      ++runs;
      Scheduler::Options run;
      if (best.size() == count)
        run.cutoff = best.back().makespan - 1;
      int64_t makespan = scheduler.run(list[k], run);
      if (makespan == never)
        continue;
      // The same pieces often come again.
      if (std::any_of(best.begin(), best.end(), [&](const Timed &other) {
            return other.device == list[k];
          }))
        continue;
      auto at = std::upper_bound(best.begin(), best.end(), makespan,
                                 [](int64_t value, const Timed &other) {
                                   return value < other.makespan;
                                 });
      best.insert(at, {makespan, std::move(list[k])});
      if (best.size() > count)
        best.pop_back();
    }
    if (!any)
      break;
  }
  std::vector<Assignment> splits;
  for (Timed &timed : best)
    splits.push_back(std::move(timed.device));
  return splits;
}
