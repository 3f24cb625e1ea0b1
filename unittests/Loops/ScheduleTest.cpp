//===- ScheduleTest.cpp - Orders of blocks ---------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loops.h"
#include "gtest/gtest.h"

using namespace baechi::loops;

namespace {
/// W[i] and H[j], both updated, over 8 times 8 keys.
Loop grid(bool ordered = false) {
  Loop loop;
  loop.keys = {{"i", 0, 8}, {"j", 0, 8}};
  loop.arrays = {array("W", {8}), array("H", {8})};
  loop.accesses = {read(0, {at({1})}), write(0, {at({1})}),
                   read(1, {at({0, 1})}), write(1, {at({0, 1})})};
  loop.ordered = ordered;
  return loop;
}

std::string orderOf(const Schedule &schedule) {
  std::string made;
  int32_t clock = 0;
  for (const Block &block : schedule.blocks) {
    made += block.clock == clock ? "" : "| ";
    clock = block.clock;
    made += std::to_string(block.parts[0]) + "," +
            std::to_string(block.parts[1]) + " ";
  }
  return made;
}
} // namespace

TEST(Schedule, Rotation) {
  Loop loop = grid();
  Schedule schedule = scheduleOf(loop, analyse(loop), 2, 1);
  EXPECT_EQ(orderOf(schedule), "0,0 1,1 | 0,1 1,0 ");
  Schedule larger = scheduleOf(loop, analyse(loop), 2, 2);
  EXPECT_EQ(orderOf(larger), "0,0 1,1 | 2,0 3,1 | 0,2 1,3 | 2,2 3,3 | "
                             "0,1 1,0 | 2,1 3,0 | 0,3 1,2 | 2,3 3,2 ");
}

TEST(Schedule, Wavefront) {
  Loop loop = grid(/*ordered=*/true);
  Verdict verdict = analyse(loop);
  EXPECT_EQ(verdict.scheme, Scheme::Wavefront);
  EXPECT_EQ(orderOf(scheduleOf(loop, verdict, 2, 1)), "0,0 | 0,1 1,0 | 1,1 ");
}

TEST(Schedule, TimedLoopsAreWavefronts) {
  // a[i, j] of a[i - 1, j - 1], a[i - 1, j], a[i - 1, j + 1]: over i, i - j.
  Loop loop;
  loop.keys = {{"i", 1, 9}, {"j", 1, 9}};
  loop.arrays = {array("a", {10, 10})};
  for (int64_t beside : {-1, 0, 1})
    loop.accesses.push_back(read(0, {at({1}, -1), at({0, 1}, beside)}));
  loop.accesses.push_back(write(0, {at({1}), at({0, 1})}));
  Verdict verdict = analyse(loop);
  EXPECT_EQ(verdict.scheme, Scheme::Timed);
  EXPECT_EQ(axesOf(loop, verdict),
            (std::vector<std::vector<int64_t>>{{1, 0}, {1, -1}}));
  Schedule schedule = scheduleOf(loop, verdict, 2, 1);
  EXPECT_EQ(orderOf(schedule), "0,0 | 0,1 1,0 | 1,1 ");
  EXPECT_EQ(findRace(loop, verdict, schedule, allEntries(loop)), std::nullopt);
  // All of the time before: no two sums are good.
  loop.accesses[0].subscripts[1] = all();
  verdict = analyse(loop);
  EXPECT_EQ(verdict.scheme, Scheme::Timed);
  EXPECT_TRUE(axesOf(loop, verdict).empty());
}

TEST(Schedule, ThreeKeysRotate) {
  Loop loop;
  loop.keys = {{"i", 0, 4}, {"j", 0, 4}, {"k", 0, 4}};
  for (int32_t k = 0; k < 3; ++k) {
    loop.arrays.push_back(array("A", {4}));
    std::vector<int64_t> unit(3, 0);
    unit[k] = 1;
    loop.accesses.push_back(read(k, {at(unit)}));
    loop.accesses.push_back(write(k, {at(unit)}));
  }
  Verdict verdict = analyse(loop);
  Schedule schedule = scheduleOf(loop, verdict, 4, 1);
  EXPECT_EQ(schedule.blocks.size(), 64u);
  EXPECT_EQ(schedule.blocks.back().clock, 15);
  EXPECT_EQ(findRace(loop, verdict, schedule, allEntries(loop)), std::nullopt);
}

TEST(Schedule, FindsRaces) {
  Loop loop = grid();
  Verdict verdict = analyse(loop);
  Schedule schedule = scheduleOf(loop, verdict, 2, 1);
  for (Block &block : schedule.blocks)
    block.clock = 0;
  EXPECT_NE(findRace(loop, verdict, schedule, allEntries(loop)), std::nullopt);
  schedule = scheduleOf(loop, verdict, 2, 1);
  schedule.blocks.pop_back();
  EXPECT_EQ(findRace(loop, verdict, schedule, allEntries(loop)),
            "an entry is in no block");
}

TEST(Schedule, SpansHoldAllValuesOfABlock) {
  Loop loop;
  loop.keys = {{"i", 0, 6}, {"j", 1, 9}};
  loop.domain = {{{1, 1}, -4}}; // i + j >= 4
  Schedule schedule;
  schedule.axes = {{1, 0}, {1, 1}};
  schedule.cuts = {{0, 3, 6}, {1, 7, 15}};
  for (int32_t first : {0, 1})
    for (int32_t second : {0, 1})
      for (const Affine &sum : {Affine{{1, 0}, 0}, Affine{{0, 1}, -1},
                                Affine{{-2, 1}, 3}, Affine{{0, -1}, 9}}) {
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 1; j < 9; ++j)
            if (i + j >= 4 && schedule.partsOf({i, j}) ==
                                  std::vector<int32_t>{first, second}) {
              least = std::min(least, sum.of({i, j}));
              most = std::max(most, sum.of({i, j}));
            }
        auto span = spanOf(loop, schedule, {0, 0, {first, second}}, sum);
        ASSERT_TRUE(span);
        EXPECT_EQ(span->first, least);
        EXPECT_EQ(span->end, most + 1);
      }
  // A number that is not known; a block without entries.
  EXPECT_FALSE(spanOf(loop, schedule, {0, 0, {0, 0}}, Affine{{1, 0}, 0, {1}}));
  schedule.cuts = {{0, 3, 6}, {1, 3, 15}};
  auto none = spanOf(loop, schedule, {0, 0, {1, 0}}, Affine{{1, 0}, 0});
  EXPECT_TRUE(none && none->empty());
}

TEST(Schedule, CutsAreBalanced) {
  EXPECT_EQ(balancedCuts(5, {1, 1, 1, 1}, 2), std::vector<int64_t>({5, 7, 9}));
  EXPECT_EQ(balancedCuts(0, {90, 2, 2, 2, 2, 2}, 3),
            std::vector<int64_t>({0, 1, 2, 6}));
  // No part without a value, and no more parts than values.
  EXPECT_EQ(balancedCuts(0, {0, 0, 9}, 3), std::vector<int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(balancedCuts(0, {1, 1}, 4), std::vector<int64_t>({0, 1, 2}));
}
