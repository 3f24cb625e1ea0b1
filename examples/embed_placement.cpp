//===- embed_placement.cpp - The placement library alone ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fork and a join of four operators on two devices, placed without MLIR.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Session/Place.h"
#include <cstdio>

using namespace baechi::placement;

int main() {
  Problem problem;
  for (const char *name : {"fork", "left", "right", "join"}) {
    Operator op;
    op.name = name;
    op.timeNs = {{"", 1'000'000}};    // 1 ms on every kind of device
    op.outputs = {Output(64 * 1024)}; // 64 KiB
    problem.graph.ops.push_back(op);
  }
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {1, 0, 3}, {2, 0, 3}};

  problem.machine.devices = {{"a", "host", 1 << 20}, {"b", "host", 1 << 20}};
  problem.machine.links.assign(4, Link{2'000, 8'000}); // 2 us + 8 GB/s
  problem.machine.linkModel = LinkModel::Sequential;

  PlaceResult result = place(problem, PlaceOptions());
  if (!result.placement) {
    std::fprintf(stderr, "%s\n", result.error.c_str());
    return 1;
  }
  for (size_t i = 0; i < problem.graph.ops.size(); ++i)
    std::printf(
        "%-6s on %s at %.3f ms\n", problem.graph.ops[i].name.c_str(),
        problem.machine.devices[result.placement->device[i]].name.c_str(),
        result.placement->startNs[i] / 1e6);
  std::printf("step %.3f ms, no placement can beat %.3f ms ('%s' won)\n",
              result.placement->makespanNs / 1e6, result.lowerBoundNs / 1e6,
              result.winner.c_str());
}
