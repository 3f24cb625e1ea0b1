//===- Bounds.cpp - Certificates --------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/Bounds.h"
#include "Bounds/LoadBound.h"

#include <algorithm>
#include <map>

using namespace baechi::placement;

namespace {

void raise(Bound &bound, int64_t value, const char *name) {
  if (value > bound.value)
    bound = {value, name};
}

class Bounds {
public:
  explicit Bounds(const Model &model);
  Bound loads() const;
  Bound steps() const;

private:
  /// Work that any set of devices must share: for every set that is all some
  /// operator may use, the operators that are confined to it.
  int64_t sharedWork(const std::vector<uint8_t> *subset) const;
  int64_t side(int32_t node, bool before) const;

  const Model &model;
  std::vector<int64_t> time; ///< the shortest
  std::vector<int64_t> head; ///< longest path up to a node, without it
  std::vector<int64_t> tail; ///< longest path from a node, without it
  std::vector<std::vector<uint8_t>> sets; ///< allowed devices, distinct
  std::vector<int32_t> setOf;             ///< per unit
};

Bounds::Bounds(const Model &model)
    : model(model), time(model.numNodes), head(model.numNodes, 0),
      tail(model.numNodes, 0), setOf(model.numUnits) {
  std::map<std::vector<uint8_t>, int32_t> index;
  for (Unit u = 0; u < model.numUnits; ++u) {
    auto row =
        model.allowed.begin() + static_cast<ptrdiff_t>(u) * model.numDevices;
    std::vector<uint8_t> set(row, row + model.numDevices);
    auto [it, isNew] =
        index.try_emplace(set, static_cast<int32_t>(sets.size()));
    if (isNew)
      sets.push_back(std::move(set));
    setOf[u] = it->second;
  }
  for (int32_t i : model.order) {
    time[i] = model.minTime(i);
    model.forEachUser(i, [&](int32_t user) {
      head[user] = std::max(head[user], head[i] + time[i]);
    });
  }
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k];
    model.forEachUser(i, [&](int32_t user) {
      tail[i] = std::max(tail[i], tail[user] + time[user]);
    });
  }
}

int64_t Bounds::sharedWork(const std::vector<uint8_t> *subset) const {
  std::vector<int64_t> work(sets.size(), 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (!subset || (*subset)[i])
      work[setOf[model.unit[i]]] += time[i];
  auto confined = [](const std::vector<uint8_t> &inner,
                     const std::vector<uint8_t> &outer) {
    for (size_t d = 0; d < inner.size(); ++d)
      if (inner[d] && !outer[d])
        return false;
    return true;
  };
  int64_t best = 0, all = 0;
  for (int64_t ns : work)
    all += ns;
  best = (all + model.numDevices - 1) / model.numDevices;
  // Quadratic in the distinct sets; these are few, or pins.
  constexpr size_t manySets = 256;
  for (size_t a = 0; a < sets.size() && sets.size() <= manySets; ++a) {
    int64_t sum = 0;
    for (size_t b = 0; b < sets.size(); ++b)
      if (confined(sets[b], sets[a]))
        sum += work[b];
    auto count = std::count(sets[a].begin(), sets[a].end(), 1);
    if (count)
      best = std::max(best, (sum + count - 1) / count);
  }
  return best;
}

/// The best bound of what must run before (or after) a node.
int64_t Bounds::side(int32_t node, bool before) const {
  std::vector<uint8_t> member(model.numNodes, 0);
  std::vector<int32_t> stack{node};
  auto visit = [&](int32_t next) {
    if (!member[next]) {
      member[next] = 1;
      stack.push_back(next);
    }
  };
  while (!stack.empty()) {
    int32_t at = stack.back();
    stack.pop_back();
    if (before)
      model.forEachSource(at, visit);
    else
      model.forEachUser(at, visit);
  }
  return std::max(sharedWork(&member), before ? head[node] : tail[node]);
}

Bound Bounds::loads() const {
  Bound bound;
  raise(bound, sharedWork(nullptr), "work over devices");
  raise(bound, workBySpeed(model), "work over devices by speed");
  for (Unit u = 0; u < model.numUnits; ++u) {
    int64_t best = -1;
    for (int32_t d = 0; d < model.numDevices; ++d) {
      if (!model.mayUse(u, d))
        continue;
      int64_t sum = 0;
      for (int32_t i : model.members[u])
        sum += model.timeOf(i, d);
      best = best < 0 ? sum : std::min(best, sum);
    }
    raise(bound, best, "largest group");
  }
  return bound;
}

Bound Bounds::steps() const {
  Bound bound = loads();
  std::vector<int32_t> critical;
  int64_t longest = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    longest = std::max(longest, head[i] + time[i] + tail[i]);
  raise(bound, longest, "critical path");
  for (int32_t i : model.order)
    if (head[i] + time[i] + tail[i] == longest)
      critical.push_back(i);
  constexpr size_t samples = 48;
  for (size_t k = 0; k < std::min(samples, critical.size()); ++k) {
    int32_t i =
        critical[k * critical.size() / std::min(samples, critical.size())];
    raise(bound, side(i, /*before=*/true) + time[i] + side(i, /*before=*/false),
          "work before and after a critical operator");
  }
  return bound;
}

} // namespace

Bound baechi::placement::makespanBound(const Model &model) {
  return Bounds(model).steps();
}

Bound baechi::placement::maxLoadBound(const Model &model) {
  return raiseMaxLoadBound(model, Bounds(model).loads());
}
