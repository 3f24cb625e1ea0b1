//===- MaxFlow.h - A largest flow, a least cut ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_MAXFLOW_H
#define BAECHI_LIB_PLACEMENT_MODEL_MAXFLOW_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace baechi::placement {

/// The largest flow from a node to another, by Dinic's algorithm (1970). \p
/// Room is signed.
template <typename Room> class MaxFlow {
public:
  explicit MaxFlow(int32_t nodes = 0)
      : first(nodes, -1), level(nodes), at(nodes) {}

  /// Arc 2k is the k-th that is added, arc 2k + 1 its reverse.
  void addArc(int32_t from, int32_t to, Room room) {
    addHalf(from, to, room);
    addHalf(to, from, 0);
  }
  size_t numArcs() const { return arcs.size(); }
  Room &room(size_t arc) { return arcs[arc].room; }

  /// Looks at about \p steps arcs at the most, which it lowers. What it returns
  /// is the largest flow where steps are left, and no more than that otherwise.
  Room run(int32_t from, int32_t to, int64_t &steps) {
    source = from;
    sink = to;
    Room flow = 0;
    while (steps > 0 && findLevels(steps)) {
      at = first;
      while (Room more = augment(steps))
        flow += more;
    }
    return flow;
  }
  /// Whether a node is on the source's side of the least cut that is nearest
  /// to the source, once the largest flow is found.
  bool isAtSource(int32_t node) const { return level[node] >= 0; }

private:
  struct Arc {
    int32_t to;
    Room room;
  };

  void addHalf(int32_t from, int32_t to, Room room) {
    next.push_back(first[from]);
    first[from] = static_cast<int32_t>(arcs.size());
    arcs.push_back({to, room});
  }

  bool findLevels(int64_t &steps) {
    std::fill(level.begin(), level.end(), -1);
    queue.assign(1, source);
    level[source] = 0;
    for (size_t k = 0; k < queue.size() && level[sink] < 0; ++k)
      for (int32_t arc = first[queue[k]]; arc >= 0; arc = next[arc]) {
        --steps;
        int32_t to = arcs[arc].to;
        if (arcs[arc].room > 0 && level[to] < 0) {
          level[to] = level[queue[k]] + 1;
          queue.push_back(to);
        }
      }
    return level[sink] >= 0;
  }

  /// One more path along the levels; what it carries, 0 when there is none.
  Room augment(int64_t &steps) {
    path.clear();
    int32_t node = source;
    while (node != sink && steps > 0) {
      int32_t &arc = at[node];
      while (arc >= 0 &&
             (arcs[arc].room <= 0 || level[arcs[arc].to] != level[node] + 1)) {
        arc = next[arc];
        --steps;
      }
      if (arc >= 0) {
        path.push_back(arc);
        node = arcs[arc].to;
      } else if (path.empty()) {
        return 0;
      } else {
        level[node] = -1;
        node = arcs[path.back() ^ 1].to;
        path.pop_back();
      }
    }
    if (node != sink)
      return 0;
    Room most = std::numeric_limits<Room>::max();
    for (int32_t arc : path)
      most = std::min(most, arcs[arc].room);
    for (int32_t arc : path) {
      arcs[arc].room -= most;
      arcs[arc ^ 1].room += most;
    }
    return most;
  }

  int32_t source = 0, sink = 0;
  std::vector<Arc> arcs;
  std::vector<int32_t> first, next; ///< arcs of a node as a list
  std::vector<int32_t> level, at, queue, path;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_MAXFLOW_H
