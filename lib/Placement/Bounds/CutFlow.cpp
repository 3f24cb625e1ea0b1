//===- CutFlow.cpp - What a device must do around a unit --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/CutFlow.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

static constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Nodes: the vertices, two a net, the sink. The first arcs lead from the
/// vertices to the sink.
CutFlow::CutFlow(int32_t vertices, std::span<const Net> nets)
    : vertices(vertices),
      sink(vertices + 2 * static_cast<int32_t>(nets.size())),
      first(sink + 1, -1), level(sink + 1), at(sink + 1) {
  for (int32_t v = 0; v < vertices; ++v)
    addArc(v, sink, 0);
  for (size_t k = 0; k < nets.size(); ++k) {
    const Net &net = nets[k];
    auto sent = vertices + 2 * static_cast<int32_t>(k), fetched = sent + 1;
    if (net.send > 0) {
      addArc(net.producer, sent, net.send);
      for (int32_t user : net.users)
        addArc(sent, user, unlimited);
    }
    if (net.fetch > 0) {
      for (int32_t user : net.users)
        addArc(user, fetched, unlimited);
      addArc(fetched, net.producer, net.fetch);
    }
  }
  for (const Arc &arc : arcs)
    base.push_back(arc.room);
}

void CutFlow::addArc(int32_t from, int32_t to, double room) {
  for (auto [a, b, c] :
       {std::tuple(from, to, room), std::tuple(to, from, 0.0)}) {
    next.push_back(first[a]);
    first[a] = static_cast<int32_t>(arcs.size());
    arcs.push_back({b, c});
  }
}

bool CutFlow::findLevels(int64_t &steps) {
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
double CutFlow::augment(int64_t &steps) {
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
  double room = unlimited;
  for (int32_t arc : path)
    room = std::min(room, arcs[arc].room);
  for (int32_t arc : path) {
    arcs[arc].room -= room;
    arcs[arc ^ 1].room += room;
  }
  return room;
}

double CutFlow::least(int32_t vertex, std::span<const double> weight,
                      double scale, int64_t &steps) {
  source = vertex;
  for (size_t k = 0; k < arcs.size(); ++k)
    arcs[k].room = base[k] * scale;
  for (int32_t v = 0; v < vertices; ++v)
    arcs[2 * static_cast<size_t>(v)].room = weight[v];
  steps -= static_cast<int64_t>(arcs.size());
  double flow = 0;
  while (steps > 0 && findLevels(steps)) {
    at = first;
    while (double more = augment(steps))
      flow += more;
  }
  return flow;
}
