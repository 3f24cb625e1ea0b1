//===- Memory.h - Schedules that fit, or why none does ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_H
#define BAECHI_LIB_PLACEMENT_MEMORY_H

#include "Memory/Names.h"
#include "Memory/Orders.h"
#include "Memory/Proofs.h"
#include "Schedule/Schedule.h"

#include <string>

namespace baechi::placement::memory {

/// Schedules \p device within the memories: freely where that fits, otherwise
/// along an order of its steps that fits (LimitedSchedule.h). \p priorities are
/// more node priorities to try, the best schedule wins. False when no order
/// that fits was found.
bool scheduleWithin(Scheduler &scheduler, const Model &model,
                    const Assignment &device, Schedule &schedule,
                    std::span<const std::vector<int64_t>> priorities = {});
/// The same with \p lean, the model's, which may be known. \p isFirst: nothing
/// else is known that would cut schedules off.
bool scheduleWithin(Scheduler &scheduler, const Model &model, LeanOrders &lean,
                    const Assignment &device, Schedule &schedule,
                    std::span<const std::vector<int64_t>> priorities = {},
                    bool isFirst = false);

/// \p placement, which fits the memories, with one run or transfer after the
/// other, in the order of their ends, or transfers as late as they can be where
/// that fits.
Placement inTurn(const Model &model, const Placement &placement);

/// Peak bytes of every device in the order of steps that exceeds the memories
/// least, of those that were tried.
std::vector<int64_t> leastPeaks(const Model &model, const Assignment &device);
std::vector<int64_t> leastPeaks(const Model &model, LeanOrders &lean,
                                const Assignment &device);

/// How long to look for an assignment that fits: so many trials, that look at
/// so many nodes and tensors in all.
struct RepairEffort {
  int64_t trials, visits;
};
constexpr RepairEffort quickRepair{400, 3'000'000};
constexpr RepairEffort thoroughRepair{5'000, 60'000'000};

/// Moves units until some order of \p device fits: first few, along the least
/// traffic, then by annealing. Deterministic; gives up after a bounded effort
/// and returns false with the closest assignment that was found.
bool repair(const Model &model, Assignment &device,
            const RepairEffort &effort = quickRepair);
/// The same with \p orders, what `leanOrders` finds.
bool repair(const Model &model, Assignment &device, const RepairEffort &effort,
            const std::vector<std::vector<int32_t>> &orders);

/// Units into devices by their resident bytes alone, those with the fewest
/// choices and the largest first, where most is free.
void packUnits(const Model &model, Assignment &device);

/// An assignment that fits whatever time it takes: from several starts, one of
/// them bin packing, by `repair`. False with the closest that was found.
bool findFit(const Model &model, LeanOrders &lean, Assignment &device);

/// Lines that say what \p device, the closest to fit that was found, needs on
/// every device, what there is, the largest culprits, and how much would do.
std::string explainMemory(const Problem &problem, const Model &model,
                          const Assignment &device);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_H
