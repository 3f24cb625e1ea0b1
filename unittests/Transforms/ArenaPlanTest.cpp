//===- ArenaPlanTest.cpp - Offsets never overlap -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArenaPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace baechi;

namespace {
std::vector<Buffer> randomBuffers(std::mt19937 &random, int count,
                                  int positions) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    int32_t first = random() % positions;
    int32_t last = std::min<int32_t>(positions - 1, first + random() % 20);
    buffers.push_back({64 * int64_t(random() % 50), first, last, 0});
  }
  return buffers;
}

bool overlap(const Buffer &a, const Buffer &b) {
  return a.bytes > 0 && b.bytes > 0 && a.first <= b.last && b.first <= a.last &&
         a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// By comparing all pairs.
bool anyOverlap(const std::vector<Buffer> &buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (overlap(buffers[i], buffers[j]))
        return true;
  return false;
}
} // namespace

TEST(ArenaPlan, LimitsChangeOnlyWhatCannotFit) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, 2 + random() % 60, 40);
    std::vector<Buffer> within = buffers, above = buffers;
    int64_t base = 64, live = livePeak(buffers).first;
    int64_t bytes = assignOffsets(buffers, base).bytes;
    EXPECT_EQ(assignOffsets(within, base, base + live).bytes, bytes);
    for (auto [one, other] : llvm::zip_equal(buffers, within))
      EXPECT_EQ(one.offset, other.offset);
    EXPECT_GE(assignOffsets(above, base, base + live - 1).bytes, bytes);
    EXPECT_FALSE(anyOverlap(above));
  }
}

TEST(ArenaPlan, WhatFitsIsEnough) {
  std::mt19937 random(6);
  int larger = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, 2 + random() % 60, 40);
    std::vector<Buffer> enough = buffers, tight = buffers;
    int64_t base = 64, bytes = assignOffsets(buffers, base).bytes;
    int64_t limit = bytes + int64_t(64) * (random() % 20);
    int64_t found = assignOffsets(enough, base, limit, /*onlyFits=*/true).bytes;
    EXPECT_LE(found, limit);
    EXPECT_FALSE(anyOverlap(enough));
    larger += found > bytes;
    // What exactly fits is found all the same, and so is what does not.
    for (int64_t few : {bytes, bytes - 64})
      EXPECT_EQ(assignOffsets(tight, base, few, /*onlyFits=*/true).bytes,
                few < base + livePeak(buffers).first
                    ? assignOffsets(tight, base, few).bytes
                    : bytes);
  }
  EXPECT_GT(larger, 0);
}

TEST(ArenaPlan, RandomBuffersNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, random() % 80, 40);
    int64_t base = 64 * (random() % 3);
    int64_t top = assignOffsets(buffers, base).bytes;
    auto [live, peakAt] = livePeak(buffers);
    EXPECT_GE(top, base + live);
    EXPECT_FALSE(anyOverlap(buffers));
    EXPECT_FALSE(findOverlap(buffers));
    int64_t atPeak = 0, end = base;
    for (const Buffer &buffer : buffers) {
      EXPECT_GE(buffer.offset, base);
      EXPECT_EQ(buffer.offset % 64, 0);
      end = std::max(end, buffer.offset + buffer.bytes);
      if (buffer.first <= peakAt && peakAt <= buffer.last)
        atPeak += buffer.bytes;
    }
    EXPECT_EQ(end, top);
    EXPECT_EQ(atPeak, live);
  }
}

TEST(ArenaPlan, ADeadBufferIsReused) {
  std::vector<Buffer> buffers = {{128, 0, 1, 0}, {128, 2, 3, 0}, {64, 1, 2, 0}};
  EXPECT_EQ(assignOffsets(buffers, 0).bytes, 192);
  EXPECT_EQ(buffers[0].offset, buffers[1].offset);
}

TEST(ArenaPlan, NothingToPlan) {
  EXPECT_EQ(assignOffsets({}, 640).bytes, 640);
  EXPECT_EQ(livePeak({}).first, 0);
  EXPECT_FALSE(findOverlap({}));
}

