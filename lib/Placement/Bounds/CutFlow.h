//===- CutFlow.h - What a device must do around a unit ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BOUNDS_CUTFLOW_H
#define BAECHI_LIB_PLACEMENT_BOUNDS_CUTFLOW_H

#include "Model/MaxFlow.h"

#include <span>

namespace baechi::placement::bounds {

/// For a hypergraph of vertices and directed nets: the least of
///
///   sum of weight(v) over v in S  +  sum of send(n) over nets that S sends
///   +  sum of fetch(n) over nets that S fetches
///
/// over all sets S with a given vertex. A net is sent by S when its producer is
/// in S and some user is not, fetched when some user is and its producer is
/// not. All of it is submodular: a minimum cut of a network of a node a vertex
/// and two a net.
class CutFlow {
public:
  struct Net {
    int32_t producer;
    std::span<const int32_t> users;
    double send, fetch;
  };
  CutFlow(int32_t vertices, std::span<const Net> nets);

  /// \p scale multiplies the nets' costs. Looks at \p steps edges at the most,
  /// which it lowers; what it returns never exceeds the minimum by more than
  /// rounding.
  double least(int32_t vertex, std::span<const double> weight, double scale,
               int64_t &steps);

private:
  int32_t vertices;
  int32_t sink;
  MaxFlow<double> flow;
  std::vector<double> base; ///< rooms of the arcs, before they are scaled
};

} // namespace baechi::placement::bounds

#endif // BAECHI_LIB_PLACEMENT_BOUNDS_CUTFLOW_H
