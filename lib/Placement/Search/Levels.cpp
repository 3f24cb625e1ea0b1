//===- Levels.cpp - Clusterings that moves are made of ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Levels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::search;

UnitTable::UnitTable(const Model &model)
    : of(model), byTime(model.numUnits), workOf(model.numUnits, 0),
      cumulated(model.numUnits), near(model.numUnits) {
  std::vector<int64_t> head(model.numNodes, 0);
  std::vector<int64_t> begin(model.numUnits,
                             std::numeric_limits<int64_t>::max());
  for (int32_t i : model.order) {
    int64_t time = model.meanTime(i);
    model.forEachUser(i, [&](int32_t user) {
      head[user] = std::max(head[user], head[i] + time);
    });
    Unit u = model.unit[i];
    begin[u] = std::min(begin[u], head[i]);
    workOf[u] += static_cast<double>(time);
  }
  std::iota(byTime.begin(), byTime.end(), 0);
  std::sort(byTime.begin(), byTime.end(), [&](Unit a, Unit b) {
    return std::tie(begin[a], a) < std::tie(begin[b], b);
  });
  total = std::accumulate(workOf.begin(), workOf.end(), 0.0);
  double sum = 0;
  for (Unit u = 0; u < model.numUnits; ++u)
    cumulated[u] = sum += workOf[u] + 0.2 * total / model.numUnits + 1;
  constexpr size_t manyNeighbours = 40;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    Unit a = model.unit[model.producer[t]];
    for (int32_t user : model.users[t]) {
      Unit b = model.unit[user];
      if (a == b)
        continue;
      if (near[a].size() < manyNeighbours)
        near[a].push_back(b);
      if (near[b].size() < manyNeighbours)
        near[b].push_back(a);
    }
  }
}

Level UnitTable::makeLevel(const std::vector<int32_t> &clusterOf,
                           int32_t count) const {
  Level level{clusterOf, {}};
  level.members.begin.assign(count + 1, 0);
  for (int32_t c : clusterOf)
    ++level.members.begin[c + 1];
  std::partial_sum(level.members.begin.begin(), level.members.begin.end(),
                   level.members.begin.begin());
  std::vector<int32_t> fill = level.members.begin;
  level.members.items.resize(clusterOf.size());
  for (Unit u : byTime)
    level.members.items[fill[clusterOf[u]]++] = u;
  return level;
}

Unit UnitTable::pickByWork(Random &random) const {
  auto it = std::lower_bound(cumulated.begin(), cumulated.end(),
                             random.real() * cumulated.back());
  return static_cast<Unit>(std::min<ptrdiff_t>(
      it - cumulated.begin(), static_cast<ptrdiff_t>(cumulated.size()) - 1));
}
