//===- Nodes.cpp - Machines of nodes with devices ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Nodes.h"

#include <fmt/format.h>

using namespace baechi::placement;

Machine baechi::placement::machineOfNodes(const NodeShape &shape,
                                          LinkModel linkModel) {
  Machine machine;
  machine.linkModel = linkModel;
  Nodes nodes;
  nodes.inside = shape.inside;
  nodes.between = shape.between;
  nodes.numCards = shape.nodes * shape.cardsPerNode;
  for (int32_t n = 0; n < shape.nodes; ++n)
    for (int32_t d = 0; d < shape.devicesPerNode; ++d) {
      machine.devices.push_back({fmt::format("n{}.{}{}", n, shape.kind, d),
                                 shape.kind, shape.memory});
      nodes.node.push_back(n);
      nodes.card.push_back(n * shape.cardsPerNode + d % shape.cardsPerNode);
    }
  machine.nodes = std::move(nodes);
  return machine;
}

NodeShape baechi::placement::shapeOf(const Machine &machine) {
  const Nodes &nodes = *machine.nodes;
  NodeShape shape;
  shape.nodes = nodes.node.back() + 1;
  auto count = static_cast<int32_t>(machine.devices.size());
  shape.devicesPerNode = count / shape.nodes;
  shape.cardsPerNode = nodes.numCards / shape.nodes;
  shape.kind = machine.devices.front().kind;
  shape.memory = machine.devices.front().memory;
  shape.inside = *nodes.inside;
  shape.between = nodes.between;
  return shape;
}

std::string baechi::placement::nodeName(const Machine &machine,
                                        int32_t device) {
  return fmt::format("n{}", machine.nodes->node[device]);
}
