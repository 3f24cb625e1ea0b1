//===- Grouping.cpp - Co-placement ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Grouping.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::grouping;

MergeLimits MergeLimits::ofShares(const Model &model, double workShare,
                                  double memoryShare) {
  int64_t total = 0, smallest = model.deviceMemory(0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    total += model.meanTime(i);
  for (int32_t d = 1; d < model.numDevices; ++d)
    smallest = std::min(smallest, model.deviceMemory(d));
  return {static_cast<int64_t>(static_cast<double>(total) * workShare),
          static_cast<int64_t>(static_cast<double>(smallest) * memoryShare)};
}

UnitMerger::UnitMerger(const Model &model, MergeLimits limits)
    : numDevices(model.numDevices), sets(model.numUnits),
      work(model.numUnits, 0), resident(model.unitResident),
      allowed(model.allowed), limits(limits) {
  for (int32_t i = 0; i < model.numNodes; ++i)
    work[model.unit[i]] += model.meanTime(i);
}

bool UnitMerger::join(Unit a, Unit b, bool mayNarrow) {
  a = sets.find(a);
  b = sets.find(b);
  if (a == b)
    return true;
  // What weighs nothing may always join.
  if ((work[a] > 0 && work[b] > 0 && work[a] + work[b] > limits.work) ||
      (resident[a] > 0 && resident[b] > 0 &&
       resident[a] + resident[b] > limits.resident))
    return false;
  auto row = [&](Unit u) {
    return allowed.begin() + static_cast<ptrdiff_t>(u) * numDevices;
  };
  bool possible = false, narrows = false;
  for (int32_t d = 0; d < numDevices; ++d) {
    possible |= row(a)[d] && row(b)[d];
    narrows |= row(a)[d] != row(b)[d];
  }
  if (!possible || (narrows && !mayNarrow))
    return false;
  Unit joined = sets.join(a, b), other = joined == a ? b : a;
  work[joined] += work[other];
  resident[joined] += resident[other];
  for (int32_t d = 0; d < numDevices; ++d)
    row(joined)[d] = row(joined)[d] && row(other)[d];
  return true;
}

void baechi::placement::grouping::joinFreely(const Model &model, double share,
                                             Coarsening &coarsening) {
  // Only short operators join, so the bounds of the merger bind rarely.
  constexpr double workShare = 0.1, memoryShare = 0.25;
  UnitMerger merger(model, workShare, memoryShare);
  int64_t total = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    total += model.meanTime(i);
  auto tiny = static_cast<int64_t>(static_cast<double>(total) * share);
  auto isTiny = [&](int32_t i) { return merger.workOf(model.unit[i]) <= tiny; };
  auto inward = [&](int32_t i) {
    int64_t sum = 0;
    for (int32_t t : model.operands[i])
      sum += model.meanTransfer(t);
    return sum;
  };
  auto outward = [&](int32_t i) {
    int64_t sum = 0;
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      if (!model.users[t].empty())
        sum += model.meanTransfer(t);
    return sum;
  };
  // The other end when there is only one, else -1.
  struct Only {
    int32_t node = -1;
    bool several = false;
    void operator()(int32_t other) {
      several |= node >= 0 && node != other;
      node = other;
    }
    int32_t get() const { return several ? -1 : node; }
  };
  for (int32_t i : model.order) {
    if (!isTiny(i))
      continue;
    Only source, user;
    model.forEachSource(i, [&](int32_t s) { source(s); });
    model.forEachUser(i, [&](int32_t u) { user(u); });
    int64_t in = inward(i), out = outward(i);
    if (source.get() >= 0 && out <= in)
      merger.join(model.unit[i], model.unit[source.get()]);
    else if (user.get() >= 0 && in <= out)
      merger.join(model.unit[i], model.unit[user.get()]);
  }
  coarsening.unit = merger.number(coarsening.numUnits);
}
