//===- Recompute.h - Less memory for more work ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All operators one after the other within a number of bytes: a tensor that
/// waits for a late use is let go and computed again, as are its operands where
/// they are gone by then. What is let go is chosen while the order is replayed,
/// as in Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021), but
/// with the uses to come known: the least time a byte and a position of the
/// order until the next use.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_RECOMPUTE_RECOMPUTE_H
#define BAECHI_PLACEMENT_RECOMPUTE_RECOMPUTE_H

#include "Baechi/Placement/Model/Problem.h"

#include <optional>
#include <span>

namespace baechi::placement {

/// A step in which operators may run more than once.
struct RepeatedOrder {
  /// Operators; a tensor is what its producer's last run before made.
  std::vector<int32_t> runs;
  /// Most bytes at once, resident ones among them.
  int64_t peakBytes = 0;
  /// Time of the runs that are not an operator's first.
  int64_t againNs = 0;
};

struct RecomputeOptions {
  /// Of the device that all times are of; of an operator without a time for it,
  /// its first one.
  std::string kind;
  /// Per operator: it has no effects and makes the same again. Operators that
  /// others wait for by control edges run again before those only: there a
  /// tensor that they read may be overwritten.
  std::vector<uint8_t> mayRepeat;
};

/// What no order goes under, whatever runs again: resident bytes, and the
/// operands, results and scratch of the operator that needs most.
struct MemoryFloor {
  int64_t bytes = 0;
  int32_t op = -1;
};
MemoryFloor memoryFloor(const Graph &graph);

/// The operators by their numbers, as far as they need not wait. \p graph: well
/// formed (check).
std::vector<int32_t> orderOfFile(const Graph &graph);

/// Orders with few bytes at once, each operator in them once, the best first.
/// Among them those that follow the program: forwards, then backwards, where
/// what is let go early is needed late. \p graph: well formed (check).
std::vector<RepeatedOrder> leanOrdersOf(const Graph &graph,
                                        const RecomputeOptions &options);

/// An order in which each operator runs once, and what none of these goes
/// under: one of some operators has so many bytes while it runs, whatever the
/// order.
struct LeanestOrder {
  RepeatedOrder order;
  int64_t floorBytes = 0;
  std::vector<int32_t> floorOps;
};

/// The best that can be made of \p orders, those of leanOrdersOf().
LeanestOrder leanestOf(const Graph &graph,
                       std::span<const RepeatedOrder> orders);

/// So many operators, and tensors, has a graph at most of which all orders are
/// searched.
inline constexpr int32_t mostMembers = 24;
bool areAllSearched(const Graph &graph);

class ChainRewrites;

/// The order with the least time of repeated runs that was found within
/// \p bytes by replaying \p bases, topological orders, or among \p chains
/// (Chains.h); nullopt: none was. Deterministic.
std::optional<RepeatedOrder>
recomputeWithin(const Graph &graph, const RecomputeOptions &options,
                std::span<const RepeatedOrder> bases, int64_t bytes,
                const ChainRewrites &chains);

/// What a run of \p runs holds at most; nullopt where one lacks an operand.
/// Every tensor is let go after the last run that reads what that run made.
std::optional<int64_t> peakOfRuns(const Graph &graph,
                                  std::span<const int32_t> runs);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_RECOMPUTE_RECOMPUTE_H
