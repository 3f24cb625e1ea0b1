//===- UpdateLogTest.cpp - Updates that wait to be sent ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/UpdateLog.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

using namespace baechi::store;
using testing::ElementsAre;

namespace {

std::vector<uint32_t> firstRows(std::vector<Candidate> rows, SendOrder order,
                                int64_t must, size_t count) {
  Turn turn(3);
  keepFirst(rows, order, must, count * 10, turn);
  std::vector<uint32_t> kept;
  for (const Candidate &row : rows)
    kept.push_back(row.row);
  return kept;
}

/// Four rows: table, row, clock, age, importance, bytes.
std::vector<Candidate> fourRows() {
  return {{0, 0, 5, 9, 1.0, 10},
          {0, 1, 5, 2, 3.0, 10},
          {0, 2, 4, 7, 2.0, 10},
          {0, 3, 5, 3, 3.0, 10}};
}

TEST(UpdateLog, SumsWhatWaitsAndForgetsWhatIsTaken) {
  std::atomic<uint64_t> ages{0};
  UpdateLog log(4, 2, ages);
  float first[] = {1, 2}, second[] = {10, 20}, sum[2];
  log.add(3, first, 0.5, 7);
  log.add(1, first, 9, 7);
  log.add(3, second, 0.25, 8);
  EXPECT_THAT(log.waiting(), ElementsAre(3, 1));
  EXPECT_EQ(log.importance(3), 0.75);
  EXPECT_EQ(log.take(3, sum), 7);
  EXPECT_THAT(sum, ElementsAre(11, 22));
  EXPECT_THAT(log.waiting(), ElementsAre(1));
  EXPECT_FALSE(log.waits(3));
  EXPECT_EQ(log.sum(3)[0], 0);
  // Its age begins again.
  log.add(3, second, 1, 9);
  EXPECT_GT(log.age(3), log.age(1));
  EXPECT_EQ(log.clock(3), 9);
}

TEST(UpdateLog, EarlierClockOfSharedCacheIsKept) {
  std::atomic<uint64_t> ages{0};
  UpdateLog log(1, 1, ages);
  float one = 1, sum;
  log.add(0, &one, 1, 5);
  log.add(0, &one, 1, 3);
  EXPECT_EQ(log.take(0, &sum), 3);
}

TEST(KeepFirst, ByAgeAndImportance) {
  EXPECT_THAT(firstRows(fourRows(), SendOrder::Age, 0, 2), ElementsAre(1, 3));
  // Equal ones by row.
  EXPECT_THAT(firstRows(fourRows(), SendOrder::Magnitude, 0, 3),
              ElementsAre(1, 3, 2));
}

TEST(KeepFirst, WhatTheClockNeedsGoesFirst) {
  EXPECT_THAT(firstRows(fourRows(), SendOrder::RelativeMagnitude, 5, 2),
              ElementsAre(2, 1));
}

/// Of logs that are chosen from together, the oldest row goes first.
TEST(UpdateLog, AgesOfLogsCompare) {
  std::atomic<uint64_t> ages{0};
  UpdateLog busy(2, 1, ages), idle(2, 1, ages);
  float one = 1, sum;
  for (int i = 0; i < 5; ++i) {
    busy.add(0, &one, 1, 0);
    busy.take(0, &sum);
  }
  idle.add(0, &one, 1, 0);
  busy.add(0, &one, 1, 0);
  EXPECT_LT(idle.age(0), busy.age(0));
}

TEST(KeepFirst, RoundRobinGoesOnWhereItEnded) {
  std::vector<Candidate> rows;
  for (uint32_t i = 0; i < 5; ++i)
    rows.push_back({i / 3, i % 3, 0, 0, 0, 10});
  Turn turn(1);
  std::vector<uint32_t> all;
  for (int round = 0; round < 4; ++round) {
    std::vector<Candidate> kept = rows;
    keepFirst(kept, SendOrder::RoundRobin, 0, 20, turn);
    for (const Candidate &row : kept)
      all.push_back(row.table * 10 + row.row);
  }
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 10, 11, 0, 1, 2));
}

TEST(KeepFirst, AtLeastOneHoweverFewBytes) {
  EXPECT_THAT(firstRows(fourRows(), SendOrder::Magnitude, 0, 0),
              ElementsAre(1));
}

TEST(KeepFirst, RandomDrawsAgainAtEveryRound) {
  std::vector<Candidate> rows;
  for (uint32_t i = 0; i < 100; ++i)
    rows.push_back({0, i, 0, i, 0, 10});
  Turn turn(1), same(1);
  std::vector<std::vector<uint32_t>> drawn;
  for (int round = 0; round < 2; ++round) {
    std::vector<Candidate> a = rows, b = rows;
    keepFirst(a, SendOrder::Random, 0, 100, turn);
    keepFirst(b, SendOrder::Random, 0, 100, same);
    drawn.emplace_back();
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].row, b[i].row);
      drawn.back().push_back(a[i].row);
    }
  }
  EXPECT_EQ(drawn[0].size(), 10u);
  EXPECT_NE(drawn[0], drawn[1]);
}

/// Against a plain sort, with rows of several widths.
TEST(KeepFirst, KeepsWhatAFullSortKeeps) {
  SplitMix random(17);
  Turn turn(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Candidate> rows;
    for (uint32_t i = 0, n = 1 + random.next() % 60; i < n; ++i)
      rows.push_back({uint32_t(random.next() % 2), i,
                      int64_t(random.next() % 4), i, double(random.next() % 8),
                      uint32_t(4 + random.next() % 40)});
    size_t bytes = random.next() % 800;
    auto key = [](const Candidate &row) {
      return std::tuple(row.clock >= 2, -row.importance, row.table, row.row);
    };
    std::vector<Candidate> sorted = rows;
    std::ranges::sort(sorted, {}, key);
    size_t kept = 0, sum = 0;
    while (kept < sorted.size() &&
           (kept == 0 || sum + sorted[kept].bytes <= bytes))
      sum += sorted[kept++].bytes;
    std::vector<Candidate> found = rows;
    keepFirst(found, SendOrder::Magnitude, 2, bytes, turn);
    std::ranges::sort(found, {}, key);
    ASSERT_EQ(found.size(), kept);
    for (size_t i = 0; i < kept; ++i)
      EXPECT_EQ(found[i].row, sorted[i].row);
  }
}

TEST(RowValues, ImportanceIsRelativeToValuesButNotEndlessNearZero) {
  RowValues values(2, 2, 2);
  float start[] = {4, -8}, update[] = {1, -2};
  values.set(0, start);
  EXPECT_EQ(values.add(0, update, SendOrder::Magnitude), 3);
  EXPECT_FLOAT_EQ(float(values.add(0, update, SendOrder::RelativeMagnitude)),
                  1.f / 5 + 2.f / 10);
  EXPECT_THAT(std::vector<float>(values.row(0), values.row(0) + 2),
              ElementsAre(6, -12));
  // Values of 0 count as a thousandth of the mean of |value|, here 18 / 4.
  double near = values.add(1, update, SendOrder::RelativeMagnitude);
  EXPECT_NEAR(near, 3 / (1e-3 * 18 / 4), 1);
}

TEST(RowValues, RefusesWhatIsNotFinite) {
  RowValues values(1, 2, 2);
  float wrong[] = {1, NAN};
  EXPECT_FALSE(std::isfinite(values.add(0, wrong, SendOrder::Magnitude)));
  EXPECT_EQ(values.row(0)[0], 0);
}

} // namespace
