//===- Replay.h - An order replayed within a number of bytes ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RECOMPUTE_REPLAY_H
#define BAECHI_LIB_PLACEMENT_RECOMPUTE_REPLAY_H

#include "Baechi/Placement/Recompute/Recompute.h"
#include "Model/Model.h"

namespace baechi::placement::recompute {

/// A graph's tensors, who reads them, and what may be computed again.
struct RepeatGraph {
  RepeatGraph(const Graph &graph, const RecomputeOptions &options);

  int32_t numOps() const { return static_cast<int32_t>(timeNs.size()); }
  int32_t numTensors() const { return static_cast<int32_t>(bytes.size()); }
  bool canRepeat(int32_t op) const {
    return !mayRepeat.empty() && mayRepeat[op];
  }
  /// What an operator and its operands take beside what is resident, the most.
  MemoryFloor floor() const;

  std::vector<int64_t> timeNs;      ///< per operator
  std::vector<int64_t> needs;       ///< results and scratch, per operator
  std::vector<int64_t> scratch;     ///< per operator
  std::vector<uint8_t> mayRepeat;   ///< per operator
  std::vector<int32_t> firstTensor; ///< an operator's are consecutive
  std::vector<int64_t> bytes;       ///< per tensor
  std::vector<int32_t> producer;    ///< per tensor
  std::vector<uint8_t> kept;        ///< per tensor: to the end of the step
  Rows operands;                    ///< operator -> tensors
  Rows users;                       ///< tensor -> operators
  Rows controlUsers;                ///< operator -> who waits for it
  int64_t resident = 0;
};

/// What a run of \p runs holds at most; nullopt where one lacks an operand.
std::optional<int64_t> peakOf(const RepeatGraph &graph,
                              std::span<const int32_t> runs);

/// Leaves out repeated runs, the longest first, without which \p order is still
/// within \p bytes.
void dropNeedless(const RepeatGraph &graph, int64_t bytes,
                  RepeatedOrder &order);

/// How the tensors that could be let go compare.
struct Price {
  /// The time of all that must run again, not only of the producer.
  bool chain = true;
  /// A tensor that waits longer is cheaper.
  bool span = true;
};

/// Replays \p base, a topological order, within \p limit bytes. Nullopt where
/// that cannot be, or where more than \p mostAgainNs would run again.
std::optional<RepeatedOrder> replay(const RepeatGraph &graph,
                                    std::span<const int32_t> base,
                                    int64_t limit, const Price &price,
                                    int64_t mostAgainNs);

/// Of a graph of a few operators and tensors, the order within \p limit with
/// the least time of repeated runs, where that is less than \p mostAgainNs;
/// nullopt where there is none, and where the search would take long. Its peak
/// is left open.
std::optional<RepeatedOrder> bestOfSmall(const RepeatGraph &graph,
                                         int64_t limit, int64_t mostAgainNs);

} // namespace baechi::placement::recompute

#endif // BAECHI_LIB_PLACEMENT_RECOMPUTE_REPLAY_H
