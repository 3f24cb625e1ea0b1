//===- Futex.h - Sleep until a word changes, or for a time ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// std::atomic's wait has no end in time. Both functions go together: that of
/// std::atomic wakes only who sleeps by std::atomic.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_FUTEX_H
#define BAECHI_RUNTIME_CORE_FUTEX_H

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

namespace baechi::runtime {

/// Sleeps while \p word holds \p value, and no longer than \p most; may return
/// early.
inline void sleepWhile(std::atomic<uint32_t> &word, uint32_t value,
                       std::optional<std::chrono::nanoseconds> most = {}) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  timespec time{};
  if (most) {
    time.tv_sec = most->count() / 1'000'000'000;
    time.tv_nsec = most->count() % 1'000'000'000;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, most ? &time : nullptr,
          nullptr, 0);
}

/// Wakes the thread that sleeps while \p word holds its former value.
inline void wakeOne(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_FUTEX_H
