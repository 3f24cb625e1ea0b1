//===- PlanNodes.h - Plans for machines of nodes ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Plans a step on a machine of nodes from the inside out: operators in pieces
/// on the devices of a stage, inside a node; stages, one after the other, on
/// the devices of a replica; replicas on what is left. One replica stands for
/// all (Replica.h), so that a plan for a thousand devices is evaluated exactly
/// and soon.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_NODES_PLANNODES_H
#define BAECHI_PLACEMENT_NODES_PLANNODES_H

#include "Baechi/Placement/Nodes/Replica.h"
#include "Baechi/Placement/Session/Place.h"

namespace baechi::placement {

/// A plan that a person would write: all operators in ways of one name, stages
/// of about equal work with borders where little crosses (between layers),
/// replicas.
struct Grid {
  std::string way; ///< of an alternative; empty: as operators are
  int32_t stages = 1;
  int32_t replicas = 1;
};

/// Reads "WAY:STAGES:REPLICAS" ("tensor/8:4:2", "whole:8:1"). Returns an error,
/// empty on success.
std::string parseGrid(std::string_view text, Grid &grid);

struct NodePlan {
  ReplicaShape shape;
  int32_t lanes = 1; ///< devices of a stage
  int32_t stages = 1;
  Ways ways; ///< by ids of the whole graph; of other replicas' parts -1
  /// The first replica, its operators in their ways: what the result is of.
  Problem problem;
  PlaceResult result;
  int32_t looked = 0;  ///< plans that were evaluated
  int32_t skipped = 0; ///< that could be better, but for the budget
};

/// Plans. The result has an error where `check` or `checkAlternatives` has
/// anything to say, or nothing fits. Deterministic unless a budget of seconds
/// is given.
NodePlan planNodes(const Problem &problem, const Alternatives &alternatives,
                   const PlaceOptions &options);

/// The placement of a grid, which has as many devices as its way has pieces to
/// a stage.
NodePlan placeGrid(const Problem &problem, const Alternatives &alternatives,
                   const Grid &grid);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_NODES_PLANNODES_H
