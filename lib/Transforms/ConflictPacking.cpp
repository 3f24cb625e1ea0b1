//===- ConflictPacking.cpp - Offsets by the conflicts of buffers -*- C++
//-*-===//
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
constexpr int mostFruitless = 1000;

/// Calls \p each with every pair of buffers that have bytes and are live at one
/// position.
template <typename Fn>
static void forEachConflict(ArrayRef<Buffer> buffers, Fn each) {
  SmallVector<int32_t> births;
  for (int32_t id = 0, n = buffers.size(); id < n; ++id)
    if (buffers[id].bytes > 0)
      births.push_back(id);
  llvm::stable_sort(births, [&](int32_t a, int32_t b) {
    return buffers[a].first < buffers[b].first;
  });
  SmallVector<int32_t> live;
  for (int32_t id : births) {
    llvm::erase_if(live, [&](int32_t other) {
      return buffers[other].last < buffers[id].first;
    });
    for (int32_t other : live)
      each(other, id);
    live.push_back(id);
  }
}

int64_t ConflictPacking::countConflicts(ArrayRef<Buffer> buffers) {
  // A birth meets every earlier one that has not died: by counting alone.
  SmallVector<int32_t> firsts, lasts;
  for (const Buffer &buffer : buffers)
    if (buffer.bytes > 0) {
      firsts.push_back(buffer.first);
      lasts.push_back(buffer.last);
    }
  llvm::sort(firsts);
  llvm::sort(lasts);
  int64_t count = 0;
  size_t dead = 0;
  for (size_t born = 0; born < firsts.size(); ++born) {
    while (lasts[dead] < firsts[born])
      ++dead;
    count += born - dead;
  }
  return count;
}

ConflictPacking::ConflictPacking(ArrayRef<Buffer> buffers)
    : buffers(buffers), begin(buffers.size() + 2) {
  forEachConflict(buffers, [&](int32_t a, int32_t b) {
    ++begin[a + 2];
    ++begin[b + 2];
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  conflicts.resize(begin.back());
  forEachConflict(buffers, [&](int32_t a, int32_t b) {
    conflicts[begin[a + 1]++] = b;
    conflicts[begin[b + 1]++] = a;
  });
}

int64_t ConflictPacking::place(ArrayRef<int32_t> order, int64_t stop) {
  placed.assign(buffers.size(), -1);
  int64_t top = 0;
  for (int32_t id : order) {
    int64_t bytes = buffers[id].bytes;
    near.clear();
    for (int32_t other : conflictsOf(id))
      if (placed[other] >= 0)
        near.push_back({placed[other], placed[other] + buffers[other].bytes});
    visitsLeft -= conflictsOf(id).size() + 1;
    llvm::sort(near);
    int64_t offset = 0;
    for (auto [from, to] : near) {
      if (from >= offset + bytes)
        break;
      offset = std::max(offset, to);
    }
    placed[id] = offset;
    top = std::max(top, offset + bytes);
    if (top >= stop)
      return top;
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
  bestOffsets = placed;
}

/// A linear congruential generator (Knuth's MMIX): the same everywhere.
uint32_t ConflictPacking::draw(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33) % below;
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
  ArrayRef<int32_t> others = conflictsOf(one);
  int32_t other = others.empty() ? one : others[draw(others.size())];
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
    bestOffsets = placed;
  }
}

std::optional<Packing>
ConflictPacking::run(int64_t bound, int64_t best, int64_t visits,
                     llvm::SmallVectorImpl<int64_t> &offsets) {
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
  tryOrder(by([&](int32_t id) { return -int64_t(conflictsOf(id).size()); }),
           "conflicts", bound);
  improve(bound);
  if (bestPacking.bytes >= best)
    return std::nullopt;
  offsets.assign(bestOffsets.begin(), bestOffsets.end());
  return bestPacking;
}
