//===- NodesGraph.h - A graph with parts, exchanges and ways ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_NODESGRAPH_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_NODESGRAPH_H

#include "Baechi/Costs/Roofline.h"
#include "Baechi/Placement/Model/Alternatives.h"
#include "BatchRoles.h"

namespace baechi::split {

struct NodesOptions {
  /// The numbers of pieces of ways: `data/K` where K divides a part's rows.
  llvm::SmallVector<int64_t> pieces;
  /// By which times of wholes become those of pieces.
  llvm::SmallVector<Roofline> rooflines;
  /// Of the devices that add up summands.
  std::string kind;
};

/// What a graph file for a machine of nodes says (docs/nodes.md).
struct NodesGraph {
  placement::Graph graph;
  placement::Alternatives alternatives;
};

NodesGraph nodesGraph(const BatchRoles &batch, const NodesOptions &options);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_NODESGRAPH_H
