//===- LoadGraph.h - What makes the loads of devices ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The hypergraph behind the objective max-load. Its vertices are colocation
/// units or clusters of these; a net stands for the tensors that one vertex
/// sends to the same set of others, since these are always cut alike. Order
/// and dependences do not matter to loads and are left out.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LOADGRAPH_H
#define BAECHI_LIB_PLACEMENT_LOADGRAPH_H

#include "Model/Model.h"

namespace baechi::placement {

struct LoadGraph {
  /// Every unit a vertex.
  explicit LoadGraph(const Model &model);
  /// \p vertexOf: a vertex below \p count for every unit of \p model, which
  /// must outlive the graph.
  LoadGraph(const Model &model, std::span<const int32_t> vertexOf,
            int32_t count);

  int32_t numVertices() const { return produces.size(); }
  int32_t numNets() const { return static_cast<int32_t>(producer.size()); }
  int64_t timeOf(int32_t v, int32_t d) const {
    return time[static_cast<size_t>(v) * devices + d];
  }
  bool mayUse(int32_t v, int32_t d) const {
    return allowed[static_cast<size_t>(v) * devices + d] != 0;
  }
  /// Time of a net's transfers from one device to another; they must be linked.
  int64_t transferNs(int32_t net, int32_t from, int32_t to) const {
    return transfer[static_cast<size_t>(net) * classes +
                    linkClass[from * devices + to]];
  }
  bool linked(int32_t from, int32_t to) const {
    return linkClass[from * devices + to] >= 0;
  }
  /// The device that passes a tensor on to \p to on its way from \p home, as in
  /// the model.
  int32_t hopBefore(int32_t home, int32_t to) const {
    return hops[home * devices + to];
  }
  /// Whether a net cannot be sent from one device to the other.
  bool isBlocked(int32_t net, int32_t from, int32_t to) const {
    return signals[net] ? !linked(from, to) : hopBefore(from, to) < 0;
  }
  /// Nets and vertices that a change of \p v looks at.
  int64_t degree(int32_t v) const {
    return 1 + static_cast<int64_t>(produces[v].size() + consumes[v].size());
  }

  int32_t devices;
  int32_t classes;
  bool lacksLinks; ///< the model's

  // Vertices.
  std::vector<int64_t> time;     ///< [v * devices + d]; 0 where not allowed
  std::vector<uint8_t> allowed;  ///< [v * devices + d]
  std::vector<int64_t> resident; ///< bytes always
  std::vector<int64_t> passing;  ///< bytes of all outputs and scratch together
  Rows produces;                 ///< vertex -> nets that it sends
  Rows consumes;                 ///< vertex -> nets that it reads

  // Nets.
  std::vector<int32_t> producer;
  std::vector<int64_t> transfer; ///< [net * classes + class], nanoseconds
  std::vector<int64_t> copy;     ///< bytes of the received copies
  std::vector<uint8_t> signals;  ///< also a control edge's: is not passed on
  Rows users;                    ///< net -> vertices other than the producer

private:
  void addVertices(const Model &model, std::span<const int32_t> vertexOf,
                   int32_t count);
  void addNets(const Model &model, std::span<const int32_t> vertexOf,
               int32_t count);

  std::span<const int32_t> linkClass, hops; ///< the model's
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_LOADGRAPH_H
