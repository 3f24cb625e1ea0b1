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

#include <functional>
#include <string>

namespace baechi::placement {

/// Schedules \p device within the memories: freely where that fits, otherwise
/// by activation in the first of several topological orders whose sequential
/// peaks fit. \p priorities are more node priorities to try, the best schedule
/// wins. False when no order fits.
bool scheduleWithin(Scheduler &scheduler, const Model &model,
                    const Assignment &device, Schedule &schedule,
                    std::span<const std::vector<int64_t>> priorities = {});

/// A topological order that keeps few bytes alive: depth first from the
/// results, the operand with the largest need first (Liu 1987, "An application
/// of generalized tree pebbling", applied to a DAG as a heuristic).
std::vector<int32_t> lowPeakOrder(const Model &model);

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
