//===- ConflictsTest.cpp - Which commands must follow which -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Support/Conflicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace baechi::support;

namespace {
using Numbers = std::vector<size_t>;

Access reads(uintptr_t begin, uintptr_t end) { return {begin, end, false}; }
Access writes(uintptr_t begin, uintptr_t end) { return {begin, end, true}; }

TEST(Conflicts, ReadersFollowTheWriterAndTheNextWriterAllReaders) {
  Conflicts conflicts;
  EXPECT_EQ(Numbers{}, conflicts.add(Accesses{writes(0, 8)}));
  EXPECT_EQ(Numbers{0}, conflicts.add(Accesses{reads(0, 4), writes(10, 12)}));
  EXPECT_EQ(Numbers{0}, conflicts.add(Accesses{reads(4, 8), writes(12, 14)}));
  // The first byte has one reader, the last another one.
  EXPECT_EQ((Numbers{1, 2}), conflicts.add(Accesses{writes(3, 5)}));
  // Its writer is the one before that reader.
  EXPECT_EQ(Numbers{1}, conflicts.add(Accesses{writes(0, 3)}));
  EXPECT_EQ(Numbers{}, conflicts.add(Accesses{reads(20, 30)}));
}

TEST(Conflicts, RangesThatOnlyTouchAreApart) {
  Conflicts conflicts;
  EXPECT_EQ(Numbers{}, conflicts.add(Accesses{writes(0, 8)}));
  EXPECT_EQ(Numbers{}, conflicts.add(Accesses{writes(8, 16)}));
  EXPECT_EQ(Numbers{}, conflicts.add(Accesses{writes(8, 8)}));
  EXPECT_EQ((Numbers{0, 1}), conflicts.add(Accesses{reads(7, 9)}));
}

TEST(Conflicts, ACommandIsInNoneWithItself) {
  Conflicts conflicts;
  Accesses inPlace{reads(0, 8), writes(0, 8), reads(4, 12)};
  EXPECT_EQ(Numbers{}, conflicts.add(inPlace));
  EXPECT_EQ(Numbers{0}, conflicts.add(inPlace));
  EXPECT_EQ(Numbers{1}, conflicts.add(inPlace));
}

TEST(Conflicts, WhatIsNotKnownComesAfterAllAndBeforeAll) {
  Conflicts conflicts;
  EXPECT_EQ(Numbers{}, conflicts.addUnknown());
  EXPECT_EQ(Numbers{0}, conflicts.addUnknown());
  EXPECT_EQ(Numbers{1}, conflicts.add(Accesses{writes(0, 8)}));
  EXPECT_EQ(Numbers{1}, conflicts.add(Accesses{writes(8, 16)}));
  EXPECT_EQ((Numbers{2, 3}), conflicts.addUnknown());
  EXPECT_EQ(Numbers{4}, conflicts.add(Accesses{}));
  EXPECT_EQ(Numbers{4}, conflicts.add(Accesses{reads(0, 8)}));
}

TEST(Conflicts, NoMoreThanAreKeptStandBetweenTwoThatAllMeet) {
  Conflicts conflicts;
  for (uintptr_t at = 0; at < Conflicts::mostBetween; ++at)
    EXPECT_EQ(Numbers{}, conflicts.add(Accesses{writes(at, at + 1)}));
  EXPECT_EQ(Conflicts::mostBetween,
            conflicts.add(Accesses{reads(0, 1)}).size());
  EXPECT_EQ(Numbers{Conflicts::mostBetween},
            conflicts.add(Accesses{reads(0, 1)}));
}

/// Random commands: what they are told to follow, and all that follows from it,
/// is what conflicts ask for, no more and no less.
TEST(Conflicts, ReachWhatPairsAskFor) {
  std::mt19937_64 random(1);
  auto draw = [&](size_t below) { return size_t(random() % below); };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    size_t count = 1 + draw(40), bytes = 4 + draw(200);
    std::vector<Accesses> all(count);
    std::vector<bool> unknown(count);
    Conflicts conflicts;
    std::vector<Numbers> told;
    std::vector<std::vector<bool>> asked, follows;
    auto meet = [&](size_t i, size_t j) {
      if (unknown[i] || unknown[j])
        return true;
      for (const Access &a : all[i])
        for (const Access &b : all[j])
          if ((a.writes || b.writes) &&
              std::max(a.begin, b.begin) < std::min(a.end, b.end))
            return true;
      return false;
    };
    for (size_t j = 0; j < count; ++j) {
      unknown[j] = draw(12) == 0;
      for (size_t k = 1 + draw(4); k-- > 0;) {
        uintptr_t begin = draw(bytes);
        all[j].push_back({begin, begin + draw(20), draw(3) == 0});
      }
      told.push_back(unknown[j] ? conflicts.addUnknown()
                                : conflicts.add(all[j]));
      std::vector<bool> mustFollow(j), doesFollow(j);
      auto take = [](std::vector<bool> &into, size_t i,
                     const std::vector<bool> &its) {
        into[i] = true;
        for (size_t k = 0; k < its.size(); ++k)
          if (its[k])
            into[k] = true;
      };
      for (size_t i = 0; i < j; ++i)
        if (meet(i, j))
          take(mustFollow, i, asked[i]);
      for (size_t i : told[j]) {
        // None is told of that another one follows.
        for (size_t other : told[j])
          EXPECT_FALSE(i < other && follows[other][i]);
        take(doesFollow, i, follows[i]);
      }
      EXPECT_EQ(mustFollow, doesFollow);
      EXPECT_TRUE(std::is_sorted(told[j].begin(), told[j].end()));
      asked.push_back(mustFollow);
      follows.push_back(doesFollow);
    }
  }
}
} // namespace
