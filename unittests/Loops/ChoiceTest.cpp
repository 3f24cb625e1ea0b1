//===- ChoiceTest.cpp - Which of a loop's schemes is best ------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Choice.h"
#include "Loops.h"
#include "gtest/gtest.h"

using namespace baechi::loops;

namespace {
/// Rows of W[i] and of H[j], both updated.
Loop factors(int64_t rows, int64_t columns) {
  Loop loop;
  loop.keys = {{"i", 0, rows}, {"j", 0, columns}};
  loop.arrays = {array("W", {rows, 16}), array("H", {columns, 16})};
  loop.accesses = {add(0, {at({1}), all()}), add(1, {at({0, 1}), all()})};
  return loop;
}

/// r[j] += p[i].
Loop edges(bool reassociate) {
  Loop loop;
  loop.keys = {{"i", 0, 100}, {"j", 0, 100}};
  loop.arrays = {array("r", {100}), array("p", {100})};
  loop.accesses = {add(0, {at({0, 1})}), read(1, {at({1})})};
  loop.reassociate = reassociate;
  return loop;
}

/// a[i, j] of a[i - 1, j] and a[i, j - 1].
Loop grid(int64_t extent) {
  Loop loop;
  loop.keys = {{"i", 1, extent}, {"j", 1, extent}};
  loop.arrays = {array("a", {extent, extent})};
  loop.accesses = {read(0, {at({1}, -1), at({0, 1})}),
                   read(0, {at({1}), at({0, 1}, -1)}),
                   write(0, {at({1}), at({0, 1})})};
  loop.ordered = true;
  return loop;
}

std::vector<Plan> plansOf(const Loop &loop, const Sample &sample,
                          int32_t workers) {
  return plansOf(loop, analyse(loop), sample, workers);
}

std::vector<Plan> plansOf(const Loop &loop, int32_t workers) {
  return plansOf(loop, sampleBox(loop, 1 << 14), workers);
}

std::string best(const Loop &loop, const Sample &sample, int32_t workers) {
  return schemeText(loop, plansOf(loop, sample, workers)[0].verdict);
}
} // namespace

