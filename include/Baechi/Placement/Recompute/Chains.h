//===- Chains.h - Checkpoints of chains -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An order that runs forwards and then back over what forwards has left, as
/// training does, is a chain of stages: what a stage and all behind it read of
/// those before is its checkpoint. Which checkpoints are kept, and when, is the
/// dynamic program of Griewank and Walther (Revolve, ACM TOMS 2000) for stages
/// that differ (Rotor: Beaumont et al., "Optimal checkpointing for
/// heterogeneous chains", INRIA RR-9302, 2019), for all memories at once. Every
/// order is such a chain; whether that is of use, the bytes that its runs hold
/// tell.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_RECOMPUTE_CHAINS_H
#define BAECHI_PLACEMENT_RECOMPUTE_CHAINS_H

#include "Baechi/Placement/Recompute/Recompute.h"

#include <memory>

namespace baechi::placement {

/// Rewrites of \p bases, topological orders of \p graph, as chains. Copies hold
/// the same; the graph is not looked at again.
class ChainRewrites {
public:
  ChainRewrites(const Graph &graph, const RecomputeOptions &options,
                std::span<const RepeatedOrder> bases);

  /// The one with the least time of repeated runs within \p bytes; nullopt:
  /// there is none. Deterministic.
  std::optional<RepeatedOrder> within(int64_t bytes) const;

private:
  struct Tables;
  std::shared_ptr<const Tables> tables;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_RECOMPUTE_CHAINS_H
