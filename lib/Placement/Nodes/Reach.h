//===- Reach.h - The best plan on some of the devices -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Proposals that use so many devices, and a local search from the best. What
/// is found depends on nothing but the problem, the number and the budget: not
/// on how large the machine is.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_NODES_REACH_H
#define BAECHI_LIB_PLACEMENT_NODES_REACH_H

#include "Baechi/Placement/Session/Place.h"
#include "Nodes/Proposals.h"

namespace baechi::placement::nodes {

/// The numbers of devices that plans are looked for on, the largest first: all,
/// those of up to eight nodes, of powers of two of nodes, and the equal parts
/// of a node.
std::vector<int32_t> reachesOf(const NodeShape &nodes);

/// What looking at proposals for so many devices, and a search from the best,
/// may cost at most, in operators and edges.
int64_t costOfProposals(int32_t devices);
int64_t costOfSearch(int32_t devices);

class Reach {
public:
  Reach(Proposer &proposer, int32_t devices, const PlaceOptions &options)
      : devices(devices), proposer(proposer), options(options) {}

  /// Looks at proposals, for no more than \p most. \p notes: why there are no
  /// replicas.
  void propose(int64_t most, std::set<std::string> &notes);
  /// Searches from the best, for no more than \p most.
  void search(int64_t most);
  /// Looks at this one alone.
  void consider(Proposal &each, int64_t least = 1);

  const int32_t devices;
  /// The best of the proposals: the same start leads to the same end.
  const Proposal *start = nullptr;
  Proposal best; ///< without a setting: nothing fits
  std::vector<Candidate> candidates;
  int32_t looked = 0;
  bool isCutShort = false; ///< by `most`, not by what it may cost

private:
  void improve(int64_t until);
  bool tryNext(Proposal &next);
  bool isCancelled() const { return options.cancelled && options.cancelled(); }

  Proposer &proposer;
  const PlaceOptions &options;
};

} // namespace baechi::placement::nodes

#endif // BAECHI_LIB_PLACEMENT_NODES_REACH_H
