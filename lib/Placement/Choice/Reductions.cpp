//===- Reductions.cpp - Exact steps that shrink a network -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Network.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

/// A table grows when a node with more strategies takes another one's edges;
/// from here on that costs more than it saves.
constexpr size_t maxTable = 1'000'000;

/// Nodes to look at, each at most once in the queue.
class Queue {
public:
  explicit Queue(size_t count) : isIn(count, 1), nodes(count) {
    std::iota(nodes.begin(), nodes.end(), 0);
  }
  bool empty() const { return nodes.empty(); }
  int32_t pop() {
    int32_t node = nodes.front();
    nodes.pop_front();
    isIn[node] = 0;
    return node;
  }
  void push(int32_t node) {
    if (!isIn[node]) {
      isIn[node] = 1;
      nodes.push_back(node);
    }
  }

private:
  std::vector<char> isIn;
  std::deque<int32_t> nodes;
};

/// Steps between the entries of a row and between rows, with `node`'s
/// strategies as rows.
struct Strides {
  size_t row, entry;
  Strides(const Network &network, const Edge &edge, int32_t node) {
    size_t columns = network.nodes[edge.second].size();
    row = node == edge.first ? columns : 1;
    entry = node == edge.first ? 1 : columns;
  }
};

/// The only finite partner of each strategy of `node`, if all have just one.
bool onlyPartners(Network &network, const Edge &edge, int32_t node,
                  std::vector<int32_t> &map) {
  size_t count = network.nodes[node].size();
  size_t others = network.nodes[edge.other(node)].size();
  Strides strides(network, edge, node);
  map.assign(count, -1);
  for (size_t r = 0; r < count; ++r) {
    for (size_t s = 0; s < others; ++s) {
      if (isForbidden(edge.table[r * strides.row + s * strides.entry]))
        continue;
      if (map[r] >= 0) {
        network.work += r * others + s;
        return false;
      }
      map[r] = static_cast<int32_t>(s);
    }
    if (map[r] < 0)
      map[r] = 0;
  }
  network.work += count * others;
  return true;
}

bool needsNoMore(const Node &node, size_t s, size_t than) {
  return std::all_of(node.members.begin(), node.members.end(),
                     [&](const Member &member) {
                       return member.usage[s] <= member.usage[than];
                     });
}

/// For each strategy of the leaf's neighbour, the leaf's that is best in cost
/// and in bytes, if there is one for all.
bool bestOfLeaf(Network &network, int32_t leaf, std::vector<int32_t> &map) {
  const Node &node = network.nodes[leaf];
  const Edge &edge = network.edges[node.edges[0]];
  size_t others = network.nodes[edge.other(leaf)].size();
  Strides strides(network, edge, leaf);
  network.work += node.size() * others;
  map.assign(others, 0);
  for (size_t s = 0; s < others; ++s) {
    auto cost = [&](size_t r) {
      return node.cost[r] + edge.table[r * strides.row + s * strides.entry];
    };
    size_t best = 0;
    for (size_t r = 1; r < node.size(); ++r)
      if (cost(r) < cost(best) ||
          (cost(r) == cost(best) && needsNoMore(node, r, best)))
        best = r;
    for (size_t r = 0; r < node.size(); ++r)
      if (r != best && !isForbidden(cost(r)) && !needsNoMore(node, best, r))
        return false;
    map[s] = static_cast<int32_t>(best);
  }
  return true;
}

bool growsTooMuch(const Network &network, int32_t node, int32_t by) {
  size_t most = 0;
  for (int32_t e : network.nodes[node].edges)
    most = std::max(most, network.nodes[network.edges[e].other(node)].size());
  return network.nodes[by].size() > network.nodes[node].size() &&
         most * network.nodes[by].size() > maxTable;
}

