//===- Dual.cpp - Prices for bytes, and a bound -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Dual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

constexpr double leastScale = 1e-3;
/// Steps in a row without a better bound until the scale falls, and by how
/// much.
constexpr int32_t patience = 10;
constexpr double decay = 0.7;
/// What the labels of the last step count in the direction.
constexpr double freshness = 0.3;
/// A bound so much below the best one, in its size, tells that the step was far
/// too long.
constexpr double collapse = 0.3;

} // namespace

Dual::Dual(const Core &core)
    : core(core), messages(core), prices(core.capacity.size(), 0),
      bestPrices(prices), direction(prices), pricedCosts(core.costs),
      chosen(core.size(), 0), best(-std::numeric_limits<double>::infinity()),
      latest(best) {
  for (const std::vector<Member> &members : core.members)
    for (const Member &member : members)
      memberEntries += member.usage.size() + 10;
  memberEntries += 4 * prices.size();
}

double Dual::pass() {
  messages.pass(pricedCosts, nullptr);
  latest = messages.pass(pricedCosts, &chosen) -
           std::inner_product(prices.begin(), prices.end(),
                              core.capacity.begin(), 0.0);
  return latest;
}

void Dual::step(double target) {
  double before = best;
  pass();
  if (latest > best) {
    best = latest;
    bestPrices = prices;
  }
  if (latest > before + 1e-4 * std::abs(before))
    failures = 0;
  else if (latest <= before && ++failures >= patience) {
    scale = std::max(leastScale, scale * decay);
    failures = 0;
  }
  if (prices.empty())
    return;
  if (latest < best - collapse * std::abs(best)) {
    prices = bestPrices;
    std::fill(direction.begin(), direction.end(), 0);
    scale = std::max(leastScale, scale / 2);
  } else {
    move(target);
  }
  core.price(prices, pricedCosts);
}

void Dual::move(double target) {
  std::vector<double> usage = core.usage(chosen);
  double norm = 0;
  for (size_t t = 0; t < prices.size(); ++t) {
    double excess = usage[t] - core.capacity[t];
    direction[t] = (1 - freshness) * direction[t] + freshness * excess;
    if (prices[t] > 0 || direction[t] > 0)
      norm += direction[t] * direction[t];
  }
  if (norm <= 0)
    return;
  double length = scale * std::max(target - best, 1e-3 * target) / norm;
  for (size_t t = 0; t < prices.size(); ++t)
    prices[t] = std::max(0.0, prices[t] + length * direction[t]);
}
