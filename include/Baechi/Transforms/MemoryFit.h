//===- MemoryFit.h - What made a step fit -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_MEMORYFIT_H
#define BAECHI_TRANSFORMS_MEMORYFIT_H

#include <cstdint>
#include <string>
#include <vector>

namespace baechi {

/// How a step was rewritten so that it holds fewer bytes at once.
struct MemoryFit {
  /// All operators one after the other, resident bytes among them, as the step
  /// was and as it is.
  int64_t peakBefore = 0, peakAfter = 0;
  /// No rewrite of this kind goes under it: what is resident and what the
  /// operator that needs most by itself reads, makes and works in.
  int64_t floorBytes = 0;
  std::string floorOperator;
  /// The time of all operators, and of those that run again.
  int64_t workNs = 0, againNs = 0;
  /// An operator that runs again.
  struct Again {
    std::string name;
    int64_t times = 0;
    int64_t ns = 0;    ///< of all these times
    int64_t bytes = 0; ///< of its results
  };
  std::vector<Again> again; ///< those that take most time first
};

} // namespace baechi

#endif // BAECHI_TRANSFORMS_MEMORYFIT_H
