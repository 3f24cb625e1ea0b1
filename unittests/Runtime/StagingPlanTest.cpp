//===- StagingPlanTest.cpp - Host memory for messages, over time ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/StagingPlan.h"
#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;
using namespace baechi::runtime::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

struct Times {
  int64_t bytes, start, end, group;
};

Program programOf(const std::vector<Times> &times) {
  Program program = makeProgram(2);
  std::vector<int64_t> bytes;
  for (const Times &each : times)
    bytes.push_back(each.bytes);
  addQueue(program, 0, 1, bytes);
  for (size_t i = 0; i < times.size(); ++i) {
    MessageInfo &message = program.queues[0].messages[i];
    message.startNs = times[i].start;
    message.endNs = times[i].end;
    message.group = times[i].group;
  }
  return program;
}

std::vector<StagedMessage> all(size_t count) {
  std::vector<StagedMessage> messages;
  for (size_t i = 0; i < count; ++i)
    messages.push_back({0, int32_t(i)});
  return messages;
}

TEST(StagingPlan, PlacesAreUsedAgain) {
  // The first two are on their way at once; the third may have their bytes.
  StagingPlan plan = planStaging(programOf({{100, 0, 10, 0},
                                            {64, 5, 15, 0},
                                            {192, 100, 110, 1},
                                            {0, 100, 110, 1},
                                            {64, 105, 115, 1}}),
                                 all(5));
  EXPECT_EQ(256, plan.bytes);
  EXPECT_EQ(0, plan.places[0].offset);
  EXPECT_EQ(128, plan.places[1].offset);
  EXPECT_EQ(0, plan.places[2].offset);
  EXPECT_EQ(192, plan.places[4].offset);
  EXPECT_THAT(plan.places[0].after, IsEmpty());
  EXPECT_THAT(plan.places[1].after, IsEmpty());
  EXPECT_THAT(plan.places[2].after, ElementsAre(0, 1));
  EXPECT_THAT(plan.places[3].after, IsEmpty());
  EXPECT_THAT(plan.places[4].after, IsEmpty());
}

TEST(StagingPlan, WithoutGroupsEachHasAPlace) {
  StagingPlan plan =
      planStaging(programOf({{64, 0, 10, 0}, {64, 100, 110, -1}}), all(2));
  EXPECT_EQ(128, plan.bytes);
  EXPECT_THAT(plan.places[1].after, IsEmpty());
}

/// Nothing is planned into what another has at the time, and whoever shares
/// bytes with another waits for it, by others that come between, or is waited
/// for: in the order of groups, so never in a circle.
TEST(StagingPlan, RandomPlans) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Times> times;
    for (size_t i = 0; i < 30; ++i) {
      int64_t start = random() % 400;
      times.push_back({int64_t(random() % 500), start,
                       start + int64_t(random() % 60), start / 40});
    }
    StagingPlan plan = planStaging(programOf(times), all(times.size()));
    auto orderOf = [&](size_t i) {
      return std::tuple(times[i].group, times[i].start, i);
    };
    auto roundUp = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
    // By the order: who has gone through before.
    std::vector<size_t> sorted;
    for (size_t i = 0; i < times.size(); ++i)
      sorted.push_back(i);
    std::sort(sorted.begin(), sorted.end(),
              [&](size_t a, size_t b) { return orderOf(a) < orderOf(b); });
    std::vector<std::vector<bool>> waits(
        times.size(), std::vector<bool>(times.size(), false));
    for (size_t i : sorted)
      for (size_t before : plan.places[i].after) {
        ASSERT_LT(orderOf(before), orderOf(i));
        waits[i][before] = true;
        for (size_t j = 0; j < times.size(); ++j)
          waits[i][j] = waits[i][j] || waits[before][j];
      }
    for (size_t a = 0; a < times.size(); ++a) {
      int64_t at = plan.places[a].offset, size = roundUp(times[a].bytes);
      ASSERT_LE(at + size, plan.bytes);
      for (size_t b = 0; b < a; ++b) {
        int64_t there = plan.places[b].offset, other = roundUp(times[b].bytes);
        if (size == 0 || other == 0 || at + size <= there ||
            there + other <= at)
          continue;
        ASSERT_TRUE(times[a].end < times[b].start ||
                    times[b].end < times[a].start)
            << seed;
        ASSERT_TRUE(waits[a][b] || waits[b][a]) << seed;
      }
    }
  }
}

} // namespace