/// One node that a neighbour of \p node decides, or \p node itself, is taken
/// out; tells who must be looked at again.
bool mergeOne(Network &network, int32_t node, Queue &queue) {
  std::vector<int32_t> map;
  auto merge = [&](int32_t gone, int32_t by) {
    if (growsTooMuch(network, gone, by))
      return false;
    for (int32_t e : network.nodes[gone].edges)
      queue.push(network.edges[e].other(gone));
    network.follow(gone, by, std::move(map));
    queue.push(by);
    return true;
  };
  for (int32_t e : network.nodes[node].edges) {
    const Edge &edge = network.edges[e];
    int32_t other = edge.other(node);
    if (onlyPartners(network, edge, node, map) && merge(other, node))
      return true;
    if (onlyPartners(network, edge, other, map) && merge(node, other))
      return true;
  }
  if (network.nodes[node].edges.size() == 1) {
    int32_t by = network.edges[network.nodes[node].edges[0]].other(node);
    if (bestOfLeaf(network, node, map))
      return merge(node, by);
  }
  return false;
}

/// Whether a table is a cost of its rows plus one of its columns.
bool isSeparable(Network &network, const Edge &edge) {
  size_t columns = network.nodes[edge.second].size();
  const double *top = edge.table.data();
  for (size_t k = 0; k < edge.table.size(); ++k) {
    double difference = edge.table[k - k % columns] - top[0];
    if (isForbidden(edge.table[k]) ||
        edge.table[k] - top[k % columns] != difference) {
      network.work += k + 1;
      return false;
    }
  }
  network.work += edge.table.size();
  return true;
}

/// Compares strategies of one node, whatever the neighbours do.
class Rivals {
public:
  Rivals(Network &network, int32_t i) : network(network), i(i) {
    const Node &node = network.nodes[i];
    least = node.cost;
    for (int32_t e : node.edges) {
      const Edge &edge = network.edges[e];
      size_t others = network.nodes[edge.other(i)].size();
      Strides strides(network, edge, i);
      std::vector<size_t> &place = places.emplace_back(node.size());
      for (size_t s = 0; s < node.size(); ++s) {
        const double *row = &edge.table[s * strides.row];
        for (size_t k = 0; k < others * strides.entry; k += strides.entry)
          if (row[k] < row[place[s]])
            place[s] = k;
        least[s] += row[place[s]];
      }
      network.work += edge.table.size();
    }
  }

  /// Whether \p s costs no more than \p t in every case, in bytes, too.
  bool beats(size_t s, size_t t) {
    const Node &node = network.nodes[i];
    return least[s] <= least[t] && excess(s, t, true) <= 0 &&
           needsNoMore(node, s, t) && excess(s, t, false) <= 0;
  }

private:
  /// The most that \p s costs over \p t; or, in short, over it where the
  /// neighbours suit \p t best, which is no more than that.
  double excess(size_t s, size_t t, bool inShort) {
    const Node &node = network.nodes[i];
    double sum = node.cost[s] - node.cost[t];
    for (size_t k = 0; k < node.edges.size(); ++k) {
      const Edge &edge = network.edges[node.edges[k]];
      size_t others = network.nodes[edge.other(i)].size();
      Strides strides(network, edge, i);
      const double *own = &edge.table[s * strides.row];
      const double *than = &edge.table[t * strides.row];
      double most = own[places[k][t]] - than[places[k][t]];
      for (size_t y = 0; !inShort && y < others * strides.entry;
           y += strides.entry)
        if (!isForbidden(than[y])) // else the pair is never taken
          most = std::max(most, own[y] - than[y]);
      network.work += inShort ? 1 : others;
      sum += most;
      if (isForbidden(sum))
        return sum;
    }
    return sum;
  }

  Network &network;
  int32_t i;
  std::vector<double> least; ///< with the cheapest partners
  /// By edge and strategy: where the cheapest partner is in the row.
  std::vector<std::vector<size_t>> places;
};

} // namespace