TEST(ArenaPlan, FindsEveryPlantedOverlap) {
  std::mt19937 random(2);
  int planted = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, 30, 20);
    assignOffsets(buffers, 0);
    Buffer &moved = buffers[random() % buffers.size()];
    moved.offset = 64 * (random() % 100);
    std::optional<std::pair<size_t, size_t>> found = findOverlap(buffers);
    EXPECT_EQ(found.has_value(), anyOverlap(buffers));
    if (!found)
      continue;
    ++planted;
    EXPECT_TRUE(overlap(buffers[found->first], buffers[found->second]));
  }
  EXPECT_GT(planted, 100);
}

TEST(ArenaPlan, ReachesTheLiveBytesWhereNoSingleOrderDoes) {
  std::mt19937 random(11);
  int reached = 0, rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, 30, 40);
    reached += assignOffsets(buffers, 0).bytes == livePeak(buffers).first;
  }
  EXPECT_GE(reached, rounds * 9 / 10);
}

TEST(ArenaPlan, TheSameBuffersGetTheSameOffsets) {
  std::mt19937 random(3);
  std::vector<Buffer> buffers = randomBuffers(random, 200, 40), again = buffers;
  EXPECT_EQ(assignOffsets(buffers, 0).bytes, assignOffsets(again, 0).bytes);
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(buffers[i].offset, again[i].offset);
}

TEST(ArenaPlan, ManyBuffersWithManyConflicts) {
  // A training step's: half of the tensors wait for the backward pass.
  constexpr int32_t layers = 20000;
  std::mt19937 random(4);
  std::vector<Buffer> buffers;
  for (int32_t layer = 0; layer < layers; ++layer) {
    int64_t bytes = 64 * (1 + int64_t(random() % 1000));
    buffers.push_back({bytes, layer, 2 * layers - layer, 0});
    buffers.push_back({bytes, 2 * layers - layer, 2 * layers - layer + 1, 0});
  }
  Packing packing = assignOffsets(buffers, 0);
  EXPECT_FALSE(findOverlap(buffers));
  EXPECT_LE(packing.bytes, livePeak(buffers).first * 1.05);
}

TEST(ArenaPlan, WhatRestsIsNotUsedAgainSoon) {
  std::mt19937 random(5);
  int rested = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, random() % 60, 100);
    int64_t base = 64 * (random() % 3);
    int64_t compact = assignOffsets(buffers, base).bytes;
    std::vector<Buffer> before = buffers;
    int64_t most = compact + compact * (random() % 4) / 2;
    std::optional<Packing> packing = assignRested(buffers, base, 8, most);
    EXPECT_FALSE(anyOverlap(buffers));
    if (!packing) {
      for (size_t i = 0; i < buffers.size(); ++i)
        EXPECT_EQ(buffers[i].offset, before[i].offset);
      continue;
    }
    EXPECT_LE(packing->bytes, most);
    int64_t end = base;
    int32_t soonest = 100;
    for (const Buffer &a : buffers) {
      EXPECT_EQ(a.offset % 64, 0);
      end = std::max(end, a.offset + a.bytes);
      for (const Buffer &b : buffers)
        if (a.bytes > 0 && b.bytes > 0 && a.last < b.first &&
            a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
          soonest = std::min(soonest, b.first - a.last);
    }
    EXPECT_EQ(end, packing->bytes);
    // Some positions lie between, at least.
    EXPECT_GT(soonest, 1);
    rested += soonest > 8;
  }
  EXPECT_GT(rested, 50);
}

TEST(ArenaPlan, RestsAsLongAsThereIsRoom) {
  std::vector<Buffer> chain;
  for (int32_t i = 0; i < 20; ++i)
    chain.push_back({64, i, i, 0});
  auto bytes = [&](int64_t most) {
    std::optional<Packing> packing = assignRested(chain, 0, 8, most);
    return packing ? packing->bytes : 0;
  };
  EXPECT_EQ(bytes(1000), 9 * 64);
  EXPECT_EQ(bytes(9 * 64 - 1), 5 * 64);
  EXPECT_EQ(bytes(3 * 64), 3 * 64);
  EXPECT_EQ(bytes(2 * 64), 2 * 64);
  EXPECT_EQ(bytes(64), 0);
}
