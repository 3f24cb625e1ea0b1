//===- Replica.h - One of several replicas of a step ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Replicas compute the parts of a batch, all at once and all alike: one stands
/// for all of them. Its machine has the replica's devices, and beside each one
/// that stands for its like in the next replica. What an operator exchanges
/// is reduced and gathered by its like in all replicas: around a ring
/// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
/// of workstations", 2009) or, by whole nodes whose number is a power of two,
/// by halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization of
/// collective communication operations in MPICH", 2005): messages one after the
/// other, which are one transfer here. As every device sends when it receives,
/// a schedule of one replica is one of all of them, as long; docs/nodes.md has
/// the argument and its tests.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_NODES_REPLICA_H
#define BAECHI_PLACEMENT_NODES_REPLICA_H

#include "Baechi/Placement/Model/Alternatives.h"

namespace baechi::placement {

/// How a machine of nodes is shared: equal replicas of neighbouring devices,
/// of whole nodes or of an equal part of one.
struct ReplicaShape {
  int32_t replicas = 1;
  int32_t devices = 0; ///< of each replica
};

/// Why the graph cannot be in so many replicas on this machine; empty: it can.
std::string whyNoReplicas(const Problem &problem,
                          const Alternatives &alternatives,
                          const ReplicaShape &shape);

/// The operators that one replica computes, of a graph that can be in so many.
struct ReplicaGraph {
  Graph graph;
  Alternatives alternatives;
  std::vector<int32_t> original; ///< per operator, in the whole graph
  /// Per operator, its like in the first part of the batch.
  std::vector<int32_t> first;
};
ReplicaGraph replicaGraph(const Graph &graph, const Alternatives &alternatives,
                          int32_t replicas);

/// How many of the machine's first devices have all that operators are pinned
/// to; at least 1.
int32_t devicesOfPins(const Problem &problem);

/// The machine of the first replica.
Machine replicaMachine(const Machine &machine, const ReplicaShape &shape);

/// The device of \p machine, which `replicaMachine` has made, that stands for
/// the like of \p device.
int32_t nextReplica(const ReplicaShape &shape, int32_t device);

/// An operator of an expansion that is the exchange of another one with the
/// other replicas: it is on that one's next device.
struct Ring {
  int32_t exchange = 0, of = 0;
};

/// Does a replica's operators in these ways (by ids of \p replica), and adds
/// the rings. Returns an error, empty on success.
std::string expandReplica(const ReplicaGraph &replica, const Ways &ways,
                          const ReplicaShape &shape, const Machine &machine,
                          Expansion &expansion, std::vector<Ring> &rings);

/// The problem of the first replica with operators in \p ways of the whole
/// graph. Returns an error, empty on success.
std::string replicaProblem(const Problem &problem,
                           const Alternatives &alternatives, const Ways &ways,
                           const ReplicaShape &shape, Problem &result);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_NODES_REPLICA_H
