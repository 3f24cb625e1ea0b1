//===- RemoteStateTest.cpp - State that another process has ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/RemoteState.h"
#include "Baechi/Replicas/SharedState.h"

#include <gmock/gmock.h>
#include <numeric>
#include <thread>

using namespace baechi::replicas;
using testing::HasSubstr;

namespace {

/// Arrays of one row, of whole rows, and with a rest.
const std::vector<SharedArray> arrays = {{"a", 1}, {"b", 2048}, {"c", 2500}};

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Four replicas, of which the last two ask: as two processes, whose messages
/// are calls here. Reads are checked by the store.
class RemoteStateTest : public testing::Test {
protected:
  void create(int staleness, std::optional<double> budget = std::nullopt) {
    options.workers = 4;
    options.staleness = staleness;
    options.budget = budget;
    options.checked = true;
    std::string error;
    shared = SharedState::create(arrays, options, error);
    ASSERT_TRUE(shared) << error;
    for (size_t i = 0; i < arrays.size(); ++i)
      ASSERT_EQ(shared->set(i, numbers(arrays[i].elements, float(i))), "");
  }

  std::unique_ptr<RemoteState> remote(int replica, std::string &error) {
    return RemoteState::create(
        arrays, options, replica,
        [this, replica](std::string question, std::string &why) {
          bool asksMore = true;
          if (cut)
            why = "the line is cut";
          return cut ? "" : shared->answer(replica, question, asksMore);
        },
        error);
  }

  /// A replica adds its number to all that it sees, so many times.
  void work(ReplicaState &state, int replica, int steps) {
    std::vector<float> seen;
    for (int step = 0; step < steps; ++step) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        ASSERT_EQ(state.see(replica, i, seen), "");
        ASSERT_EQ(seen.size(), arrays[i].elements);
        std::vector<float> next = seen;
        for (float &value : next)
          value += float(replica);
        ASSERT_EQ(state.change(replica, i, seen, next), "");
      }
      ASSERT_EQ(state.end(replica), "");
    }
    ASSERT_EQ(state.finish(replica), "");
  }

  void workAll(int steps) {
    std::vector<std::thread> threads;
    for (int replica = 0; replica < 4; ++replica)
      threads.emplace_back([this, replica, steps] {
        if (replica < 2)
          return work(*shared, replica, steps);
        std::string error;
        auto mine = remote(replica, error);
        ASSERT_TRUE(mine) << error;
        work(*mine, replica, steps);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// After `steps`, of which each changed all by the mean of 0 to 3.
  void checkSums(int steps) {
    EXPECT_EQ(shared->drain(), "");
    std::vector<float> found;
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(shared->read(i, found), "");
      EXPECT_EQ(found,
                numbers(arrays[i].elements, float(i) + float(steps) * 1.5f));
    }
  }

  baechi::store::StoreOptions options;
  std::unique_ptr<SharedState> shared;
  std::atomic<bool> cut{false};
};

TEST_F(RemoteStateTest, ChangesAreTheReplicasMean) {
  for (int staleness : {0, 2}) {
    create(staleness);
    workAll(8);
    checkSums(8);
    EXPECT_EQ(shared->report().clocks, std::vector<int64_t>(4, 8));
    std::vector<uint64_t> reads = shared->report().readsByStaleness;
    // A row of each, two of `b`, three of `c`.
    EXPECT_EQ(std::accumulate(reads.begin(), reads.end(), uint64_t(0)),
              4u * 8 * 6);
  }
}

TEST_F(RemoteStateTest, ABandwidthMovesRowsBetweenClocks) {
  create(3, 1e7);
  workAll(20);
  checkSums(20);
}

TEST_F(RemoteStateTest, WhoIsLostIsTold) {
  create(0);
  std::string error;
  auto mine = remote(3, error);
  ASSERT_TRUE(mine) << error;
  std::vector<float> seen;
  EXPECT_EQ(shared->see(0, 0, seen), "");
  mine->lose(3, "out of paper");
  EXPECT_THAT(shared->see(0, 0, seen),
              HasSubstr("worker 3 is lost: out of paper"));
  auto other = remote(2, error);
  ASSERT_TRUE(other) << error;
  EXPECT_THAT(other->see(2, 0, seen), HasSubstr("worker 3 is lost"));
}

TEST_F(RemoteStateTest, ALineThatIsCutIsTold) {
  create(1);
  std::string error;
  auto mine = remote(2, error);
  ASSERT_TRUE(mine) << error;
  cut = true;
  std::vector<float> seen;
  EXPECT_EQ(mine->see(2, 0, seen), "the line is cut");
}

} // namespace
