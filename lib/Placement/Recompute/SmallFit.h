//===- SmallFit.h - The shortest step of a small graph ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RECOMPUTE_SMALLFIT_H
#define BAECHI_LIB_PLACEMENT_RECOMPUTE_SMALLFIT_H

#include "Recompute/SpillReplay.h"

#include <array>
#include <bit>

namespace baechi::placement::recompute {

/// A small graph in time.
namespace small {

using Set = uint32_t;
constexpr int8_t none = -1;

inline Set bit(int32_t member) { return Set(1) << member; }
inline int32_t firstOf(Set set) { return std::countr_zero(set); }

enum class Act : uint8_t { Wait, Run, Out, In };

/// What holds at a time.
struct State {
  Set done = 0;    ///< operators, with the one under way
  Set here = 0;    ///< tensors with room, with those under way
  Set pool = 0;    ///< tensors with a copy there
  Set fetched = 0; ///< of these, what the pool has to copy before it is sent
  int64_t now = 0, runEnd = 0, moveEnd = 0;
  std::array<int64_t, mostMembers> copied{}; ///< when, per tensor
  int8_t running = none, moving = none;
  bool isOut = false;
  /// The device or the link has just become free.
  bool runFree = true, moveFree = true;
  /// What has just come, or has just been copied to the pool: all that could
  /// begin without it has begun before.
  Set come = 0, left = 0;
  bool isWorse = false; ///< than another state
  Act act = Act::Wait;  ///< that led here
  int8_t what = none;
  int32_t before = -1; ///< number of a state
};

/// What the states from the first to the last do, one after the other; nullopt
/// where that is no plan.
std::optional<RunsWithStays> planOf(const SpillGraph &graph,
                                    std::span<const State> way);

} // namespace small

/// Of a graph of a few operators and tensors, the shortest step within \p limit
/// that a search over so many states finds, where it takes less than \p mostNs;
/// nullopt: it finds none. No argument lives in the pool, and no result is in
/// an operand's place.
/// \p mayRepeat: as RecomputeOptions, none may where it is empty.
std::optional<RunsWithStays> shortestOfSmall(const SpillGraph &graph,
                                             std::span<const uint8_t> mayRepeat,
                                             int64_t limit, int64_t mostNs,
                                             size_t mostStates);

} // namespace baechi::placement::recompute

#endif // BAECHI_LIB_PLACEMENT_RECOMPUTE_SMALLFIT_H
