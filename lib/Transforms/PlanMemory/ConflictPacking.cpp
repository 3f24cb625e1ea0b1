//===- ConflictPacking.cpp - Offsets by conflicts of buffers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Greedy by size: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural
// Net Inference", 2020. The search over orders blames the buffers that end
// above the bound and places them, or what they conflict with, earlier or
// later (Joslin & Clements, "Squeaky Wheel Optimization", JAIR 10, 1999).
//
//===----------------------------------------------------------------------===//

#include "ConflictPacking.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <numeric>

using namespace baechi;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Orders that the search tries without a smaller arena before it ends.
constexpr int mostFruitless = 3000;

/// How often a conflict of a buffer is drawn in vain.
constexpr int mostDraws = 20;

int64_t ConflictPacking::place(ArrayRef<int32_t> order, int64_t stop) {
  placed.clear();
  offsets.assign(buffers.size(), 0);
  int64_t top = 0;
  for (int32_t id : order) {
    const Buffer &buffer = buffers[id];
    int64_t offset = 0;
    size_t seen = 0;
    for (; seen < placed.size(); ++seen) {
      const Placed &other = placed[seen];
      if (other.last < buffer.first || buffer.last < other.first)
        continue;
      if (other.from >= offset + buffer.bytes)
        break;
      offset = std::max(offset, other.to);
    }
    visitsLeft -= seen + 1;
    offsets[id] = offset;
    top = std::max(top, offset + buffer.bytes);
    if (top >= stop || visitsLeft <= 0)
      return stop;
    auto above = llvm::upper_bound(
        placed, offset,
        [](int64_t value, const Placed &other) { return value < other.from; });
    placed.insert(above,
                  {offset, offset + buffer.bytes, buffer.first, buffer.last});
  }
  return top;
}

void ConflictPacking::tryOrder(Order order, llvm::StringLiteral name,
                               int64_t bound) {
  if (bestPacking.bytes <= bound || visitsLeft <= 0)
    return;
  int64_t bytes = place(order, bestPacking.bytes);
  if (bytes >= bestPacking.bytes)
    return;
  bestPacking = {bytes, name};
  bestOrder = std::move(order);
  bestOffsets = offsets;
}

/// A linear congruential generator (Knuth's MMIX): the same everywhere.
uint32_t ConflictPacking::draw(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33) % below;
}

int32_t ConflictPacking::drawConflict(int32_t id) {
  const Buffer &buffer = buffers[id];
  for (int i = 0; i < mostDraws; ++i) {
    int32_t other = bestOrder[draw(bestOrder.size())];
    if (other != id && buffers[other].first <= buffer.last &&
        buffer.first <= buffers[other].last)
      return other;
  }
  return id;
}

llvm::SmallVector<int64_t> ConflictPacking::countConflicts() const {
  // All but those that die before, and those that are born after.
  SmallVector<int32_t> firsts, lasts;
  for (const Buffer &buffer : buffers)
    if (buffer.bytes > 0) {
      firsts.push_back(buffer.first);
      lasts.push_back(buffer.last);
    }
  llvm::sort(firsts);
  llvm::sort(lasts);
  SmallVector<int64_t> counts;
  for (const Buffer &buffer : buffers)
    counts.push_back((llvm::upper_bound(firsts, buffer.last) - firsts.begin()) -
                     (llvm::lower_bound(lasts, buffer.first) - lasts.begin()));
  return counts;
}

ConflictPacking::Order ConflictPacking::neighbour(int64_t bound) {
  // Those to blame: without them the arena would be smaller.
  int64_t limit = std::max(bound, bestPacking.bytes - 1);
  SmallVector<int32_t> blamed;
  SmallVector<std::pair<double, int32_t>> ranks;
  SmallVector<int32_t> positionOf(buffers.size());
  for (auto [position, id] : llvm::enumerate(bestOrder)) {
    positionOf[id] = position;
    ranks.push_back({position, id});
    if (bestOffsets[id] + buffers[id].bytes > limit)
      blamed.push_back(id);
  }
  auto move = [&](int32_t id, double rank) {
    ranks[positionOf[id]].first = rank;
  };
  int32_t one = blamed[draw(blamed.size())];
  int32_t other = drawConflict(one);
  switch (draw(4)) {
  case 0: // all of them earlier
    for (int32_t id : blamed)
      move(id, draw(positionOf[id] + 1) - 0.5);
    break;
  case 1:
    move(one, draw(positionOf[one] + 1) - 0.5);
    break;
  case 2:
    move(other, draw(bestOrder.size()) - 0.5);
    break;
  default:
    move(one, positionOf[other]);
    move(other, positionOf[one]);
  }
  llvm::sort(ranks);
  Order order;
  for (auto [rank, id] : ranks)
    order.push_back(id);
  return order;
}

void ConflictPacking::improve(int64_t bound) {
  for (int fruitless = 0;
       bestPacking.bytes > bound && visitsLeft > 0 && fruitless < mostFruitless;
       ++fruitless) {
    Order order = neighbour(bound);
    // An equal arena is taken: plateaus are wide.
    int64_t bytes = place(order, bestPacking.bytes + 1);
    if (bytes > bestPacking.bytes)
      continue;
    if (bytes < bestPacking.bytes) {
      bestPacking = {bytes, "search"};
      fruitless = 0;
    }
    bestOrder = std::move(order);
    bestOffsets = offsets;
  }
}

std::optional<Packing>
ConflictPacking::run(int64_t bound, int64_t best, int64_t visits,
                     llvm::SmallVectorImpl<int64_t> &found) {
  visitsLeft = visits;
  bestPacking = {std::numeric_limits<int64_t>::max(), ""};
  Order all;
  for (int32_t id = 0, n = buffers.size(); id < n; ++id)
    if (buffers[id].bytes > 0)
      all.push_back(id);
  auto by = [&](auto key) {
    Order order = all;
    llvm::sort(order, [&](int32_t a, int32_t b) {
      return std::make_tuple(key(a), buffers[a].first, a) <
             std::make_tuple(key(b), buffers[b].first, b);
    });
    return order;
  };
  auto length = [&](int32_t id) {
    return int64_t(buffers[id].last) - buffers[id].first + 1;
  };
  tryOrder(by([&](int32_t id) { return -buffers[id].bytes; }), "size", bound);
  tryOrder(by([&](int32_t id) {
             return std::pair(-buffers[id].bytes, -length(id));
           }),
           "size, then length", bound);
  tryOrder(by([&](int32_t id) {
             return -static_cast<double>(buffers[id].bytes) * length(id);
           }),
           "area", bound);
  SmallVector<int64_t> conflicts = countConflicts();
  tryOrder(by([&](int32_t id) { return -conflicts[id]; }), "conflicts", bound);
  improve(bound);
  if (bestPacking.bytes >= best)
    return std::nullopt;
  found.assign(bestOffsets.begin(), bestOffsets.end());
  return bestPacking;
}
