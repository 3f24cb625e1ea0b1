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

namespace baechi::placement::nodes {

/// A layout of a setting, and what is known of it.
struct Proposal {
  Setting *setting = nullptr;
  Layout layout;
  std::string name;
  int64_t bound = 0;
  int64_t ns = never;
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

  /// Adds the settings, and to the notes why there are no replicas.
  std::vector<Proposal> run(std::vector<std::unique_ptr<Setting>> &settings,
                            std::set<std::string> &notes);

private:
  /// Ways by ids of the whole graph.
  using WaysById = std::map<int32_t, int32_t>;

  void addSettings(std::vector<std::unique_ptr<Setting>> &settings,
                   std::set<std::string> &notes) const;
  void propose(Setting &setting);
  void add(Setting &setting, const std::string &name, const Ways &ways,
           int32_t lanes);
  void addMixed(Setting &setting, int32_t lanes);
  std::vector<WaysById> mixedWays(int32_t lanes) const;

  const Problem &problem;
  const Alternatives &alternatives;
  NodeShape nodes;
  bool mixes;
  std::vector<Proposal> proposals;
  std::map<int32_t, std::vector<WaysById>> mixed; ///< by devices of a stage
};

} // namespace baechi::placement::nodes

#endif // BAECHI_LIB_PLACEMENT_NODES_PROPOSALS_H
