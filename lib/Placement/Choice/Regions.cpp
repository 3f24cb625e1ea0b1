//===- Regions.cpp - A choice improved part by part -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Regions.h"
#include "Choice/Elimination.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

constexpr double regionEntries = 1e4;

/// What the prices are multiplied with in a region: where there is room left,
/// less than the whole price may be right, and it is the repair that decides.
constexpr std::array<double, 6> factors = {0, 0.5, 0.9, 1, 1.1, 1.5};

} // namespace

Regions::Regions(const Core &core, const Strategies &start, Random &random,
                 WorkMeter &meter)
    : core(core), random(random), meter(meter), state(core, start, meter),
      mixed(core.costs), mark(core.size(), -1) {}

/// A random node and those near it, in a random order of growth.
std::vector<int32_t> Regions::draw(size_t count, int32_t without) {
  ++round;
  int32_t seed = without >= 0 ? without : random.below(core.size());
  std::vector<int32_t> reached = {seed}, region;
  mark[seed] = round;
  while (!reached.empty() && region.size() < count) {
    size_t k = random.below(static_cast<int64_t>(reached.size()));
    int32_t node = reached[k];
    reached[k] = reached.back();
    reached.pop_back();
    if (node != without)
      region.push_back(node);
    for (const Neighbour &beside : core.neighbours[node])
      if (mark[beside.node] != round) {
        mark[beside.node] = round;
        reached.push_back(beside.node);
      }
    meter.charge(core.neighbours[node].size());
  }
  return region;
}

double Regions::improve(const Costs &priced) {
  // The size that has had the least of the time.
  size_t size = std::min_element(spent.begin(), spent.end()) - spent.begin();
  uint64_t before = meter.work();
  meter.charge(core.size() / 2 + 100);
  // In every other region one node is made to take another strategy.
  int32_t forced = -1;
  if (random.oneIn(2))
    forced = random.below(static_cast<int64_t>(core.size()));
  std::vector<int32_t> region = draw(sizes[size], forced);
  double factor = factors[random.below(factors.size())];
  for (int32_t i : region)
    for (size_t s = 0; s < mixed[i].size(); ++s)
      mixed[i][s] =
          core.costs[i][s] + factor * (priced[i][s] - core.costs[i][s]);
  Strategies choice = state.choice();
  if (forced >= 0)
    choice[forced] = random.below(core.strategies(forced));
  if (!region.empty()) {
    Elimination sweep(core, random, regionEntries, region);
    meter.charge(sweep.run(mixed, choice));
  }
  if (forced >= 0)
    region.push_back(forced);
  for (int32_t i : region)
    if (choice[i] != state.choice()[i])
      state.change(i, choice[i]);
  double change = state.costChange();
  // A repair costs something: only what gains before it is worth it.
  bool isBetter =
      change < 0 && state.repair(priced) && (change = state.costChange()) < 0;
  if (isBetter)
    state.commit();
  else
    state.rollBack();
  spent[size] += meter.work() - before;
  return isBetter ? -change : 0;
}
