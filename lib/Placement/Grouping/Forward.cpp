//===- Forward.cpp - Backward operators follow their forward ones -*- C++ -*-=//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Forward.h"
#include "Grouping/Grouping.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

namespace {

/// A group of several forward operators, tied by what their backward operators
/// share, must leave work for the other devices.
MergeLimits limitsOf(const Model &model) {
  MergeLimits limits =
      MergeLimits::ofShares(model, std::min(0.5, 1.2 / model.numDevices), 1);
  if (model.numDevices == 1)
    limits.work = std::numeric_limits<int64_t>::max();
  for (int32_t d = 0; d < model.numDevices; ++d)
    limits.resident = std::max(limits.resident, model.deviceMemory(d));
  return limits;
}

} // namespace

int32_t baechi::placement::grouping::followForward(const Problem &problem,
                                                   const Model &model,
                                                   Coarsening &coarsening) {
  const auto &ops = problem.graph.ops;
  // The model of the units so far: nodes stay as they are.
  Coarsening units = coarsening;
  units.numNodes = model.numNodes;
  std::iota(units.node.begin(), units.node.end(), 0);
  Model current = coarsen(model, units);
  UnitMerger merger(current, limitsOf(current));
  int32_t apart = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (ops[i].forward)
      apart += !merger.join(current.unit[i], current.unit[*ops[i].forward],
                            /*mayNarrow=*/true);
  int32_t count;
  std::vector<Unit> joined = merger.number(count);
  for (Unit &u : coarsening.unit)
    u = joined[u];
  coarsening.numUnits = count;
  return apart;
}
