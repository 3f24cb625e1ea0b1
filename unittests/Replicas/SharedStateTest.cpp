//===- SharedStateTest.cpp - Arrays that replicas see late ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/SharedState.h"

#include <gmock/gmock.h>
#include <numeric>
#include <thread>

using namespace baechi::replicas;
using testing::HasSubstr;

namespace {

baechi::store::StoreOptions optionsOf(int replicas, int staleness) {
  baechi::store::StoreOptions options;
  options.workers = replicas;
  options.staleness = staleness;
  options.checked = true;
  return options;
}

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Arrays of one row, of whole rows, and with a rest.
TEST(SharedState, ChangesAreTheReplicasMean) {
  std::vector<SharedArray> arrays = {{"a", 1}, {"b", 2048}, {"c", 2500}};
  std::string error;
  auto state = SharedState::create(arrays, optionsOf(4, 2), error);
  ASSERT_TRUE(state) << error;
  for (size_t i = 0; i < arrays.size(); ++i)
    EXPECT_EQ(state->set(i, numbers(arrays[i].elements, float(i))), "");
  auto work = [&](int replica) {
    std::vector<float> seen, next;
    for (int step = 0; step < 8; ++step) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        ASSERT_EQ(state->see(replica, i, seen), "");
        next = seen;
        for (float &value : next)
          value += float(replica);
        ASSERT_EQ(state->change(replica, i, seen, next), "");
      }
      ASSERT_EQ(state->end(replica), "");
    }
    state->finish(replica);
  };
  std::vector<std::thread> threads;
  for (int replica = 0; replica < 4; ++replica)
    threads.emplace_back(work, replica);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(state->drain(), "");
  std::vector<float> found;
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(state->read(i, found), "");
    EXPECT_EQ(found, numbers(arrays[i].elements, float(i) + 8 * 1.5f));
  }
  EXPECT_EQ(state->report().clocks, std::vector<int64_t>(4, 8));
}

TEST(SharedState, WhatIsWrongIsTold) {
  std::string error;
  EXPECT_FALSE(SharedState::create({{"a", 1}}, optionsOf(2, -1), error));
  EXPECT_THAT(error, HasSubstr("the staleness is -1: give 0 for no delay"));
  EXPECT_FALSE(SharedState::create({}, optionsOf(2, 0), error));
  EXPECT_THAT(error, HasSubstr("the store has no table"));
}

TEST(SharedState, OthersStopWhereOneIsLost) {
  std::string error;
  auto state = SharedState::create({{"a", 3}}, optionsOf(2, 0), error);
  ASSERT_TRUE(state) << error;
  std::vector<float> seen;
  EXPECT_EQ(state->see(0, 0, seen), "");
  state->lose(1, "out of paper");
  EXPECT_THAT(state->see(0, 0, seen),
              HasSubstr("worker 1 is lost: out of paper"));
}

} // namespace
