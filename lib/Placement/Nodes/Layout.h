//===- Layout.h - What a plan for nodes comes to ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_NODES_LAYOUT_H
#define BAECHI_LIB_PLACEMENT_NODES_LAYOUT_H

#include "Nodes/Stages.h"
#include "Schedule/Schedule.h"

namespace baechi::placement::nodes {

/// What is decided of a replica.
struct Layout {
  int32_t lanes = 1;         ///< devices of a stage
  std::vector<int32_t> cuts; ///< where stages begin in the chain
  Ways ways;                 ///< by operators of the replica
};

/// What a layout comes to.
struct Outcome {
  Problem problem;
  Assignment device;
  Schedule schedule;
};

/// One number of replicas on one number of devices.
class Setting {
public:
  /// \p whole and \p alternatives must outlive it, and be able to be in so
  /// many replicas.
  Setting(const Problem &whole, const Alternatives &alternatives,
          ReplicaShape shape);

  /// The makespan; `never` above \p cutoff or where it does not fit.
  int64_t evaluate(const Layout &layout, int64_t cutoff,
                   Outcome *outcome = nullptr);
  /// No placement of the layout is shorter: what a stage must compute after
  /// what comes to its first operator and before what follows its last.
  int64_t lowerBound(const Layout &layout) const;
  /// Per link of the chain: of the lane that computes longest.
  std::vector<int64_t> loads(const Ways &ways, int32_t lanes) const;
  /// The way of that name of each operator that has it.
  Ways waysNamed(std::string_view name) const;
  /// All likes of an operator in other parts as it.
  void setWay(Ways &ways, int32_t first, int32_t way) const;

  ReplicaShape shape;
  ReplicaGraph replica;
  Chain chain;
  Machine machine;
  std::vector<int32_t> likes; ///< per operator: so many have it as their first
  int64_t cost = 0;           ///< operators and edges of all evaluations

private:
  void findOrder();
  void schedulePipelines(const Model &model, const Assignment &device,
                         const std::vector<Expansion::Origin> &origins,
                         int64_t cutoff, Schedule &schedule) const;
  int64_t pieceNs(int32_t op, const Ways &ways, int32_t lanes,
                  int32_t lane) const;

  const Problem &whole;
  /// What pieces take on the machine's kind, and where those of an operator's
  /// way begin, the whole one's (way -1) first.
  std::vector<int64_t> pieceTimes;
  std::vector<std::vector<size_t>> timesOf;
  std::vector<std::vector<int32_t>> users; ///< by operators
  std::vector<int32_t> order;              ///< operators after what they read
};

} // namespace baechi::placement::nodes

#endif // BAECHI_LIB_PLACEMENT_NODES_LAYOUT_H
