//===- Stages.cpp - A step's operators as a chain ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nodes/Stages.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

using namespace baechi::placement;
using namespace baechi::placement::nodes;

namespace {

/// Sets that grow together.
class Sets {
public:
  explicit Sets(size_t n) : parent(n) {
    std::iota(parent.begin(), parent.end(), 0);
  }
  int32_t find(int32_t a) {
    while (parent[a] != a)
      a = parent[a] = parent[parent[a]];
    return a;
  }
  void join(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    parent[std::max(a, b)] = std::min(a, b);
  }

private:
  std::vector<int32_t> parent;
};

/// Places in a topological order that keeps to the order of the file.
std::vector<int32_t> placesOf(const Graph &graph) {
  size_t n = graph.ops.size();
  std::vector<std::vector<int32_t>> users(n);
  std::vector<int32_t> waits(n, 0), place(n, 0);
  for (const Edge &edge : graph.edges) {
    users[edge.from].push_back(edge.to);
    ++waits[edge.to];
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i)
    if (waits[i] == 0)
      ready.push(static_cast<int32_t>(i));
  for (int32_t at = 0; !ready.empty(); ++at) {
    int32_t op = ready.top();
    ready.pop();
    place[op] = at;
    for (int32_t user : users[op])
      if (--waits[user] == 0)
        ready.push(user);
  }
  return place;
}

} // namespace

Chain::Chain(const ReplicaGraph &replica) {
  const Graph &graph = replica.graph;
  auto n = static_cast<int32_t>(graph.ops.size());
  Sets sets(n);
  bool hasParts = false;
  std::map<std::string_view, int32_t> groups;
  for (int32_t i = 0; i < n; ++i) {
    const Operator &op = graph.ops[i];
    hasParts |= op.part.has_value();
    sets.join(i, replica.first[i]);
    if (op.group)
      sets.join(i, groups.try_emplace(*op.group, i).first->second);
    if (op.backward && op.forward)
      sets.join(i, *op.forward);
  }
  std::vector<int32_t> place = placesOf(graph);
  constexpr int32_t none = std::numeric_limits<int32_t>::max();
  // The first place of a forward operator in each set.
  std::vector<int32_t> key(n, none);
  auto findKeys = [&] {
    std::fill(key.begin(), key.end(), none);
    for (int32_t i = 0; i < n; ++i)
      if (const Operator &op = graph.ops[i];
          !op.backward && (op.part || !hasParts))
        key[sets.find(i)] = std::min(key[sets.find(i)], place[i]);
  };
  findKeys();
  // What has none belongs to who reads it, or to who it reads from.
  for (bool isUser : {true, false}) {
    std::vector<Edge> edges = graph.edges;
    std::sort(edges.begin(), edges.end(), [&](const Edge &a, const Edge &b) {
      return std::pair(place[a.to], place[a.from]) <
             std::pair(place[b.to], place[b.from]);
    });
    for (bool grew = true; grew;) {
      grew = false;
      for (const Edge &edge : edges) {
        int32_t a = sets.find(isUser ? edge.from : edge.to),
                b = sets.find(isUser ? edge.to : edge.from);
        if (key[a] != none || key[b] == none)
          continue;
        int32_t found = key[b];
        sets.join(a, b);
        key[sets.find(a)] = found;
        grew = true;
      }
    }
  }
  std::vector<std::pair<int32_t, int32_t>> sorted;
  for (int32_t i = 0; i < n; ++i)
    if (sets.find(i) == i)
      sorted.emplace_back(key[i], i);
  std::sort(sorted.begin(), sorted.end());
  std::vector<int32_t> number(n, 0);
  for (size_t k = 0; k < sorted.size(); ++k)
    number[sorted[k].second] = static_cast<int32_t>(k);
  numLinks = static_cast<int32_t>(sorted.size());
  for (int32_t i = 0; i < n; ++i)
    linkOf.push_back(number[sets.find(i)]);
  findCrossing(replica);
}

