//===- PaceTest.cpp - When a budget lets the next round begin ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "store/Pace.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace baechi::store;
using namespace std::chrono_literals;

namespace {

constexpr size_t round = 100000; ///< bytes
constexpr double budget = 1e7;   ///< a second: a round takes 10 ms

/// Sends rounds while rows wait, for \p length; each sleep ends up to
/// \p latest too late. Returns the bytes.
size_t sentWithin(Pace &pace, Time::time_point start, Time::duration length,
                  std::chrono::microseconds latest) {
  std::mt19937 random(3);
  size_t bytes = 0;
  for (Time::time_point now = start; now < start + length;) {
    if (now < pace.next())
      now = pace.next() + latest * (random() % 1000) / 1000;
    pace.sent(round, now);
    bytes += round;
  }
  return bytes;
}

TEST(Pace, LateRoundsAreMadeUpFor) {
  for (std::chrono::milliseconds latest : {0ms, 5ms, 60ms, 300ms}) {
    Pace pace(budget);
    Time::time_point start = pace.next();
    auto bytes = double(sentWithin(pace, start, 100s, latest));
    EXPECT_NEAR(bytes, 100 * budget, 0.005 * 100 * budget) << latest.count();
  }
}

/// Never more than the budget since rows wait, and one round.
TEST(Pace, NoTimeIsCountedTwice) {
  Pace pace(budget);
  Time::time_point start = pace.next(), now = start;
  for (size_t bytes = 0; bytes < 50 * round; now += 1ms) {
    if (now < pace.next())
      continue;
    pace.sent(round, now);
    std::chrono::duration<double> passed = now - start;
    EXPECT_LE(double(bytes), budget * passed.count() + 1);
    bytes += round;
  }
}

TEST(Pace, TimeWithoutRowsIsNotSaved) {
  Pace pace(budget);
  Time::time_point now = pace.next() + 500ms;
  pace.sent(0, now);
  EXPECT_EQ(pace.next(), now);
  pace.sent(round, now);
  EXPECT_EQ(pace.next(), now + 10ms);
}

TEST(Pace, MoreThanASecondIsNotMadeUpFor) {
  Pace pace(budget);
  Time::time_point now = pace.next() + 60s;
  pace.sent(round, now);
  EXPECT_EQ(pace.next(), now - 1s + 10ms);
}

TEST(Pace, WithoutABudgetRoundsFollowAtOnce) {
  for (std::optional<double> none :
       {std::optional<double>(),
        std::optional<double>(std::numeric_limits<double>::infinity())}) {
    Pace pace(none);
    Time::time_point before = pace.next();
    pace.sent(round, before + 1s);
    EXPECT_EQ(pace.next(), before);
  }
}

} // namespace
