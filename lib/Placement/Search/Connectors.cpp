//===- Connectors.cpp - Units between clusters ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Connectors.h"

#include <algorithm>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::search;

std::vector<Connector> baechi::placement::search::findConnectors(
    const UnitTable &units, const Traffic &traffic, const Level &level) {
  constexpr double smallShare = 0.01;
  constexpr size_t most = 32, manyAround = 5;
  int32_t count = units.model().numUnits;
  std::vector<std::vector<int32_t>> around(count);
  std::vector<double> longest(count, 0), all(count, 0);
  for (const Traffic::Row &row : traffic.rows())
    for (int32_t target : traffic.targets(row)) {
      int32_t a = level.clusterOf[row.from], b = level.clusterOf[target];
      for (auto [unit, other] : {std::pair(row.from, b), {target, a}}) {
        longest[unit] = std::max(longest[unit], row.ns);
        if (a == b)
          continue;
        all[unit] += row.ns;
        auto &clusters = around[unit];
        if (clusters.size() <= manyAround &&
            std::find(clusters.begin(), clusters.end(), other) ==
                clusters.end())
          clusters.push_back(other);
      }
    }
  struct Found {
    Connector connector;
    double work = 0, traffic = 0;
  };
  std::map<std::vector<int32_t>, Found> byClusters;
  for (Unit u = 0; u < count; ++u) {
    auto &clusters = around[u];
    if (clusters.empty() || clusters.size() > manyAround ||
        units.work(u) >= longest[u])
      continue;
    std::sort(clusters.begin(), clusters.end());
    clusters.insert(clusters.begin(), level.clusterOf[u]);
    Found &found = byClusters[clusters];
    found.connector.units.push_back(u);
    found.work += units.work(u);
    found.traffic += all[u];
  }
  std::vector<Found> sorted;
  for (auto &[clusters, found] : byClusters) {
    if (found.work > smallShare * units.allWork())
      continue;
    found.connector.around = clusters;
    sorted.push_back(std::move(found));
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const Found &a, const Found &b) { return a.traffic > b.traffic; });
  sorted.resize(std::min(sorted.size(), most));
  std::vector<Connector> result;
  for (Found &found : sorted)
    result.push_back(std::move(found.connector));
  return result;
}
