//===- StepTimes.h - When a step does what ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_STEPTIMES_H
#define BAECHI_DRIVER_REPORT_STEPTIMES_H

#include "Baechi/Analysis/HeldTensors.h"
#include "Baechi/Placement/Schedule/Verify.h"
#include "Baechi/Runtime/Program.h"

namespace baechi {

/// A step as it is predicted, or as it ran. What did not happen has no times.
struct StepTimes {
  std::vector<std::vector<runtime::Interval>> operators; ///< a device each
  std::vector<std::vector<runtime::Interval>> messages;  ///< a queue each
};

StepTimes predictedTimes(const runtime::Program &program);
StepTimes measuredTimes(const runtime::Timeline &timeline);

/// The copies to a pool and from it.
struct PoolCopies {
  int64_t ns = 0;
  /// Of these, while the device at the other end computes.
  int64_t hiddenNs = 0;

  double hiddenPercent() const {
    return ns > 0 ? 100.0 * double(hiddenNs) / double(ns) : 100.0;
  }
};

/// \p pool: a device's position.
PoolCopies poolCopies(const runtime::Program &program, const StepTimes &times,
                      size_t pool);

/// The bytes of each device's arena that hold something, over a step at these
/// times: levels by strictly ascending time, the first at 0.
std::vector<std::vector<placement::MemoryLevel>>
arenaLevels(const std::vector<std::vector<HeldTensor>> &held,
            const StepTimes &times);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_STEPTIMES_H
