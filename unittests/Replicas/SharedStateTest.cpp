//===- SharedStateTest.cpp - Arrays that replicas see late ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/SharedState.h"

#include <cmath>
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

/// One replica's are late for nobody: then its steps are AdaGrad's, whatever
/// its own step multiplies the gradient by.
TEST(SharedState, RevisedStepsAreAdaGrads) {
  std::vector<SharedArray> arrays = {{"a", 3, 0.5}, {"b", 1}};
  std::string error;
  auto state = SharedState::create(arrays, optionsOf(1, 0), error);
  ASSERT_TRUE(state) << error;
  ASSERT_EQ(state->set(0, {1, -2, 4}), "");
  ASSERT_EQ(state->set(1, {3}), "");
  std::vector<double> expected = {1, -2, 4}, squares(3);
  std::vector<float> seen, other;
  for (int step = 1; step < 9; ++step) {
    ASSERT_EQ(state->see(0, 0, seen), "");
    ASSERT_EQ(state->see(0, 1, other), "");
    std::vector<float> next = seen;
    for (size_t i = 0; i < next.size(); ++i) {
      double gradient = expected[i] * (i + 1) + 0.25 * step;
      next[i] = float(seen[i] - 0.125 * gradient);
      squares[i] += gradient * gradient;
      expected[i] -= 0.5 * gradient / std::sqrt(squares[i]);
    }
    ASSERT_EQ(state->change(0, 0, seen, next), "");
    ASSERT_EQ(state->change(0, 1, other, {other[0] + 1}), "");
    ASSERT_EQ(state->end(0), "");
  }
  state->finish(0);
  ASSERT_EQ(state->drain(), "");
  ASSERT_EQ(state->read(0, seen), "");
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], expected[i], 1e-4);
  ASSERT_EQ(state->read(1, other), "");
  EXPECT_EQ(other[0], 11);
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
