//===- Spill.h - Tensors that wait in a pool --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All operators one after the other on a device within a number of bytes, with
/// a pool beside it: a tensor that waits for a late use goes there and comes
/// back, and arguments may live there. What goes is chosen while the order is
/// replayed, the tensor with the farthest next use first (Belady, IBM Systems
/// Journal 1966) or the one that holds most bytes for longest for the time of
/// its transfers (POFO, Beaumont et al., NeurIPS 2021). What comes back is
/// asked for as late as its transfer allows, as it needs room from then on.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_RECOMPUTE_SPILL_H
#define BAECHI_PLACEMENT_RECOMPUTE_SPILL_H

#include "Baechi/Placement/Recompute/Recompute.h"

namespace baechi::placement {

/// A result of an operator, or an argument.
struct TensorName {
  int32_t op = -1;
  int32_t output = 0;
  bool operator==(const TensorName &) const = default;
};

/// A result that may be written in the room of an operand which is read last.
struct TakeOver {
  int32_t op = -1;
  int32_t output = 0;
  TensorName operand;
};

struct SpillOptions {
  /// Of the device that computes.
  std::string kind;
  /// From the device to the pool, and back.
  Link out, in;
  /// Both take turns.
  bool isShared = true;
  int64_t poolBytes = 0;
  /// Per operator: an argument that may live in the pool.
  std::vector<uint8_t> mayMove;
  /// Per argument that may: its next value, which goes to the pool; an operator
  /// of -1: it has none.
  std::vector<TensorName> nextValue;
  /// Per operator: its results must be on the device at the end.
  std::vector<uint8_t> staysHere;
  /// An operator's one after the other, those first that a plan of the arena
  /// tries first.
  std::vector<TakeOver> takeOvers;
  /// So many states are looked at for the best plan of a graph of up to 24
  /// operators and tensors; graph files ask for it, passes not yet.
  size_t smallStates = 0;
};

/// A tensor's time away from the device. Positions are of the order.
struct Stay {
  TensorName tensor;
  /// Its room is another's from here on; -1: it was not there before.
  int32_t gone = -1;
  /// It has room again from here on, and is used at `use`; -1: it stays away.
  int32_t fetch = -1, use = -1;
  /// When its transfers run; -1: it has none, as the pool has the tensor, or
  /// nothing comes back.
  int64_t outStartNs = -1, outEndNs = -1, inStartNs = -1, inEndNs = -1;
  /// When the pool makes the tensor that comes back, or is left, out of the one
  /// before, and what that takes; -1: it is an argument that comes.
  int64_t stashStartNs = -1, stashNs = 0;
};

struct SpillPlan {
  std::vector<int32_t> order;   ///< operators
  std::vector<int32_t> inPool;  ///< arguments that live in the pool
  std::vector<Stay> stays;      ///< a tensor's one after the other
  std::vector<int64_t> startNs; ///< per operator
  int64_t makespanNs = 0;
  int64_t peakBytes = 0;
  int64_t outBytes = 0, inBytes = 0; ///< what transfers move
};

/// Per operator: its operands, results and scratch, and what must be resident,
/// whatever waits in the pool.
std::vector<int64_t> spillNeeds(const Graph &graph,
                                const SpillOptions &options);

/// The operator that needs most.
MemoryFloor floorOf(std::span<const int64_t> needs);

/// What no plan goes under: that of spillNeeds().
MemoryFloor spillFloor(const Graph &graph, const SpillOptions &options);

/// The plan with the shortest step that was found within \p bytes by replaying
/// \p bases, topological orders; nullopt: none was. Deterministic.
std::optional<SpillPlan> spillWithin(const Graph &graph,
                                     const SpillOptions &options,
                                     std::span<const RepeatedOrder> bases,
                                     int64_t bytes);

/// What runs, perhaps more than once, and a plan of these runs: its operators
/// are their numbers.
struct RunsWithStays {
  std::vector<int32_t> runs;
  SpillPlan plan;
};

/// Of a graph of up to 24 operators and tensors, the shortest step within
/// \p bytes that a search over orders, repeated runs and stays finds, where it
/// takes less than \p mostNs; nullopt: it finds none. Arguments stay where they
/// are, and no result is in an operand's place. Deterministic.
std::optional<RunsWithStays>
repeatAndSpillWithin(const Graph &graph, const RecomputeOptions &repeats,
                     const SpillOptions &options, int64_t bytes,
                     int64_t mostNs);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_RECOMPUTE_SPILL_H
