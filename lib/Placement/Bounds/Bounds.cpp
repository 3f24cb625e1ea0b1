//===- Bounds.cpp - Certificates --------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/Bounds.h"
#include "Bounds/LoadBound.h"
#include "Bounds/Segments.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

namespace {

void raise(Bound &bound, int64_t value, const char *name) {
  if (value > bound.value)
    bound = {value, name};
}

class Bounds {
public:
  explicit Bounds(const Model &model);
  Bound loads() const;
  Bound steps(bool quick) const;

private:
  void findSets();
  int64_t sharedWork(const std::vector<int64_t> &work) const;
  std::vector<int32_t> criticalPath(int64_t length) const;
  std::vector<int64_t> besides(std::span<const int32_t> path,
                               bool before) const;

  const Model &model;
  std::vector<int64_t> time; ///< the shortest
  std::vector<int64_t> head; ///< longest path up to a node, without it
  std::vector<int64_t> tail; ///< longest path from a node, without it
  /// Sets of devices that are all some operator may use, distinct.
  std::vector<std::vector<uint8_t>> sets;
  std::vector<int32_t> setOf;               ///< per unit
  std::vector<std::vector<int32_t>> within; ///< per set: its subsets
  std::vector<int64_t> sizes;               ///< per set: its devices
};

Bounds::Bounds(const Model &model)
    : model(model), time(model.numNodes), head(model.numNodes, 0),
      tail(model.numNodes, 0), setOf(model.numUnits) {
  findSets();
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

void Bounds::findSets() {
  std::map<std::vector<uint8_t>, int32_t> index;
  std::vector<uint8_t> set;
  for (Unit u = 0; u < model.numUnits; ++u) {
    auto row =
        model.allowed.begin() + static_cast<ptrdiff_t>(u) * model.numDevices;
    // Neighbours are mostly alike.
    if (u > 0 && std::equal(set.begin(), set.end(), row)) {
      setOf[u] = setOf[u - 1];
      continue;
    }
    set.assign(row, row + model.numDevices);
    auto [it, isNew] =
        index.try_emplace(set, static_cast<int32_t>(sets.size()));
    if (isNew)
      sets.push_back(set);
    setOf[u] = it->second;
  }
  auto confined = [](const std::vector<uint8_t> &inner,
                     const std::vector<uint8_t> &outer) {
    for (size_t d = 0; d < inner.size(); ++d)
      if (inner[d] && !outer[d])
        return false;
    return true;
  };
  // Quadratic in the distinct sets; these are few, or pins.
  constexpr size_t manySets = 256;
  if (sets.size() > manySets)
    return;
  for (const auto &outer : sets) {
    sizes.push_back(std::count(outer.begin(), outer.end(), 1));
    auto &inner = within.emplace_back();
    for (size_t k = 0; k < sets.size(); ++k)
      if (confined(sets[k], outer))
        inner.push_back(static_cast<int32_t>(k));
  }
}

/// Work that any set of devices must share, from the work of the operators
/// that may use each of `sets`: all of it, and what is confined to one of them.
int64_t Bounds::sharedWork(const std::vector<int64_t> &work) const {
  int64_t all = std::accumulate(work.begin(), work.end(), int64_t(0));
  int64_t best = (all + model.numDevices - 1) / model.numDevices;
  for (size_t k = 0; k < within.size(); ++k) {
    int64_t sum = 0;
    for (int32_t inner : within[k])
      sum += work[inner];
    if (sizes[k] > 0)
      best = std::max(best, (sum + sizes[k] - 1) / sizes[k]);
  }
  return best;
}

/// One of the longest paths.
std::vector<int32_t> Bounds::criticalPath(int64_t length) const {
  std::vector<int32_t> path;
  auto isNext = [&](int32_t i, int64_t begin) {
    return head[i] == begin && head[i] + time[i] + tail[i] == length;
  };
  auto first = std::find_if(model.order.begin(), model.order.end(),
                            [&](int32_t i) { return isNext(i, 0); });
  if (first == model.order.end())
    return path;
  for (int32_t at = *first; at >= 0;) {
    path.push_back(at);
    int32_t next = -1;
    model.forEachUser(at, [&](int32_t user) {
      if (next < 0 && isNext(user, head[at] + time[at]))
        next = user;
    });
    at = next;
  }
  return path;
}

/// For every node of \p path, the best bound of what must run before (or
/// after) it. What comes before a node also comes before the next: all of them
/// together take one pass over the graph.
std::vector<int64_t> Bounds::besides(std::span<const int32_t> path,
                                     bool before) const {
  std::vector<int64_t> values(path.size(), 0);
  std::vector<int64_t> work(sets.size(), 0);
  std::vector<uint8_t> seen(model.numNodes, 0);
  std::vector<int32_t> stack;
  auto visit = [&](int32_t i) {
    if (seen[i])
      return;
    seen[i] = 1;
    work[setOf[model.unit[i]]] += time[i];
    stack.push_back(i);
  };
  auto visitBeside = [&](int32_t i) {
    if (before)
      model.forEachSource(i, visit);
    else
      model.forEachUser(i, visit);
  };
  // Many different sets of devices: not at every node.
  constexpr size_t effort = 50'000'000;
  size_t stride =
      1 + path.size() * (within.size() * within.size() + 1) / effort;
  for (size_t k = 0; k < path.size(); ++k) {
    size_t at = before ? k : path.size() - 1 - k;
    visitBeside(path[at]);
    while (!stack.empty()) {
      int32_t i = stack.back();
      stack.pop_back();
      visitBeside(i);
    }
    values[at] = before ? head[path[at]] : tail[path[at]];
    if (at % stride == 0)
      values[at] = std::max(values[at], sharedWork(work));
  }
  return values;
}

Bound Bounds::loads() const {
  Bound bound;
  std::vector<int64_t> work(sets.size(), 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    work[setOf[model.unit[i]]] += time[i];
  raise(bound, sharedWork(work), "work over devices");
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

Bound Bounds::steps(bool quick) const {
  Bound bound = loads();
  int64_t longest = 0;
  for (int32_t i = 0; i < model.numNodes; ++i)
    longest = std::max(longest, head[i] + time[i] + tail[i]);
  raise(bound, longest, "critical path");
  std::vector<int32_t> path = criticalPath(longest);
  std::vector<int64_t> before = besides(path, /*before=*/true);
  std::vector<int64_t> after = besides(path, /*before=*/false);
  for (size_t k = 0; k < path.size(); ++k)
    raise(bound, before[k] + time[path[k]] + after[k],
          "work before and after a critical operator");
  if (quick)
    return bound;
  std::vector<int64_t> raised =
      Segments(model, time, head).raise(path, std::move(before));
  for (size_t k = 0; k < path.size(); ++k)
    raise(bound, raised[k] + time[path[k]] + after[k],
          "work and transfers between critical operators");
  return bound;
}

} // namespace

Bound baechi::placement::bounds::makespanBound(const Model &model, bool quick) {
  return Bounds(model).steps(quick);
}

Bound baechi::placement::bounds::maxLoadBound(const Model &model) {
  return raiseMaxLoadBound(model, Bounds(model).loads());
}
