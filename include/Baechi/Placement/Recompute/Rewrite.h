//===- Rewrite.h - Rewrites for memory as graphs ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What runs again, and what waits in a pool, written out as an ordinary graph
/// and placement, so that the rules of placements (`verify`) hold for them too.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_RECOMPUTE_REWRITE_H
#define BAECHI_PLACEMENT_RECOMPUTE_REWRITE_H

#include "Baechi/Placement/Model/Placement.h"
#include "Baechi/Placement/Recompute/Spill.h"

namespace baechi::placement {

/// The graph with an operator for each of \p runs, in their order, each reading
/// what was made last before it. Every operator is among them.
Graph withRepeats(const Graph &graph, std::span<const int32_t> runs);

/// What may run again in a graph that says nothing of effects: what has
/// operands, makes tensors of its own, and is not with resident bytes, which it
/// could update.
RecomputeOptions repeatsOf(const Graph &graph, const std::string &kind);

/// What may wait in a pool of such a graph: what is not resident.
SpillOptions spillsOf(const Graph &graph, const std::string &kind,
                      const Link &out, const Link &in, LinkModel model);

struct PlacedFit {
  Problem problem; ///< the device that computes, then the pool
  Placement placement;
};

/// \p plan, in which no argument lives in the pool, of \p graph: each time that
/// the pool takes a tensor is an operator there without a time.
PlacedFit placed(const Graph &graph, const SpillPlan &plan,
                 const Machine &deviceAndPool);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_RECOMPUTE_REWRITE_H
