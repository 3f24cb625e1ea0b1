//===- VariedStarts.cpp - m-ETF under varied urgencies ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/VariedStarts.h"
#include "Model/Random.h"
#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

namespace {

/// A factor per node.
using Keys = std::vector<double>;

int64_t makespanOf(const Model &model, const placers::EarliestStart &found) {
  int64_t makespan = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    makespan =
        std::max(makespan, found.start[i] + model.timeOf(i, found.device[i]));
  return makespan;
}

Keys randomKeys(const Model &model, Random &random) {
  Keys keys(model.numNodes);
  for (double &key : keys)
    key = random.real();
  return keys;
}

/// New keys for a few nodes.
void mutate(Keys &keys, Random &random) {
  auto count = static_cast<int64_t>(keys.size());
  for (int64_t left = 1 + random.below(1 + count / 20); left > 0; --left) {
    int32_t node = random.below(count);
    keys[node] = random.real();
  }
}

} // namespace

/// About a tenth of a second; small graphs need fewer. 0: too few to be of use.
static int64_t runsOf(const Model &model) {
  constexpr int64_t visits = 1'000'000, mostRuns = 2000, each = 200,
                    fewestRuns = 40;
  int64_t affordable =
      visits / (static_cast<int64_t>(model.numNodes + 1) * model.numDevices);
  return affordable < fewestRuns || model.numDevices < 2
             ? 0
             : std::min({affordable, mostRuns, each * model.numUnits});
}

int64_t baechi::placement::search::variedEvaluations(const Model &model) {
  // A run takes as long as some evaluations.
  constexpr int64_t each = 10;
  return each * runsOf(model);
}

std::vector<placers::EarliestStart>
baechi::placement::search::variedStarts(const Model &model, size_t count,
                                        uint64_t seed) {
  int64_t runs = runsOf(model);
  if (runs == 0)
    return {};
  struct Varied {
    int64_t makespan;
    placers::EarliestStart found;
  };
  std::vector<Varied> best;
  Random random(seed);
  Keys keys;
  int64_t least = never;
  for (int64_t k = 0; k < runs; ++k) {
    // The first third looks around.
    Keys trial = k < runs / 3 ? randomKeys(model, random) : keys;
    if (k >= runs / 3)
      mutate(trial, random);
    placers::EarliestStart found =
        placers::earliestStart(model, {}, true, trial);
    int64_t makespan = makespanOf(model, found);
    if (makespan <= least) {
      least = makespan;
      keys = std::move(trial);
    }
    auto at = std::lower_bound(best.begin(), best.end(), makespan,
                               [](const Varied &other, int64_t value) {
                                 return other.makespan < value;
                               });
    if (at != best.end() && at->makespan == makespan)
      continue;
    best.insert(at, {makespan, std::move(found)});
    if (best.size() > count)
      best.pop_back();
  }
  std::vector<placers::EarliestStart> starts;
  for (Varied &varied : best)
    starts.push_back(std::move(varied.found));
  return starts;
}
