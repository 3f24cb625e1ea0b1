//===- Elimination.cpp - All but a few nodes at once ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Elimination.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

/// The graph of the free nodes that are not eliminated yet, by their places in
/// a list, with the edges that elimination adds.
class FillGraph {
public:
  FillGraph(const Core &core, const std::vector<int32_t> &nodes)
      : adjacent(nodes.size()), weight(nodes.size()) {
    std::vector<int32_t> placeOf(core.size(), -1);
    for (size_t k = 0; k < nodes.size(); ++k)
      placeOf[nodes[k]] = static_cast<int32_t>(k);
    for (size_t k = 0; k < nodes.size(); ++k) {
      weight[k] = std::log2(core.costs[nodes[k]].size());
      for (const Neighbour &beside : core.neighbours[nodes[k]])
        if (placeOf[beside.node] >= 0)
          adjacent[k].push_back(placeOf[beside.node]);
      std::sort(adjacent[k].begin(), adjacent[k].end());
    }
  }
  /// log2 of the entries of the table that eliminating a node looks at.
  double entries(int32_t i) const {
    double sum = weight[i];
    for (int32_t j : adjacent[i])
      sum += weight[j];
    return sum;
  }
  const std::vector<int32_t> &neighbours(int32_t i) const {
    return adjacent[i];
  }
  void remove(int32_t i) {
    for (int32_t j : adjacent[i]) {
      std::vector<int32_t> &list = adjacent[j];
      list.erase(std::lower_bound(list.begin(), list.end(), i));
    }
    adjacent[i].clear();
  }
  void eliminate(int32_t i) {
    std::vector<int32_t> clique = std::move(adjacent[i]);
    adjacent[i].clear();
    std::vector<int32_t> joined;
    for (int32_t j : clique) {
      joined.clear();
      std::set_union(adjacent[j].begin(), adjacent[j].end(), clique.begin(),
                     clique.end(), std::back_inserter(joined));
      std::erase_if(joined, [&](int32_t k) { return k == i || k == j; });
      adjacent[j] = joined;
    }
  }

private:
  std::vector<std::vector<int32_t>> adjacent;
  std::vector<double> weight;
};

} // namespace

Elimination::Elimination(const Core &core, Random &random, double maxEntries,
                         std::vector<int32_t> free)
    : core(core), position(core.size(), -1) {
  if (free.empty()) {
    free.resize(core.size());
    std::iota(free.begin(), free.end(), 0);
  }
  drawOrder(random, maxEntries, free);
  layOut();
}

void Elimination::drawOrder(Random &random, double maxEntries,
                            const std::vector<int32_t> &free) {
  FillGraph graph(core, free);
  // Noise breaks ties in other ways every time.
  std::vector<double> noise(free.size());
  for (double &value : noise)
    value = random.real();
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  auto push = [&](int32_t k) { queue.push({graph.entries(k) + noise[k], k}); };
  std::vector<int32_t> rest(free.size());
  std::iota(rest.begin(), rest.end(), 0);
  for (int32_t k : rest)
    push(k);
  double limit = std::log2(maxEntries);
  std::vector<char> isDone(free.size(), 0);
  while (!queue.empty()) {
    auto [value, k] = queue.top();
    queue.pop();
    if (isDone[k])
      continue;
    double now = graph.entries(k);
    entries += 10;
    if (now + noise[k] > value + 1e-9) {
      push(k);
      continue;
    }
    int32_t taken = k;
    std::vector<int32_t> beside;
    if (now > limit) {
      // Everything else is as large: fix a node of many neighbours.
      std::erase_if(rest, [&](int32_t j) { return isDone[j] != 0; });
      double most = -1;
      for (int32_t j : rest) {
        double degree = static_cast<double>(graph.neighbours(j).size()) *
                        (0.3 + 1.4 * random.real());
        if (degree > most) {
          most = degree;
          taken = j;
        }
      }
      entries += rest.size();
      if (taken != k)
        push(k);
      beside = graph.neighbours(taken);
      graph.remove(taken);
    } else {
      position[free[k]] = static_cast<int32_t>(order.size());
      order.push_back(free[k]);
      beside = graph.neighbours(k);
      graph.eliminate(k);
    }
    isDone[taken] = 1;
    entries += 20 * beside.size();
    for (int32_t j : beside)
      push(j);
  }
}

