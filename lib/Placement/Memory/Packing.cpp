//===- Packing.cpp - Items that do not go into bins -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Packing.h"

#include <algorithm>
#include <functional>
#include <vector>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

using Wide = __int128;

std::optional<PackingProof> proveByPieces(std::span<const int64_t> items,
                                          std::span<const int64_t> bins,
                                          int64_t piece) {
  Wide needed = 0, available = 0;
  for (int64_t item : items) {
    if (item < piece)
      break; // items are in descending order
    needed += item / piece;
  }
  for (int64_t bin : bins)
    available += bin / piece;
  if (needed <= available)
    return std::nullopt;
  return PackingProof{piece, needed, available};
}

/// L2: how many bins of one size \p items need at least. \p items descend.
int64_t martelloToth(std::span<const int64_t> items, int64_t size) {
  auto count = static_cast<int64_t>(items.size());
  std::vector<Wide> sum(count + 1, 0);
  for (int64_t k = 0; k < count; ++k)
    sum[k + 1] = sum[k] + items[k];
  // The first item that is at most, or less than, a size.
  auto atMost = [&](int64_t bytes) {
    return std::lower_bound(items.begin(), items.end(), bytes,
                            std::greater<>()) -
           items.begin();
  };
  auto below = [&](int64_t bytes) {
    return std::upper_bound(items.begin(), items.end(), bytes,
                            std::greater<>()) -
           items.begin();
  };
  int64_t half = atMost(size / 2), most = 0;
  // Items of more than half a bin need one each; those that leave less than
  // alpha in it keep all others of at least alpha out.
  for (int64_t k = half; k <= count; ++k) {
    int64_t alpha = k < count ? items[k] : 0;
    if (k > half && k < count && items[k] == items[k - 1])
      continue;
    int64_t alone = atMost(size - alpha);
    alone = std::min(alone, half);
    int64_t end = below(alpha);
    Wide free =
        static_cast<Wide>(half - alone) * size - (sum[half] - sum[alone]);
    Wide rest = sum[end] - sum[half] - free;
    auto more = rest > 0 ? static_cast<int64_t>((rest + size - 1) / size) : 0;
    most = std::max(most, half + more);
  }
  return most;
}

} // namespace

std::optional<PackingProof>
baechi::placement::memory::provePackingFails(std::span<const int64_t> items,
                                             std::span<const int64_t> bins) {
  // Where every bin that is not full has room for the largest item, filling one
  // after the other succeeds.
  Wide sum = 0, room = 0;
  int64_t largest = 0;
  for (int64_t item : items) {
    sum += item;
    largest = std::max(largest, item);
  }
  for (int64_t bin : bins)
    room += std::max<int64_t>(0, bin - largest);
  if (sum <= room)
    return std::nullopt;
  std::vector<int64_t> sorted(items.begin(), items.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<int64_t> sizes(bins.begin(), bins.end());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  // In bytes, then in the largest pieces that leave a bin one piece less.
  if (auto proof = proveByPieces(sorted, sizes, 1))
    return proof;
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  constexpr int64_t mostPieces = 64;
  for (int64_t size : sizes)
    for (int64_t pieces = 1; pieces <= mostPieces; ++pieces)
      if (auto proof = proveByPieces(sorted, bins, size / pieces + 1))
        return proof;
  auto count = static_cast<int64_t>(bins.size());
  if (sorted.front() <= sizes.front())
    if (int64_t needed = martelloToth(sorted, sizes.front()); needed > count)
      return PackingProof{sizes.front(), needed, count, true};
  return std::nullopt;
}
