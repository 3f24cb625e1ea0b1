//===- Sorting.h - Orders of many small keys --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_SORTING_H
#define BAECHI_LIB_PLACEMENT_MODEL_SORTING_H

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace baechi::placement {

/// Sorts \p items by a key from 0 to \p keys - 1; those of one key stay in
/// their order. Linear: where the keys are about as many as the items, a few
/// times faster than comparisons.
template <typename Item, typename KeyOf>
void countingSort(std::vector<Item> &items, int32_t keys, KeyOf keyOf) {
  std::vector<size_t> begin(static_cast<size_t>(keys) + 1, 0);
  for (const Item &item : items)
    ++begin[keyOf(item) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Item> sorted(items.size());
  for (const Item &item : items)
    sorted[begin[keyOf(item)]++] = item;
  items = std::move(sorted);
}

/// Calls \p visit for the items from the least on until it says false. Sorts
/// about \p first of them, and more only as they are asked for. The order must
/// be total.
template <typename Item, typename Less, typename Visit>
void visitInOrder(std::vector<Item> &items, size_t first, Less less,
                  Visit visit) {
  size_t size = std::max<size_t>(first, 1);
  for (auto at = items.begin(); at != items.end(); size *= 2) {
    auto end = items.end();
    if (static_cast<size_t>(items.end() - at) > size) {
      end = at + static_cast<ptrdiff_t>(size);
      std::nth_element(at, end, items.end(), less);
    }
    std::sort(at, end, less);
    for (; at != end; ++at)
      if (!visit(*at))
        return;
  }
}

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_SORTING_H
