//===- StagingPlan.h - Host memory for messages, over time ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Messages that a process takes through pinned host memory have places there
/// by the times at which they are planned to be on their way: two that are not
/// planned at once may have bytes in common. What really happens is another
/// matter, so a message waits until those before it that have bytes of its
/// place have gone through; "before" in the order (group, start, queue,
/// number), which is the same in every process.
///
/// No step stops over this. All that comes before an offer of a message is of
/// an earlier group (Analysis/MessageGroups.h). Let m be the first message, in
/// that order, that does not arrive. Those before it have arrived, so both its
/// ends are offered, and what had its place has gone through. So it arrives.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_STAGINGPLAN_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_STAGINGPLAN_H

#include "Baechi/Runtime/Program.h"

#include <cstdint>
#include <vector>

namespace baechi::runtime::cuda {

struct StagingPlan {
  struct Place {
    int64_t offset = 0;
    /// The messages, by their positions, that must have gone through.
    std::vector<size_t> after;
  };
  /// Of each message, as they were given.
  std::vector<Place> places;
  /// Of all.
  int64_t bytes = 0;
};

/// A message of the program.
struct StagedMessage {
  int32_t queue = 0;
  int32_t seq = 0;
};

/// A program that does not tell the groups of all its messages has a place for
/// each.
StagingPlan planStaging(const Program &program,
                        const std::vector<StagedMessage> &messages);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_STAGINGPLAN_H
