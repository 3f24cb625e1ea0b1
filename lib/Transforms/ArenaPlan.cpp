//===- ArenaPlan.cpp - Offsets for buffers with lifetimes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <numeric>

using namespace baechi;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;

/// Places buffers in the given order, each at the lowest gap between those
/// placed before that live at the same time.
static int64_t placeInOrder(MutableArrayRef<Buffer> buffers,
                            ArrayRef<size_t> order, int64_t base) {
  int64_t top = base;
  SmallVector<size_t> byOffset; // those already placed
  for (size_t id : order) {
    Buffer &buffer = buffers[id];
    int64_t offset = base;
    for (size_t other : byOffset) {
      const Buffer &placed = buffers[other];
      if (placed.last < buffer.first || buffer.last < placed.first)
        continue;
      if (placed.offset >= offset + buffer.bytes)
        break;
      offset = std::max(offset, placed.offset + placed.bytes);
    }
    buffer.offset = offset;
    top = std::max(top, offset + buffer.bytes);
    byOffset.insert(llvm::upper_bound(byOffset, id,
                                      [&](size_t a, size_t b) {
                                        return buffers[a].offset <
                                               buffers[b].offset;
                                      }),
                    id);
  }
  return top;
}

int64_t baechi::assignOffsets(MutableArrayRef<Buffer> buffers, int64_t base) {
  SmallVector<size_t> bySize(buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  SmallVector<size_t> byBirth = bySize;
  llvm::sort(bySize, [&](size_t a, size_t b) {
    return std::make_tuple(-buffers[a].bytes, buffers[a].first, a) <
           std::make_tuple(-buffers[b].bytes, buffers[b].first, b);
  });
  llvm::sort(byBirth, [&](size_t a, size_t b) {
    return std::make_tuple(buffers[a].first, -buffers[a].bytes, a) <
           std::make_tuple(buffers[b].first, -buffers[b].bytes, b);
  });
  SmallVector<Buffer> other(buffers);
  int64_t first = placeInOrder(buffers, bySize, base);
  int64_t second = placeInOrder(other, byBirth, base);
  if (second < first)
    llvm::copy(other, buffers.begin());
  return std::min(first, second);
}

std::pair<int64_t, int32_t> baechi::livePeak(ArrayRef<Buffer> buffers) {
  std::map<int32_t, int64_t> change;
  for (const Buffer &buffer : buffers) {
    change[buffer.first] += buffer.bytes;
    change[buffer.last + 1] -= buffer.bytes;
  }
  int64_t live = 0;
  std::pair<int64_t, int32_t> peak{0, 0};
  for (auto [position, bytes] : change) {
    live += bytes;
    if (live > peak.first)
      peak = {live, position};
  }
  return peak;
}

std::optional<std::pair<size_t, size_t>>
baechi::findOverlap(ArrayRef<Buffer> buffers) {
  SmallVector<size_t> births(buffers.size());
  std::iota(births.begin(), births.end(), 0);
  llvm::sort(births, [&](size_t a, size_t b) {
    return buffers[a].first < buffers[b].first;
  });
  SmallVector<size_t> deaths = births;
  llvm::sort(deaths, [&](size_t a, size_t b) {
    return buffers[a].last < buffers[b].last;
  });
  std::map<int64_t, size_t> live; // offset -> buffer, pairwise disjoint
  auto death = deaths.begin();
  for (size_t id : births) {
    const Buffer &buffer = buffers[id];
    for (; buffers[*death].last < buffer.first; ++death)
      if (buffers[*death].bytes > 0)
        live.erase(buffers[*death].offset);
    if (buffer.bytes == 0)
      continue;
    auto next = live.lower_bound(buffer.offset);
    if (next != live.end() && next->first < buffer.offset + buffer.bytes)
      return std::pair(id, next->second);
    if (next != live.begin()) {
      auto previous = std::prev(next);
      const Buffer &below = buffers[previous->second];
      if (below.offset + below.bytes > buffer.offset)
        return std::pair(id, previous->second);
    }
    live.emplace(buffer.offset, id);
  }
  return std::nullopt;
}
