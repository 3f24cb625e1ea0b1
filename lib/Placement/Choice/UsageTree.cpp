//===- UsageTree.cpp - Bytes over time that change --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/UsageTree.h"

#include <algorithm>
#include <bit>
#include <limits>

using namespace baechi::placement::choice;

UsageTree::UsageTree(const std::vector<double> &excess)
    : leaves(std::bit_ceil(std::max<size_t>(excess.size(), 1))),
      highest(2 * leaves, -std::numeric_limits<double>::infinity()),
      added(2 * leaves, 0) {
  std::copy(excess.begin(), excess.end(), highest.begin() + leaves);
  for (size_t node = leaves - 1; node > 0; --node)
    highest[node] = std::max(highest[2 * node], highest[2 * node + 1]);
}

void UsageTree::add(int32_t begin, int32_t end, double bytes) {
  size_t left = begin + leaves, right = end + leaves;
  size_t first = left, last = right - 1;
  if (begin >= end)
    return;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) {
      highest[left] += bytes;
      added[left++] += bytes;
    }
    if (right % 2 == 1) {
      highest[--right] += bytes;
      added[right] += bytes;
    }
  }
  for (size_t node : {first, last})
    while (node /= 2)
      highest[node] =
          std::max(highest[2 * node], highest[2 * node + 1]) + added[node];
}

int32_t UsageTree::fullest() const {
  size_t node = 1;
  while (node < leaves)
    node = highest[2 * node] >= highest[2 * node + 1] ? 2 * node : 2 * node + 1;
  return static_cast<int32_t>(node - leaves);
}
