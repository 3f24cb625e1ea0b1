//===- PostAdjusted.cpp - Groups put together afterwards --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Post-adjusted placement, which Jeon et al. (SoCC 2020) compare their
/// co-adjusted one with: operators are placed as if there were no groups, then
/// all of a group goes where one of its operators is.
///
//===----------------------------------------------------------------------===//

#include "Placers/Baselines.h"
#include "Placers/Placers.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// The same with every node a unit of its own; it goes where its unit may.
Model apart(const Model &model) {
  Model result = model;
  result.numUnits = model.numNodes;
  std::iota(result.unit.begin(), result.unit.end(), 0);
  result.allowed.clear();
  for (int32_t i = 0; i < model.numNodes; ++i)
    for (int32_t d = 0; d < model.numDevices; ++d)
      result.allowed.push_back(model.mayUse(model.unit[i], d));
  result.finish();
  return result;
}

int64_t bytesOf(const Model &model, int32_t node) {
  int64_t bytes = model.resident[node] + model.scratch[node];
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    bytes += model.memory[t];
  return bytes;
}

/// A device for every group of the grouped model.
class Adjustment {
public:
  Adjustment(const PlacerContext &context, const Assignment &device)
      : model(context.model), grouped(context.grouped), device(device) {
    for (Unit u : model.unit)
      group.push_back(context.coarsening.unit[u]);
  }

  /// Where the operator with the most of \p weight is, the first of several.
  template <typename Weight> Assignment byHeaviest(Weight weight) const {
    std::vector<int64_t> most(grouped.numUnits, -1);
    std::vector<int32_t> home(grouped.numUnits, -1);
    for (int32_t i = 0; i < model.numNodes; ++i) {
      Unit g = group[i];
      if (int64_t w = weight(i); grouped.mayUse(g, device[i]) && w > most[g]) {
        most[g] = w;
        home[g] = device[i];
      }
    }
    return placed(home);
  }

  /// Where most operators are, the first device of several.
  Assignment byCount() const {
    std::vector<int32_t> count(
        static_cast<size_t>(grouped.numUnits) * grouped.numDevices, 0);
    auto at = [&](Unit g, int32_t d) -> int32_t & {
      return count[static_cast<size_t>(g) * grouped.numDevices + d];
    };
    for (int32_t i = 0; i < model.numNodes; ++i)
      ++at(group[i], device[i]);
    std::vector<int32_t> home(grouped.numUnits, -1);
    for (Unit g = 0; g < grouped.numUnits; ++g)
      for (int32_t d = 0; d < grouped.numDevices; ++d)
        if (grouped.mayUse(g, d) && at(g, d) > 0 &&
            (home[g] < 0 || at(g, d) > at(g, home[g])))
          home[g] = d;
    return placed(home);
  }

private:
  /// Groups none of whose operators is where all of it may be take the first
  /// device that will do.
  Assignment placed(std::vector<int32_t> home) const {
    for (Unit g = 0; g < grouped.numUnits; ++g)
      for (int32_t d = 0; home[g] < 0; ++d)
        if (grouped.mayUse(g, d))
          home[g] = d;
    Assignment result(model.numNodes);
    for (int32_t i = 0; i < model.numNodes; ++i)
      result[i] = home[group[i]];
    return result;
  }

  const Model &model, &grouped;
  const Assignment &device;
  std::vector<Unit> group; ///< per node
};

} // namespace

Proposals
baechi::placement::placers::proposePostAdjusted(const PlacerContext &context) {
  const Model &model = context.model;
  EarliestStart found = earliestStart(apart(model));
  Adjustment adjustment(context, found.device);
  // The starts are of another assignment, but an order all the same.
  Proposals result;
  auto propose = [&](const char *variant, Assignment device) {
    result.list.push_back({variant, std::move(device), found.start});
  };
  propose("work",
          adjustment.byHeaviest([&](int32_t i) { return model.meanTime(i); }));
  propose("memory",
          adjustment.byHeaviest([&](int32_t i) { return bytesOf(model, i); }));
  propose("count", adjustment.byCount());
  return result;
}
