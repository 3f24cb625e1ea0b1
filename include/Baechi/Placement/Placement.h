//===- Placement.h - A solution of the placement problem ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_PLACEMENT_H
#define BAECHI_PLACEMENT_PLACEMENT_H

#include "Baechi/Placement/Problem.h"

namespace baechi::placement {

/// One tensor moved from one device to another.
struct Transfer {
  int32_t op = 0;
  int32_t output = 0;
  int32_t from = 0;
  int32_t to = 0;
  int64_t startNs = 0;
  int64_t endNs = 0;
};

/// A device and a start for every operator, and every transfer.
struct Placement {
  std::vector<int32_t> device;     ///< per operator
  std::vector<int64_t> startNs;    ///< per operator
  std::vector<Transfer> transfers; ///< ordered by start
  int64_t makespanNs = 0;
};

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

#endif // BAECHI_PLACEMENT_PLACEMENT_H
