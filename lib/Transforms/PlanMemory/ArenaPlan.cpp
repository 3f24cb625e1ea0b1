//===- ArenaPlan.cpp - Offsets for buffers with lifetimes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"
#include "ConflictPacking.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <limits>
#include <map>
#include <numeric>

using namespace baechi;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;

namespace {
/// Placed buffers that the greedy orders and their search look at: some tenths
/// of a second.
constexpr int64_t visitBudget = 150000000;
/// The same where nothing fits: how much is missing shows soon.
constexpr int64_t visitsInVain = visitBudget / 16;

/// The allocator that meets buffers as time passes: a free list by offset.
class Sweep {
public:
  Sweep(ArrayRef<Buffer> buffers, bool backwards, bool bestFit)
      : buffers(buffers), backwards(backwards), bestFit(bestFit) {}

  int64_t run(SmallVectorImpl<int64_t> &offsets) {
    SmallVector<size_t> births;
    for (size_t id = 0; id < buffers.size(); ++id)
      if (buffers[id].bytes > 0)
        births.push_back(id);
    SmallVector<size_t> deaths = births;
    llvm::sort(births, [&](size_t a, size_t b) {
      return std::make_tuple(begin(a), -buffers[a].bytes, a) <
             std::make_tuple(begin(b), -buffers[b].bytes, b);
    });
    llvm::sort(deaths, [&](size_t a, size_t b) {
      return std::pair(end(a), a) < std::pair(end(b), b);
    });
    offsets.assign(buffers.size(), 0);
    gaps = {{0, std::numeric_limits<int64_t>::max()}};
    int64_t top = 0;
    auto death = deaths.begin();
    for (size_t id : births) {
      for (; end(*death) < begin(id); ++death)
        release(offsets[*death], buffers[*death].bytes);
      offsets[id] = take(buffers[id].bytes);
      top = std::max(top, offsets[id] + buffers[id].bytes);
    }
    return top;
  }

private:
  int64_t begin(size_t id) const {
    return backwards ? -int64_t(buffers[id].last) : buffers[id].first;
  }
  int64_t end(size_t id) const {
    return backwards ? -int64_t(buffers[id].first) : buffers[id].last;
  }

  int64_t take(int64_t bytes) {
    auto found = gaps.end();
    auto size = [](auto gap) { return gap->second - gap->first; };
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      if (size(gap) < bytes ||
          (found != gaps.end() && size(gap) >= size(found)))
        continue;
      found = gap;
      if (!bestFit)
        break;
    }
    auto [from, to] = *found;
    gaps.erase(found);
    if (from + bytes < to)
      gaps.emplace(from + bytes, to);
    return from;
  }

  void release(int64_t from, int64_t bytes) {
    int64_t to = from + bytes;
    auto next = gaps.lower_bound(from);
    if (next != gaps.end() && next->first == to) {
      to = next->second;
      next = gaps.erase(next);
    }
    if (next != gaps.begin() && std::prev(next)->second == from)
      std::prev(next)->second = to;
    else
      gaps.emplace(from, to);
  }

  ArrayRef<Buffer> buffers;
  bool backwards, bestFit;
  std::map<int64_t, int64_t> gaps; ///< from -> to, never adjacent
};
} // namespace

/// The best of the allocators that meet buffers as time passes.
static Packing sweep(ArrayRef<Buffer> buffers, int64_t bound,
                     SmallVectorImpl<int64_t> &bestOffsets) {
  Packing best{std::numeric_limits<int64_t>::max(), ""};
  SmallVector<int64_t> offsets;
  auto trySweep = [&](bool backwards, bool bestFit, StringRef name) {
    if (best.bytes <= bound)
      return;
    int64_t bytes = Sweep(buffers, backwards, bestFit).run(offsets);
    if (bytes >= best.bytes)
      return;
    best = {bytes, name};
    bestOffsets = offsets;
  };
  trySweep(false, true, "birth, best fit");
  trySweep(true, true, "death, best fit");
  trySweep(false, false, "birth, first fit");
  trySweep(true, false, "death, first fit");
  return best;
}

Packing baechi::assignOffsets(MutableArrayRef<Buffer> buffers, int64_t base,
                              int64_t limit, bool onlyFits) {
  int64_t bound = livePeak(buffers).first;
  int64_t visits = base + bound > limit ? visitsInVain : visitBudget;
  if (onlyFits)
    bound = std::max(bound, limit - base);
  SmallVector<int64_t> bestOffsets, offsets;
  Packing best = sweep(buffers, bound, bestOffsets);
  if (best.bytes > bound)
    if (std::optional<Packing> packing =
            ConflictPacking(buffers).run(bound, best.bytes, visits, offsets)) {
      best = *packing;
      bestOffsets = offsets;
    }
  for (auto [buffer, offset] : llvm::zip_equal(buffers, bestOffsets))
    buffer.offset = base + std::max<int64_t>(0, offset);
  best.bytes += base;
  return best;
}

/// Buffers that live longer than they do rest.
std::optional<Packing> baechi::assignRested(MutableArrayRef<Buffer> buffers,
                                            int64_t base, int32_t rest,
                                            int64_t most) {
  SmallVector<int64_t> offsets;
  for (; rest > 0; rest /= 2) {
    SmallVector<Buffer> longer(buffers.begin(), buffers.end());
    for (Buffer &buffer : longer)
      buffer.last += rest;
    Packing packing = sweep(longer, livePeak(longer).first, offsets);
    packing.bytes += base;
    if (packing.bytes > most)
      continue;
    for (auto [buffer, offset] : llvm::zip_equal(buffers, offsets))
      buffer.offset = base + offset;
    return packing;
  }
  return std::nullopt;
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
