//===- LeastMemory.cpp - What no plan of a step goes under ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Stashing.h"

using namespace mlir;
using namespace baechi;

/// \p graph, where what is put together takes what its parts leave of it.
static placement::Graph withPartsInPlace(const StepGraph &graph) {
  placement::Graph joined = graph.graph;
  SymbolTableCollection symbols;
  auto isJoin = [&](int32_t id) {
    Operation *op = graph.operation(id);
    return op && !partsOf(op, symbols).empty();
  };
  for (const placement::Edge &edge : graph.graph.edges)
    if (edge.output >= 0 && isJoin(edge.to)) {
      int64_t &whole = joined.ops[edge.to].outputs.front().memory;
      int64_t part = graph.graph.ops[edge.from].outputs[edge.output].memory;
      whole = std::max<int64_t>(whole - part, 0);
    }
  return joined;
}

std::vector<int64_t> baechi::leastMemoryByOperator(const StepGraph &graph) {
  placement::SpillOptions options;
  findMovable(graph, options);
  options.mayMove.assign(graph.graph.ops.size(), 0);
  return placement::spillNeeds(withPartsInPlace(graph), options);
}

placement::MemoryFloor baechi::leastMemory(const StepGraph &graph) {
  return placement::floorOf(leastMemoryByOperator(graph));
}
