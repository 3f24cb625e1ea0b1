//===- Memory.h - Schedules that fit, or why none does ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_H
#define BAECHI_LIB_PLACEMENT_MEMORY_H

#include "Schedule/Schedule.h"

#include <string>

namespace baechi::placement {

/// Schedules \p device within the memories: freely where that fits, otherwise
/// along an order of its steps that fits (LimitedSchedule.h). \p priorities are
/// more node priorities to try, the best schedule wins. False when no order
/// that fits was found.
bool scheduleWithin(Scheduler &scheduler, const Model &model,
                    const Assignment &device, Schedule &schedule,
                    std::span<const std::vector<int64_t>> priorities = {});

/// Peak bytes of every device in the order of steps that exceeds the memories
/// least, of those that were tried.
std::vector<int64_t> leastPeaks(const Model &model, const Assignment &device);

/// Moves units until some order of \p device fits. Deterministic; gives up
/// after a bounded number of trials and returns false.
bool repair(const Model &model, Assignment &device);

/// Units into devices by their memory alone, those with the fewest choices and
/// the largest first: a start for `repair`. False when the resident bytes did
/// not go in.
bool packUnits(const Model &model, Assignment &device);

/// A number of bytes, \p what they are (" bytes"), and from 1 KiB on the size
/// in units for people.
std::string sizeText(__int128 bytes, const char *what = "");

/// A reason why no placement at all can fit; empty when none was found.
std::string proveInfeasible(const Problem &problem, const Model &model);

/// Needed and available bytes per device and in all of \p device, and
/// the largest culprits.
std::string explainMemory(const Problem &problem, const Model &model,
                          const Assignment &device);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MEMORY_H