void Elimination::layOut() {
  buckets.resize(order.size());
  std::vector<std::vector<int32_t>> incoming(order.size());
  size_t arena = 0;
  size_t rowsNeeded = 0, scopeNeeded = 0;
  for (size_t b = 0; b < buckets.size(); ++b) {
    Bucket &bucket = buckets[b];
    bucket.node = order[b];
    std::vector<int32_t> &scope = bucket.scope;
    auto later = [&](int32_t node) {
      return position[node] > static_cast<int32_t>(b);
    };
    for (const Neighbour &beside : core.neighbours[bucket.node])
      if (position[beside.node] < 0)
        bucket.fixed.push_back(beside);
      else if (later(beside.node))
        scope.push_back(beside.node);
    for (int32_t from : incoming[b])
      for (int32_t node : buckets[from].scope)
        if (node != bucket.node)
          scope.push_back(node);
    auto isLater = [&](int32_t x, int32_t y) {
      return position[x] > position[y];
    };
    std::sort(scope.begin(), scope.end(), isLater);
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    auto placeOf = [&](int32_t node) {
      return static_cast<size_t>(
          std::lower_bound(scope.begin(), scope.end(), node, isLater) -
          scope.begin());
    };
    auto addFactor = [&](Factor factor) {
      factor.level = -1;
      for (size_t k = 0; k < scope.size(); ++k)
        if (factor.strides[k] > 0)
          factor.level = static_cast<int32_t>(k);
      bucket.factors.push_back(std::move(factor));
    };
    for (const Neighbour &beside : core.neighbours[bucket.node]) {
      if (!later(beside.node))
        continue;
      Factor factor;
      factor.table = beside.table;
      factor.strides.assign(scope.size(), 0);
      factor.strides[placeOf(beside.node)] = core.strategies(bucket.node);
      addFactor(std::move(factor));
    }
    for (int32_t from : incoming[b]) {
      Factor factor;
      factor.bucket = from;
      factor.strides.assign(scope.size(), 0);
      // The node comes first in the order, so its strategies lie together.
      int64_t stride = core.strategies(bucket.node);
      const std::vector<int32_t> &theirs = buckets[from].scope;
      for (size_t k = theirs.size() - 1; k-- > 0;) {
        factor.strides[placeOf(theirs[k])] = stride;
        stride *= core.strategies(theirs[k]);
      }
      addFactor(std::move(factor));
    }
    std::stable_sort(
        bucket.factors.begin(), bucket.factors.end(),
        [](const Factor &x, const Factor &y) { return x.level < y.level; });
    bucket.entries = 1;
    for (int32_t node : scope)
      bucket.entries *= static_cast<size_t>(core.strategies(node));
    bucket.offset = arena;
    if (!scope.empty()) {
      arena += bucket.entries;
      incoming[position[scope.back()]].push_back(static_cast<int32_t>(b));
    }
    size_t own = static_cast<size_t>(core.strategies(bucket.node));
    entries += bucket.entries * own + 100;
    rowsNeeded = std::max(rowsNeeded, (scope.size() + 2) * own);
    scopeNeeded = std::max(scopeNeeded, scope.size() + 1);
  }
  messages.resize(arena);
  rows.resize(rowsNeeded);
  counters.resize(scopeNeeded);
}

