//===- Random.h - Reproducible randomness -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RANDOM_H
#define BAECHI_LIB_PLACEMENT_RANDOM_H

#include <cstdint>

namespace baechi::placement {

/// xorshift64* (Vigna 2016): the same numbers with every standard library.
class Random {
public:
  explicit Random(uint64_t seed = 1)
      : state(seed * 0x9E3779B97F4A7C15ull + 12345) {}

  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
  }
  /// Below \p count, which is at least 1.
  int32_t below(int64_t count) {
    return static_cast<int32_t>(
        ((next() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }
  /// In [0, 1).
  double real() {
    return static_cast<double>(next() >> 11) * (1.0 / 9007199254740992.0);
  }
  bool oneIn(int32_t count) { return below(count) == 0; }

private:
  uint64_t state;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_RANDOM_H
