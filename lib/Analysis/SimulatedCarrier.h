//===- SimulatedCarrier.h - Who moves simulated messages --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The thread that copies what has passed its simulated link
/// (runtime/core/Carrier.h), where it shares the devices' processors: one
/// message after the other, in the order in which they have passed.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_ANALYSIS_SIMULATEDCARRIER_H
#define BAECHI_LIB_ANALYSIS_SIMULATEDCARRIER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace baechi {

class SimulatedCarrier {
public:
  void add(int64_t arrival, int32_t queue, int32_t seq) {
    passed.push({arrival, queue, seq});
  }

  /// The next queue and number of what has passed by \p now.
  std::optional<std::pair<int32_t, int32_t>> next(int64_t now) {
    if (passed.empty() || std::get<0>(passed.top()) > now)
      return std::nullopt;
    auto [arrival, queue, seq] = passed.top();
    passed.pop();
    return std::pair(queue, seq);
  }

  /// When a copy that takes so long has ended.
  int64_t copy(int64_t now, int64_t ns) {
    return freeAt = std::max(now, freeAt) + ns;
  }

  /// Whom it keeps from its processor: nobody where one does nothing, else who
  /// works where it was last, as the kernel's scheduler has it.
  std::optional<size_t> disturbs(size_t processors,
                                 llvm::function_ref<bool(size_t)> isBusy) {
    if (!isBusy(last))
      return std::nullopt;
    for (size_t processor = 0; processor < processors; ++processor)
      if (!isBusy(processor)) {
        last = processor;
        return std::nullopt;
      }
    return last;
  }

private:
  using Passed = std::tuple<int64_t, int32_t, int32_t>;
  std::priority_queue<Passed, std::vector<Passed>, std::greater<>> passed;
  int64_t freeAt = 0;
  size_t last = 0;
};

} // namespace baechi

#endif // BAECHI_LIB_ANALYSIS_SIMULATEDCARRIER_H
