//===- Stages.h - A step's operators as a chain -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_NODES_STAGES_H
#define BAECHI_LIB_PLACEMENT_NODES_STAGES_H

#include "Baechi/Placement/Nodes/Replica.h"

namespace baechi::placement::nodes {

/// The operators of a replica in links of a chain, which stages are intervals
/// of. A link has what belongs together: a colocation group, a backward
/// operator with its forward one, what no part of the batch has (a parameter,
/// an update) with who reads it, and all likes in other parts.
struct Chain {
  explicit Chain(const ReplicaGraph &replica);

  std::vector<int32_t> linkOf; ///< per operator of the replica
  int32_t numLinks = 0;
  /// Bytes of a part's tensors, each once, that are read across the border
  /// before a link.
  std::vector<int64_t> crossing;

private:
  void findCrossing(const ReplicaGraph &replica);
};

/// Where stages begin, the first at 0: as many intervals of \p load, each as
/// near to an equal share as can be where the running sum is cut.
std::vector<int32_t> evenCuts(const std::vector<int64_t> &load, int32_t stages);

/// The same, but each cut is where the fewest bytes cross, of the borders that
/// are at most half a share away; the nearest of those.
std::vector<int32_t> narrowCuts(const std::vector<int64_t> &load,
                                const std::vector<int64_t> &crossing,
                                int32_t stages);

/// As many intervals with the least largest sum (by bisection over it, each
/// interval as long as can be).
std::vector<int32_t> balancedCuts(const std::vector<int64_t> &load,
                                  int32_t stages);

} // namespace baechi::placement::nodes

#endif // BAECHI_LIB_PLACEMENT_NODES_STAGES_H
