//===- RankSet.h - A priority queue of small numbers ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_RANKSET_H
#define BAECHI_LIB_PLACEMENT_RANKSET_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace baechi::placement {

/// A set of ranks below a fixed size that gives its smallest: bits, with a bit
/// per word of bits above, and once more. Nothing in it branches on data as a
/// heap's comparisons do.
class RankSet {
public:
  explicit RankSet(int32_t size = 0)
      : low(words(size)), middle(words(low.size())),
        high(words(middle.size())) {}

  bool empty() const {
    for (uint64_t word : high)
      if (word)
        return false;
    return true;
  }
  void insert(int32_t rank) {
    auto r = static_cast<uint32_t>(rank);
    low[r >> 6] |= bit(r);
    middle[r >> 12] |= bit(r >> 6);
    high[r >> 18] |= bit(r >> 12);
  }
  /// The smallest; the set is not empty.
  int32_t smallest() const {
    uint32_t h = 0;
    while (!high[h])
      ++h;
    uint32_t m = h << 6 | static_cast<uint32_t>(std::countr_zero(high[h]));
    uint32_t l = m << 6 | static_cast<uint32_t>(std::countr_zero(middle[m]));
    return static_cast<int32_t>(
        l << 6 | static_cast<uint32_t>(std::countr_zero(low[l])));
  }
  /// Removes it.
  int32_t takeSmallest() {
    int32_t rank = smallest();
    auto r = static_cast<uint32_t>(rank);
    uint32_t l = r >> 6, m = r >> 12, h = r >> 18;
    if ((low[l] &= low[l] - 1) == 0 && (middle[m] &= middle[m] - 1) == 0)
      high[h] &= high[h] - 1;
    return rank;
  }
  void clear() {
    low.assign(low.size(), 0);
    middle.assign(middle.size(), 0);
    high.assign(high.size(), 0);
  }

private:
  static size_t words(size_t bits) { return bits / 64 + 1; }
  static uint64_t bit(uint32_t r) { return uint64_t(1) << (r & 63); }

  std::vector<uint64_t> low, middle, high;
};

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_RANKSET_H
