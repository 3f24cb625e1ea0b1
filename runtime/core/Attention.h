//===- Attention.h - Time that a watchdog may count -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_ATTENTION_H
#define BAECHI_RUNTIME_CORE_ATTENTION_H

#include <algorithm>
#include <chrono>

namespace baechi::runtime {

/// How often a running step is looked after.
inline constexpr std::chrono::milliseconds tick(20);

/// The time in which the coordinator looked after the devices: a look counts
/// for no more than two ticks, or what is said. A process that was suspended,
/// or a machine that slept or ran others, gave the devices no time either and
/// is not counted.
class Attention {
  using Clock = std::chrono::steady_clock;

public:
  explicit Attention(Clock::duration most = 2 * tick) : most(most) {}

  /// To be called every tick.
  void look() {
    Clock::time_point now = Clock::now();
    counted += std::min<Clock::duration>(now - last, most);
    last = now;
  }
  void restart() { counted = {}; }
  bool exceeds(double seconds) const {
    return std::chrono::duration<double>(counted).count() > seconds;
  }

private:
  Clock::duration most;
  Clock::time_point last = Clock::now();
  Clock::duration counted{};
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_ATTENTION_H