TEST(Choice, TheLargerArrayStays) {
  Loop wide = factors(2000, 100), tall = factors(100, 2000);
  EXPECT_EQ(plansOf(wide, 4)[0].verdict.keys, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(plansOf(tall, 4)[0].verdict.keys, (std::vector<int32_t>{1, 0}));
  // The smaller one goes once round: each of four pieces moves four times, to
  // the other three workers and back.
  EXPECT_EQ(plansOf(wide, 4)[0].cost.bytes, 4 * 100 * 16 * 4);
}

TEST(Choice, AnyKeyThatHasWorkForAll) {
  Loop loop;
  loop.keys = {{"i", 0, 3}, {"j", 0, 4000}};
  loop.arrays = {array("a", {3, 4000})};
  loop.accesses = {add(0, {at({1}), at({0, 1})})};
  std::vector<Plan> plans = plansOf(loop, 8);
  EXPECT_EQ(plans[0].verdict.scheme, Scheme::Independent);
  EXPECT_EQ(plans[0].verdict.keys, std::vector<int32_t>{1});
  EXPECT_EQ(plans[1].verdict.keys, std::vector<int32_t>{0});
  EXPECT_LT(2 * plans[0].cost.nanoseconds, 3 * plans[1].cost.nanoseconds);
}

TEST(Choice, SumsWhereOneKeyHasMostEntries) {
  Sample even, skewed;
  for (int64_t n = 0; n < 10'000; ++n) {
    even.entries.push_back({n % 100, n / 100});
    skewed.entries.push_back({n % 100, n % 10 < 9 ? 0 : n / 100});
  }
  even.each = skewed.each = 100;
  EXPECT_EQ(best(edges(true), even, 4), "1D over j");
  EXPECT_EQ(best(edges(true), skewed, 4), "independent with sums of 'r'");
  // Without leave the sums keep their order.
  EXPECT_EQ(best(edges(false), skewed, 4), "1D over j");
}

TEST(Choice, WavesOfSmallerBlocksWhereThereIsWork) {
  std::vector<Plan> small = plansOf(grid(16), 4);
  EXPECT_EQ(small[0].parts, (std::vector<int32_t>{4, 4}));
  Loop large = grid(1000);
  std::vector<Plan> plans = plansOf(large, 4);
  EXPECT_EQ(plans[0].verdict.scheme, Scheme::Wavefront);
  EXPECT_GT(plans[0].parts[1], 4);
  // Of 4 by 4 blocks 7 clocks take what 4 would without waiting.
  for (const Plan &plan : plans)
    if (plan.parts == std::vector<int32_t>{4, 4})
      EXPECT_GT(plan.cost.nanoseconds, 1.2 * plans[0].cost.nanoseconds);
}

TEST(Choice, TimesFollowFromTheSchedule) {
  // One block: no messages, and each entry once.
  Loop loop = factors(10, 10);
  Verdict verdict = analyse(loop);
  Sample sample = sampleBox(loop, 1000);
  ASSERT_EQ(sample.entries.size(), 100u);
  EXPECT_EQ(sample.each, 1);
  Schedule one = scheduleOf(loop, verdict, 1, 1);
  PassCost alone = simulatePass(loop, verdict, one, sample);
  EXPECT_EQ(alone.bytes, 0);
  sample.each = 1000;
  PassCost more = simulatePass(loop, verdict, one, sample);
  EXPECT_GT(more.nanoseconds, 100 * alone.nanoseconds / 2);
  PassCost two =
      simulatePass(loop, verdict, scheduleOf(loop, verdict, 2, 1), sample);
  EXPECT_LT(two.nanoseconds, 0.6 * more.nanoseconds);
  EXPECT_GT(two.nanoseconds, 0.5 * more.nanoseconds);
}

TEST(Choice, IsTheSameEachTime) {
  Loop loop = grid(300);
  std::vector<Plan> once = plansOf(loop, 3), again = plansOf(loop, 3);
  EXPECT_EQ(explainChoice(loop, once), explainChoice(loop, again));
}

TEST(Choice, AllSchemesRunWithoutRaces) {
  // What is chosen among is allowed: no two blocks of a clock touch what one of
  // them writes.
  std::vector<Loop> loops = {factors(8, 8), edges(true), grid(8)};
  loops[1].keys[0].upper = loops[1].keys[1].upper = 8;
  for (const Loop &loop : loops)
    for (const Verdict &verdict : schemesOf(loop, analyse(loop)))
      for (int32_t parts : {1, 2})
        EXPECT_EQ(findRace(loop, verdict, scheduleOf(loop, verdict, 2, parts),
                           allEntries(loop)),
                  std::nullopt)
            << schemeText(loop, verdict);
}

TEST(Choice, SamplesLieInTheDomain) {
  Loop loop = grid(1000);
  loop.domain = {{{1, -1}, 0}}; // i >= j
  Sample sample = sampleBox(loop, 4096);
  EXPECT_NEAR(static_cast<double>(sample.entries.size()), 2048, 200);
  for (const std::vector<int64_t> &entry : sample.entries) {
    EXPECT_GE(entry[0], entry[1]);
    EXPECT_LT(entry[0], 1000);
  }
  EXPECT_NEAR(sample.each * static_cast<double>(sample.entries.size()),
              999 * 999 / 2, 999 * 50);
  EXPECT_EQ(sampleBox(loop, 4096, 5).each,
            5.0 / static_cast<double>(sample.entries.size()));
}

TEST(Choice, VeryManyBlocksAreNotCompared) {
  Loop loop;
  loop.keys = {{"i", 0, 60}, {"j", 0, 50}, {"k", 0, 40}};
  loop.arrays = {array("A", {60}), array("B", {50}), array("C", {40})};
  for (int32_t k = 0; k < 3; ++k) {
    std::vector<int64_t> unit(3, 0);
    unit[k] = 1;
    loop.accesses.push_back(read(k, {at(unit)}));
    loop.accesses.push_back(write(k, {at(unit)}));
  }
  EXPECT_EQ(plansOf(loop, 4).size(), 6u);
  ASSERT_EQ(plansOf(loop, 24).size(), 1u);
  EXPECT_EQ(plansOf(loop, 24)[0].parts, (std::vector<int32_t>{24, 24, 24}));
}
