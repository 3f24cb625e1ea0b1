//===- Nodes.h - Machines of nodes with devices -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Machines of equal nodes with equal devices: fast links inside a node, a
/// network between nodes, network cards that a node's devices share.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_NODES_H
#define BAECHI_PLACEMENT_MODEL_NODES_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement {

/// What a machine file of nodes says.
struct NodeShape {
  int32_t nodes = 1;
  int32_t devicesPerNode = 1;
  int32_t cardsPerNode = 1; ///< device i of a node uses card i modulo these
  std::string kind;
  int64_t memory = 0; ///< of each device
  Link inside;
  std::optional<Link> between; ///< none: there is one node
};

/// The machine; node 3's device 1 is called "n3.cuda1" if it is a "cuda".
Machine machineOfNodes(const NodeShape &shape, LinkModel linkModel);

/// The shape of a machine that `machineOfNodes` has made.
NodeShape shapeOf(const Machine &machine);

/// "n3" for the device "n3.cuda1".
std::string nodeName(const Machine &machine, int32_t device);

/// What readers say that take devices and links alone.
inline constexpr const char *nodesAreForPlanning =
    "a machine of nodes is one that baechi-place plans for; to compile or "
    "execute, list its devices and links in a file without \"nodes\"";

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_NODES_H