/// Walks through the strategies of the scope like an odometer. The sums of the
/// tables that a change does not touch are kept, a row for each level.
void Elimination::fill(Bucket &bucket, const Costs &costs,
                       const Strategies &choice) {
  size_t own = costs[bucket.node].size();
  double *base = rows.data();
  std::copy(costs[bucket.node].begin(), costs[bucket.node].end(), base);
  for (const Neighbour &fixed : bucket.fixed) {
    const double *row = fixed.table + choice[fixed.node] * own;
    for (size_t z = 0; z < own; ++z)
      base[z] += row[z];
  }
  auto levels = static_cast<int32_t>(bucket.scope.size());
  if (levels == 0)
    return;
  std::vector<const double *> at;
  std::vector<size_t> first(levels + 1, 0);
  for (const Factor &factor : bucket.factors) {
    at.push_back(start(factor));
    for (int32_t k = factor.level + 1; k <= levels; ++k)
      ++first[k];
  }
  for (size_t f = 0; f < first[0]; ++f)
    for (size_t z = 0; z < own; ++z)
      base[z] += at[f][z];
  // first[k] .. first[k + 1] are the factors of level k.
  double *out = messages.data() + bucket.offset;
  std::fill(counters.begin(), counters.begin() + levels, 0);
  int32_t last = levels - 1;
  int32_t count = core.strategies(bucket.scope[last]);
  int32_t level = 0;
  while (true) {
    // Row k holds the sums of the levels before k.
    for (; level < last; ++level) {
      const double *from = base + level * own;
      double *to = base + (level + 1) * own;
      std::copy(from, from + own, to);
      for (size_t f = first[level]; f < first[level + 1]; ++f)
        for (size_t z = 0; z < own; ++z)
          to[z] += at[f][z];
    }
    const double *row = base + last * own;
    size_t begin = first[last], end = first[levels];
    for (int32_t s = 0; s < count; ++s) {
      double best = forbidden;
      if (end - begin == 1) {
        const double *table = at[begin];
        for (size_t z = 0; z < own; ++z) {
          double sum = row[z] + table[z];
          best = sum < best ? sum : best;
        }
        at[begin] += bucket.factors[begin].strides[last];
      } else {
        double *sums = base + levels * own;
        std::copy(row, row + own, sums);
        for (size_t f = begin; f < end; ++f) {
          for (size_t z = 0; z < own; ++z)
            sums[z] += at[f][z];
          at[f] += bucket.factors[f].strides[last];
        }
        for (size_t z = 0; z < own; ++z)
          best = sums[z] < best ? sums[z] : best;
      }
      *out++ = best;
    }
    for (size_t f = begin; f < end; ++f)
      at[f] -= count * bucket.factors[f].strides[last];
    level = last;
    while (--level >= 0) {
      int32_t range = core.strategies(bucket.scope[level]);
      bool wraps = ++counters[level] == range;
      for (size_t f = first[level]; f < bucket.factors.size(); ++f) {
        int64_t stride = bucket.factors[f].strides[level];
        at[f] += wraps ? stride - range * stride : stride;
      }
      if (!wraps)
        break;
      counters[level] = 0;
    }
    if (level < 0)
      return;
  }
}

void Elimination::choose(const Bucket &bucket, const Costs &costs,
                         Strategies &choice) {
  size_t own = costs[bucket.node].size();
  double *sums = rows.data();
  std::copy(costs[bucket.node].begin(), costs[bucket.node].end(), sums);
  auto add = [&](const double *row) {
    for (size_t z = 0; z < own; ++z)
      sums[z] += row[z];
  };
  for (const Neighbour &fixed : bucket.fixed)
    add(fixed.table + choice[fixed.node] * own);
  for (const Factor &factor : bucket.factors) {
    const double *row = start(factor);
    for (size_t k = 0; k < bucket.scope.size(); ++k)
      row += factor.strides[k] * choice[bucket.scope[k]];
    add(row);
  }
  // Where it makes no difference, what was chosen stays.
  int32_t best = choice[bucket.node];
  for (size_t z = 0; z < own; ++z)
    if (sums[z] < sums[best])
      best = static_cast<int32_t>(z);
  choice[bucket.node] = best;
}

uint64_t Elimination::run(const Costs &costs, Strategies &choice) {
  for (Bucket &bucket : buckets)
    fill(bucket, costs, choice);
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket)
    choose(*bucket, costs, choice);
  return entries;
}
