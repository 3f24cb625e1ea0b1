//===- ExactPlacement.h - Proven optimal placements of small graphs -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A reference for the heuristics: of all placements that docs/formats.md
/// allows, relayed transfers included, one with the least makespan or load, or
/// the proof that none is valid. For up to about 20 operators.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_SESSION_EXACTPLACEMENT_H
#define BAECHI_PLACEMENT_SESSION_EXACTPLACEMENT_H

#include "Baechi/Placement/Session/Place.h"

namespace baechi::placement {

struct ExactOptions {
  Objective objective = Objective::Makespan;
  /// Decisions that are looked at, at most: the search counts these and not
  /// seconds, so that the same input gives the same output.
  int64_t nodeLimit = 2'000'000;
  /// A valid placement to improve, which must outlive the call.
  const Placement *start = nullptr;
  /// Without one: begin with what `place` finds, rather than from nothing.
  bool startFromPlace = true;
};

enum class ExactStatus {
  Optimal,    ///< the placement is proven to be the best
  Infeasible, ///< proven: no placement is valid
  Limit,      ///< the node limit was reached; the placement may not be the best
  Refused,    ///< not a small, well-formed problem: see `error`
};

struct ExactResult {
  ExactStatus status = ExactStatus::Refused;
  /// The best that was found; at the limit there may be none.
  std::optional<Placement> placement;
  /// Its makespan or load.
  int64_t valueNs = 0;
  /// What no valid placement can beat; equal to the value when optimal.
  int64_t lowerBoundNs = 0;
  int64_t nodes = 0;
  std::string error;
};

/// Searches all placements of \p problem. Deterministic. The placement has
/// passed `verify`.
ExactResult exactPlacement(const Problem &problem,
                           const ExactOptions &options = {});

/// Whether any placement of a small problem is valid; nullopt where the node
/// limit was reached or the problem is not well formed or too large.
std::optional<bool> fitsSomehow(const Problem &problem,
                                int64_t nodeLimit = 2'000'000);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_SESSION_EXACTPLACEMENT_H
