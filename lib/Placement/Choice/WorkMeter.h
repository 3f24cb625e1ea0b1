//===- WorkMeter.h - How much a solver may still do -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHOICE_WORKMETER_H
#define BAECHI_LIB_PLACEMENT_CHOICE_WORKMETER_H

#include "Baechi/Placement/Choice/SolveChoice.h"

#include <algorithm>
#include <chrono>

namespace baechi::placement::choice {

/// Counts entries of tables, and seconds where those end the search.
class WorkMeter {
public:
  WorkMeter(const ChoiceOptions &options, uint64_t limit)
      : options(options), limit(limit), begin(Clock::now()) {}

  void charge(uint64_t entries) { used += entries; }
  uint64_t work() const { return used; }
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  /// The share that is spent, from 0 to 1.
  double spent() const {
    if (options.cancelled && options.cancelled())
      return 1;
    double share =
        limit > 0 ? static_cast<double>(used) / static_cast<double>(limit) : 0;
    if (options.seconds > 0)
      share = std::max(share, seconds() / options.seconds);
    return std::min(share, 1.0);
  }
  bool isSpent() const { return spent() >= 1; }

private:
  using Clock = std::chrono::steady_clock;
  const ChoiceOptions &options;
  uint64_t limit;
  uint64_t used = 0;
  Clock::time_point begin;
};

} // namespace baechi::placement::choice

#endif // BAECHI_LIB_PLACEMENT_CHOICE_WORKMETER_H
