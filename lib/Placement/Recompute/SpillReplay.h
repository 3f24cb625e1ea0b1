//===- SpillReplay.h - An order replayed beside a pool ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RECOMPUTE_SPILLREPLAY_H
#define BAECHI_LIB_PLACEMENT_RECOMPUTE_SPILLREPLAY_H

#include "Baechi/Placement/Recompute/Spill.h"
#include "Recompute/Replay.h"

#include <algorithm>
#include <utility>

namespace baechi::placement::recompute {

/// A graph of which some arguments live in the pool.
struct SpillGraph {
  SpillGraph(const Graph &graph, const SpillOptions &options,
             std::span<const int32_t> inPool);

  TensorName nameOf(int32_t tensor) const {
    int32_t op = tensors.producer[tensor];
    return {op, tensor - tensors.firstTensor[op]};
  }

  /// What \p op and its operands take with what is resident.
  int64_t needOf(int32_t op) const;

  RepeatGraph tensors;         ///< bytes and resident ones as they are now
  std::vector<uint8_t> atHome; ///< per tensor: an argument in the pool
  std::vector<uint8_t> mustGo; ///< per tensor: to the pool, in the end
  std::vector<uint8_t> mayGo;  ///< per tensor
  std::vector<int64_t> outNs;  ///< per tensor: its transfer
  std::vector<int64_t> inNs;   ///< per tensor
  std::vector<int64_t> moved;  ///< per tensor: bytes of a transfer
  std::vector<int32_t> inPool; ///< arguments
  /// Per operator: results, and operands in whose room they may be.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> takeOvers;
};

/// The bytes of the results that are in the room of an operand for which
/// \p dies; no operand has two.
template <typename Function>
int64_t bytesTakenOver(const SpillGraph &graph, int32_t op, Function dies) {
  const auto &pairs = graph.takeOvers[op];
  std::vector<int32_t> taken;
  int64_t bytes = 0;
  int32_t placed = -1;
  for (auto [result, operand] : pairs) {
    if (result == placed || !dies(operand) ||
        std::find(taken.begin(), taken.end(), operand) != taken.end())
      continue;
    placed = result;
    taken.push_back(operand);
    bytes += graph.tensors.bytes[result];
  }
  return bytes;
}

/// How the tensors that could go compare.
enum class SpillRule : uint8_t {
  Farthest, ///< the one whose next use is farthest
  Clean,    ///< of those with a copy in the pool, if there are any
  Largest,  ///< the one with most bytes for longest
};

/// What goes when; a stay's `fetch` is its `use`. Nullopt where an operator has
/// no room. \p level: what each position of the order holds.
std::optional<std::vector<Stay>> replayStays(const SpillGraph &graph,
                                             std::span<const int32_t> order,
                                             int64_t limit, SpillRule rule,
                                             std::vector<int64_t> &level);

/// Moves fetches ahead of their uses, as far as there is room within \p limit,
/// until \p slack times what the transfers take has passed.
void fetchEarly(const SpillGraph &graph, std::span<const int32_t> order,
                int64_t limit, int64_t slack, std::vector<Stay> &stays,
                std::vector<int64_t> &level);

/// The times of operators and transfers. Nullopt where the step takes \p mostNs
/// or more; that is seen as soon as what is left to run leads there.
std::optional<SpillPlan> timesOf(const SpillGraph &graph,
                                 const SpillOptions &options,
                                 std::span<const int32_t> order,
                                 std::vector<Stay> stays, int64_t mostNs);

} // namespace baechi::placement::recompute

#endif // BAECHI_LIB_PLACEMENT_RECOMPUTE_SPILLREPLAY_H
