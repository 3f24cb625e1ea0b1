//===- Proposals.h - Plans to look at ---------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All operators in ways of one name, and the ways of the pairwise program for
/// the devices of a stage, in as many contiguous stages as there are devices
/// for, on replicas of equal parts of a node and of whole nodes: every grid is
/// among them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_NODES_PROPOSALS_H
#define BAECHI_LIB_PLACEMENT_NODES_PROPOSALS_H

#include "Baechi/Placement/Model/Nodes.h"
#include "Nodes/Layout.h"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace baechi::placement::nodes {

/// A layout of a setting, and what is known of it.
struct Proposal {
  Setting *setting = nullptr;
  Layout layout;
  std::string name;
  int64_t bound = 0;
  int64_t ns = never;
  /// Where `ns` is not known: it takes longer than this.
  int64_t above = -1;
  bool isSkipped = false; ///< there was no budget left for it
};

/// "WAY, 2 stages of 8, 4 replicas".
std::string nameOf(const Proposal &of, const std::string &way);

/// Parts of the batch.
int32_t numParts(const Graph &graph);

class Proposer {
public:
  /// \p mixes: ways of several names, too.
  Proposer(const Problem &problem, const Alternatives &alternatives, bool mixes)
      : problem(problem), alternatives(alternatives),
        nodes(shapeOf(problem.machine)), mixes(mixes) {}

  /// Of settings that use \p devices: each of as many replicas as there are
  /// devices and parts for. Those of one setting are the same ones each time.
  /// Adds to the notes why there are no replicas.
  std::vector<Proposal *> run(int32_t devices, std::set<std::string> &notes);

  /// Operators and edges of all evaluations.
  int64_t spent() const;
  /// Proposals that could be better than \p ns, but for the budget.
  int32_t numSkipped(int64_t ns) const;

private:
  /// Ways by ids of the whole graph.
  using WaysById = std::map<int32_t, int32_t>;
  struct Known {
    std::unique_ptr<Setting> setting;
    std::vector<Proposal> proposals;
  };

  std::vector<ReplicaShape> shapesOf(int32_t devices,
                                     std::set<std::string> &notes);
  void propose(Known &known);
  void add(Known &known, const std::string &name, const Ways &ways,
           int32_t lanes);
  void addMixed(Known &known, int32_t lanes);
  std::vector<WaysById> mixedWays(int32_t lanes) const;

  const Problem &problem;
  const Alternatives &alternatives;
  NodeShape nodes;
  bool mixes;
  std::map<std::pair<int32_t, int32_t>, Known> known; ///< by replicas, devices
  std::map<int32_t, std::vector<WaysById>> mixed;     ///< by devices of a stage
};

} // namespace baechi::placement::nodes

#endif // BAECHI_LIB_PLACEMENT_NODES_PROPOSALS_H
