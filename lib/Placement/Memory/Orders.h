//===- Orders.h - Orders that keep few bytes alive --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The least peak over all orders of a graph is NP-hard to find (Sethi 1975),
/// also to approximate. Good orders are: depth first, or from one valley of the
/// memory to the next; then what shrinks the memory as early as it can, and
/// what makes it grow as late.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_ORDERS_H
#define BAECHI_LIB_PLACEMENT_MEMORY_ORDERS_H

#include "Memory/Steps.h"

namespace baechi::placement::memory {

/// \p base with every step that leaves no more bytes than it found taken as
/// soon as what it waits for is there, the one that frees most first. Where
/// such a step has room to run, that is never worse than any other choice.
/// O(n log n).
StepOrder hoistShrinking(const Steps &steps, std::span<const Step> base);

/// The same seen from the end: every step whose results are larger than what
/// it lets go is taken as late as its uses allow.
StepOrder sinkGrowing(const Steps &steps, std::span<const Step> base);

/// An order of segments, each from one low level of memory to the next, of the
/// few that are tried out the one with the least peak. \p base breaks ties; \p
/// climbs: a segment may go up again before its end. O(n) for bounded degrees.
StepOrder valleyOrder(const Steps &steps, std::span<const Step> base,
                      bool climbs);

/// About a tenth of a second.
constexpr int64_t mendingEffort = 20'000'000;

/// Steps of one device in the order of \p base, with less held where most is:
/// around the step that needs most others are put before or after it, as long
/// as that helps and more than \p enough bytes are needed. No worse than \p
/// base.
/// \p effort: steps and arcs that are looked at, about.
StepOrder mendWindows(const Steps &steps, std::span<const Step> base,
                      int64_t enough, int64_t effort);

/// Topological orders of nodes that hold few bytes if all are on one device,
/// the best three first: of the depth-first order, and what the passes make of
/// it, of the longest paths first and of orders from valley to valley.
std::vector<std::vector<int32_t>> leanOrders(const Model &model);

/// Those of a model, which must outlive this; found once they are asked for.
class LeanOrders {
public:
  explicit LeanOrders(const Model &model) : model(model) {}
  const std::vector<std::vector<int32_t>> &get() {
    if (orders.empty())
      orders = leanOrders(model);
    return orders;
  }

private:
  const Model &model;
  std::vector<std::vector<int32_t>> orders;
};

/// Orders of nodes as orders of steps, transfers as late as can be.
std::vector<StepOrder>
plainOrders(const Steps &steps,
            std::span<const std::vector<int32_t>> nodeOrders);

/// Bytes above the memories, over all devices.
int64_t excessOf(const Model &model, std::span<const int64_t> peaks);

struct FoundOrder {
  StepOrder order;
  std::vector<int64_t> peaks; ///< per device
  int64_t excess = never;     ///< bytes above the memories; 0: it fits
};

/// The best order that a bounded number of these passes makes of \p bases,
/// topological orders of steps of which there is at least one; ends at the
/// first that fits. For a few steps, a search over all orders follows.
FoundOrder findOrder(const Steps &steps, std::span<const StepOrder> bases);

/// Some order that fits, by a search over the sets of steps that can be done
/// (Held & Karp 1962, without an objective), for at most 64 steps and until
/// \p stateLimit sets were seen; empty when there is none. \p complete: no set
/// was left out, so that an empty answer is a proof.
StepOrder searchOrder(const Steps &steps, int64_t stateLimit, bool &complete);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_ORDERS_H
