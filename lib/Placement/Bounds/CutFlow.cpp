//===- CutFlow.cpp - What a device must do around a unit --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/CutFlow.h"

#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

static constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Nodes: the vertices, two a net, the sink. The first arcs lead from the
/// vertices to the sink.
CutFlow::CutFlow(int32_t vertices, std::span<const Net> nets)
    : vertices(vertices),
      sink(vertices + 2 * static_cast<int32_t>(nets.size())), flow(sink + 1) {
  for (int32_t v = 0; v < vertices; ++v)
    flow.addArc(v, sink, 0);
  for (size_t k = 0; k < nets.size(); ++k) {
    const Net &net = nets[k];
    auto sent = vertices + 2 * static_cast<int32_t>(k), fetched = sent + 1;
    if (net.send > 0) {
      flow.addArc(net.producer, sent, net.send);
      for (int32_t user : net.users)
        flow.addArc(sent, user, unlimited);
    }
    if (net.fetch > 0) {
      for (int32_t user : net.users)
        flow.addArc(user, fetched, unlimited);
      flow.addArc(fetched, net.producer, net.fetch);
    }
  }
  for (size_t arc = 0; arc < flow.numArcs(); ++arc)
    base.push_back(flow.room(arc));
}

double CutFlow::least(int32_t vertex, std::span<const double> weight,
                      double scale, int64_t &steps) {
  for (size_t arc = 0; arc < base.size(); ++arc)
    flow.room(arc) = base[arc] * scale;
  for (int32_t v = 0; v < vertices; ++v)
    flow.room(2 * static_cast<size_t>(v)) = weight[v];
  steps -= static_cast<int64_t>(base.size());
  return flow.run(vertex, sink, steps);
}