Refusal baechi::placement::choice::dropInconsistent(Network &network) {
  std::vector<std::vector<char>> isLeft(network.nodes.size());
  for (size_t i = 0; i < isLeft.size(); ++i)
    for (double cost : network.nodes[i].cost)
      isLeft[i].push_back(!isForbidden(cost));
  auto hasPartner = [&](const Edge &edge, int32_t i, size_t s) {
    int32_t other = edge.other(i);
    Strides strides(network, edge, i);
    const double *row = &edge.table[s * strides.row];
    for (size_t k = 0; k < isLeft[other].size(); ++k)
      if (isLeft[other][k] && !isForbidden(row[k * strides.entry])) {
        network.work += k + 1;
        return true;
      }
    network.work += isLeft[other].size();
    return false;
  };
  Queue queue(network.nodes.size());
  while (!queue.empty()) {
    int32_t i = queue.pop();
    const Node &node = network.nodes[i];
    if (node.isGone)
      continue;
    bool dropped = false;
    for (size_t s = 0; s < node.size(); ++s) {
      if (!isLeft[i][s])
        continue;
      isLeft[i][s] =
          std::all_of(node.edges.begin(), node.edges.end(), [&](int32_t e) {
            return hasPartner(network.edges[e], i, s);
          });
      dropped |= !isLeft[i][s];
    }
    if (std::count(isLeft[i].begin(), isLeft[i].end(), 0) ==
        static_cast<ptrdiff_t>(node.size()))
      return fmt::format("infinite costs forbid every strategy of node {}", i);
    if (dropped)
      for (int32_t e : node.edges)
        queue.push(network.edges[e].other(i));
  }
  for (size_t i = 0; i < isLeft.size(); ++i) {
    std::vector<int32_t> kept;
    for (size_t s = 0; s < isLeft[i].size(); ++s)
      if (isLeft[i][s])
        kept.push_back(static_cast<int32_t>(s));
    if (kept.size() < isLeft[i].size())
      network.keep(static_cast<int32_t>(i), kept);
  }
  return "";
}

size_t baechi::placement::choice::dropSeparable(Network &network) {
  size_t dropped = 0;
  for (size_t e = 0; e < network.edges.size(); ++e) {
    const Edge &edge = network.edges[e];
    if (edge.isGone() || !isSeparable(network, edge))
      continue;
    std::vector<double> &rows = network.nodes[edge.first].cost;
    std::vector<double> &columns = network.nodes[edge.second].cost;
    double corner = edge.table[0];
    for (size_t r = 0; r < rows.size(); ++r)
      rows[r] += edge.table[r * columns.size()];
    for (size_t s = 0; s < columns.size(); ++s)
      columns[s] += edge.table[s] - corner;
    network.remove(static_cast<int32_t>(e));
    ++dropped;
  }
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    const Node &node = network.nodes[i];
    if (node.isGone || node.size() > 1 || !node.edges.empty())
      continue;
    network.settle(static_cast<int32_t>(i));
    ++dropped;
  }
  return dropped;
}

size_t baechi::placement::choice::mergeFunctional(Network &network) {
  size_t merged = 0;
  Queue queue(network.nodes.size());
  while (!queue.empty()) {
    int32_t node = queue.pop();
    while (!network.nodes[node].isGone && mergeOne(network, node, queue))
      ++merged;
  }
  return merged;
}

size_t baechi::placement::choice::eliminateFree(Network &network) {
  size_t gone = 0;
  Queue queue(network.nodes.size());
  while (!queue.empty()) {
    int32_t i = queue.pop();
    const Node &node = network.nodes[i];
    if (node.isGone || !node.members.empty() || node.edges.size() > 2)
      continue;
    std::vector<int32_t> others;
    for (int32_t e : node.edges)
      others.push_back(network.edges[e].other(i));
    network.eliminate(i);
    ++gone;
    for (int32_t other : others)
      queue.push(other);
  }
  return gone;
}

size_t baechi::placement::choice::dropDominated(Network &network) {
  size_t dropped = 0;
  for (size_t i = 0; i < network.nodes.size(); ++i) {
    size_t count = network.nodes[i].size();
    if (network.nodes[i].isGone || count < 2)
      continue;
    Rivals rivals(network, static_cast<int32_t>(i));
    std::vector<char> isBeaten(count, 0);
    for (size_t t = 0; t < count; ++t)
      for (size_t s = 0; s < count && !isBeaten[t]; ++s)
        isBeaten[t] = s != t && !isBeaten[s] && rivals.beats(s, t);
    std::vector<int32_t> kept;
    for (size_t s = 0; s < count; ++s)
      if (!isBeaten[s])
        kept.push_back(static_cast<int32_t>(s));
    if (kept.size() == count)
      continue;
    dropped += count - kept.size();
    network.keep(static_cast<int32_t>(i), kept);
  }
  return dropped;
}