void Chain::findCrossing(const ReplicaGraph &replica) {
  const Graph &graph = replica.graph;
  std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>> reach;
  for (const Edge &edge : graph.edges) {
    if (edge.output < 0 || replica.first[edge.from] != edge.from)
      continue;
    auto [it, isNew] = reach.try_emplace({edge.from, edge.output},
                                         linkOf[edge.from], linkOf[edge.from]);
    auto &[low, high] = it->second;
    low = std::min(low, linkOf[edge.to]);
    high = std::max(high, linkOf[edge.to]);
  }
  crossing.assign(static_cast<size_t>(numLinks) + 1, 0);
  for (const auto &[tensor, ends] : reach) {
    int64_t bytes = graph.ops[tensor.first].outputs[tensor.second].bytes;
    for (int32_t border = ends.first + 1; border <= ends.second; ++border)
      crossing[border] += bytes;
  }
}

std::vector<int32_t>
baechi::placement::nodes::evenCuts(const std::vector<int64_t> &load,
                                   int32_t stages) {
  auto n = static_cast<int32_t>(load.size());
  auto all = std::accumulate(load.begin(), load.end(), __int128(0));
  std::vector<int32_t> cuts = {0};
  __int128 sum = 0;
  for (int32_t i = 0; i < n && std::ssize(cuts) < stages; ++i) {
    sum += load[i];
    // The next begins where this sum is nearest to its share, and leaves one
    // for each that follows.
    __int128 share = all * std::ssize(cuts);
    bool isNear = i + 1 >= n || (sum * 2 + load[i + 1]) * stages >= share * 2;
    if (isNear || n - (i + 1) == stages - std::ssize(cuts))
      cuts.push_back(i + 1);
  }
  return cuts;
}

std::vector<int32_t>
baechi::placement::nodes::narrowCuts(const std::vector<int64_t> &load,
                                     const std::vector<int64_t> &crossing,
                                     int32_t stages) {
  auto n = static_cast<int32_t>(load.size());
  std::vector<double> before = {0};
  for (int64_t each : load)
    before.push_back(before.back() + static_cast<double>(each));
  double share = before.back() / stages;
  std::vector<int32_t> cuts = {0};
  for (int32_t stage = 1; stage < stages; ++stage) {
    double wanted = share * stage;
    int32_t best = -1;
    auto distance = [&](int32_t at) { return std::abs(before[at] - wanted); };
    // Each stage that follows needs a link, too.
    for (int32_t at = cuts.back() + 1; at <= n - (stages - stage); ++at) {
      if (best >= 0 && distance(at) > share / 2)
        continue;
      if (best < 0 ||
          (distance(best) > share / 2 && distance(at) < distance(best)) ||
          (distance(at) <= share / 2 &&
           std::pair(crossing[at], distance(at)) <
               std::pair(crossing[best], distance(best))))
        best = at;
    }
    if (best < 0)
      break;
    cuts.push_back(best);
  }
  return cuts;
}

std::vector<int32_t>
baechi::placement::nodes::balancedCuts(const std::vector<int64_t> &load,
                                       int32_t stages) {
  auto n = static_cast<int32_t>(load.size());
  auto cut = [&](int64_t most) {
    std::vector<int32_t> cuts = {0};
    int64_t sum = 0;
    for (int32_t i = 0; i < n; ++i) {
      bool isLast = n - i == stages - std::ssize(cuts) && i > cuts.back();
      if (i > cuts.back() && (sum + load[i] > most || isLast)) {
        cuts.push_back(i);
        sum = 0;
      }
      sum += load[i];
    }
    return cuts;
  };
  int64_t low = *std::max_element(load.begin(), load.end());
  int64_t high = std::accumulate(load.begin(), load.end(), int64_t(0));
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (std::ssize(cut(middle)) <= stages)
      high = middle;
    else
      low = middle + 1;
  }
  return cut(low);
}
