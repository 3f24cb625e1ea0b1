//===- Pace.h - When a budget lets the next round begin ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_PACE_H
#define BAECHI_RUNTIME_STORE_PACE_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace baechi::store {

using Time = std::chrono::steady_clock;

/// A token bucket in time. While rows wait, all time counts: a round that
/// begins late, as on a busy machine, is followed by others at once until what
/// was missed is made up for. Time in which nothing waited is not saved.
class Pace {
public:
  explicit Pace(std::optional<double> bytesPerSecond,
                Time::time_point begin = Time::now())
      : rate(bytesPerSecond), begin(begin) {}

  /// When the next round may begin.
  Time::time_point next() const { return begin; }

  /// After a round of \p bytes that ended at \p now; 0 where nothing waited.
  void sent(size_t bytes, Time::time_point now) {
    if (!rate || !std::isfinite(*rate))
      return;
    std::chrono::duration<double> takes(double(bytes) / *rate);
    begin = std::max(begin, bytes == 0 ? now : now - makesUp) +
            std::chrono::duration_cast<Time::duration>(takes);
  }

private:
  /// The most that is made up for: longer ones are a machine that slept.
  static constexpr std::chrono::seconds makesUp{1};
  std::optional<double> rate;
  Time::time_point begin;
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_PACE_H
