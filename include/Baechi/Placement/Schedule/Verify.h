//===- Verify.h - Whether a placement is one, and its replay ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_SCHEDULE_VERIFY_H
#define BAECHI_PLACEMENT_SCHEDULE_VERIFY_H

#include "Baechi/Placement/Model/Placement.h"

#include <string>
#include <vector>

namespace baechi::placement {

/// What a device does during one step of a placement.
struct DeviceUsage {
  int64_t busyNs = 0;
  int64_t peakBytes = 0;
  int64_t peakAtNs = 0;
  int64_t residentBytes = 0;
  int64_t sentBytes = 0;
  int32_t operators = 0;
};

/// Memory and busy time of every device, by replay.
std::vector<DeviceUsage> usage(const Problem &problem,
                               const Placement &placement);

/// The bytes that a device holds from a time on, until the next level.
struct MemoryLevel {
  int64_t atNs = 0;
  int64_t bytes = 0;
};

/// The memory of every device over the step, by the same replay: levels by
/// strictly ascending time, the first at 0. Empty when the placement does not
/// have the shape of the problem.
std::vector<std::vector<MemoryLevel>>
memoryOverTime(const Problem &problem, const Placement &placement);

/// All violations of a placement: precedence with transfers, one operator at
/// a time per device, link exclusivity, memory by replay, colocation, pins,
/// support, makespan. Written independently of every algorithm. Empty: valid.
/// \p usage, where there is one, gets what `usage` returns.
std::vector<std::string> verify(const Problem &problem,
                                const Placement &placement,
                                std::vector<DeviceUsage> *usage = nullptr);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_SCHEDULE_VERIFY_H
