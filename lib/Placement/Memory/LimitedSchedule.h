//===- LimitedSchedule.h - A schedule within the memories -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The list scheduler of Schedule.h under memory limits: of what is ready, the
/// most urgent step starts whose bytes are free now and that leaves the rest a
/// way to finish (Certificate.h). Urgent steps that would not are passed over,
/// the next of the certificate's order can always run, so that no schedule
/// ends in a dead-lock.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_LIMITEDSCHEDULE_H
#define BAECHI_LIB_PLACEMENT_MEMORY_LIMITEDSCHEDULE_H

#include "Memory/Steps.h"

namespace baechi::placement::memory {

struct LimitedOptions {
  /// Larger is more urgent, one a node.
  std::span<const int64_t> priority;
  /// So many of the most urgent are looked at before the certificate's next
  /// step gets its turn.
  int32_t depth = 16;
  /// Gives up once the makespan must be larger.
  int64_t cutoff = never;
};

/// Schedules \p steps within the memories. The sequence \p order must fit them;
/// where it does not, or beyond the cut-off, the makespan is `never`.
/// O(n log n) for a bounded depth and a bounded number of devices.
Schedule scheduleLimited(const Steps &steps, std::span<const Step> order,
                         const LimitedOptions &options);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_LIMITEDSCHEDULE_H
