//===- ProcessCacheTest.cpp - What a cache elsewhere sees -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ProcessCache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

using namespace baechi::store;
using testing::HasSubstr;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr size_t rows = 12;

/// A worker's cache, and what goes between it and the store as messages.
struct Elsewhere {
  Elsewhere(ParameterStore &store, int worker) : store(store), worker(worker) {
    int64_t clock, fresh;
    EXPECT_TRUE(store.moveElsewhere(worker, clock, fresh));
    cache = std::make_unique<ProcessCache>(store.tables(), store.options(),
                                           worker, clock, fresh);
  }
  void send(const SentRows &up, int64_t sent, size_t room) {
    store.receive(worker, SentRows::parse(up.text()), sent, cache->clock());
    int64_t through;
    SentRows down = store.send(worker, room, through);
    cache->add(SentRows::parse(down.text()), through);
  }
  void round() {
    SentRows up = cache->take(false);
    send(up, cache->sent(), cache->room());
  }
  /// Whether it may read; the others have all come as far.
  void wait() {
    double waited = 0;
    for (round(); cache->fresh() < cache->needed(); round()) {
      store.await(worker, cache->needed(), 0.001, waited);
      waited += 0.001;
    }
  }
  void get(size_t row, float *value, float *counts) {
    wait();
    if (!cache->has(0, row)) {
      std::vector<float> numbers(store.numbersOf(0));
      store.fetch(worker, 0, row, numbers.data());
      cache->put(0, row, numbers.data());
    }
    cache->get(0, row, value, counts);
    if (counts)
      store.checkRead(worker, 0, row, cache->clock(), counts);
  }
  void finish() {
    SentRows up = cache->take(true);
    send(up, std::numeric_limits<int64_t>::max() / 2, 0);
    store.finish(worker);
    store.moveBack(worker);
  }

  ParameterStore &store;
  int worker;
  std::unique_ptr<ProcessCache> cache;
};

struct Case {
  std::string name;
  int staleness;
  std::optional<double> budget;
  SendOrder order;
  /// Workers from here on have their rows elsewhere.
  int elsewhere;
  bool checked;

  friend void PrintTo(const Case &given, std::ostream *os) {
    *os << given.name;
  }
};

class RandomSchedules : public testing::TestWithParam<Case> {};

/// Each worker adds ones to its own number of a row, so a read says how many
/// updates of whom are within: what the bound promises, all own ones, and none
/// that nobody made.
TEST_P(RandomSchedules, SeeWhatTheBoundPromises) {
  constexpr int workers = 4;
  const Case &given = GetParam();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    StoreOptions options;
    options.workers = workers;
    options.staleness = given.staleness;
    options.budget = given.budget;
    options.order = given.order;
    options.roundBytes = 100; // few rows a round
    options.checked = given.checked;
    options.patience = 60;
    ParameterStore store({{"counts", rows, workers}}, options);
    std::vector<std::unique_ptr<Elsewhere>> caches(workers);
    for (int i = given.elsewhere; i < workers; ++i)
      caches[size_t(i)] = std::make_unique<Elsewhere>(store, i);
    // By worker and row: the clock of each update.
    std::vector<std::vector<int64_t>> made[workers];
    for (auto &each : made)
      each.resize(rows);
    std::vector<int64_t> clocks(workers, 0);
    bool isBulk = given.staleness == 0 && !given.budget;
    std::vector<char> hasRead(workers, 0);
    std::mt19937 random(seed);
    for (int step = 0; step < 400; ++step) {
      int worker = int(random() % workers);
      Elsewhere *cache = caches[size_t(worker)].get();
      int64_t clock = clocks[size_t(worker)];
      size_t row = random() % rows;
      float value[workers] = {}, counts[workers];
      uint32_t what = random() % 4;
      if (isBulk) {
        // Who does not read in each clock does not wait, and goes ahead.
        if (clock > std::ranges::min(clocks))
          continue;
        if (!hasRead[size_t(worker)])
          what = 3;
        hasRead[size_t(worker)] = what != 2;
      }
      switch (what) {
      case 0:
      case 1:
        value[worker] = 1;
        cache ? cache->cache->inc(0, row, value)
              : store.inc(worker, 0, row, value);
        made[worker][row].push_back(clock);
        break;
      case 2:
        if (cache) {
          cache->cache->tick();
          cache->round();
        } else {
          store.clock(worker);
        }
        ++clocks[size_t(worker)];
        break;
      case 3: {
        // Else it would wait for somebody who waits for this thread.
        if (std::ranges::min(clocks) <
            clock - (given.budget ? std::min(given.staleness, options.tolerance)
                                  : given.staleness))
          break;
        // A budget has held these back, until their own next rounds.
        for (auto &other : caches)
          while (other && other->cache->sent() < clock - given.staleness)
            other->round();
        cache ? cache->get(row, value, given.checked ? counts : nullptr)
              : store.get(worker, 0, row, value);
        for (int other = 0; other < workers; ++other) {
          const std::vector<int64_t> &theirs = made[other][row];
          auto promised = std::ranges::count_if(theirs, [&](int64_t at) {
            return at < clock - given.staleness || other == worker;
          });
          ASSERT_GE(value[other], promised) << "seed " << seed;
          ASSERT_LE(value[other], theirs.size()) << "seed " << seed;
          if (isBulk)
            ASSERT_EQ(value[other], promised) << "seed " << seed;
        }
        break;
      }
      }
    }
    for (int worker = 0; worker < workers; ++worker)
      caches[size_t(worker)] ? caches[size_t(worker)]->finish()
                             : store.finish(worker);
    store.drain();
    for (size_t row = 0; row < rows; ++row) {
      float value[workers];
      store.read(0, row, value);
      for (int worker = 0; worker < workers; ++worker)
        ASSERT_EQ(value[worker], made[worker][row].size()) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Caches, RandomSchedules,
    testing::ValuesIn<Case>({
        {"Bulk", 0, {}, SendOrder::Age, 0, false},
        {"BulkMixed", 0, {}, SendOrder::Age, 2, true},
        {"Stale", 1, {}, SendOrder::RelativeMagnitude, 0, true},
        {"StaleMixed", 3, {}, SendOrder::RelativeMagnitude, 2, false},
        {"Budget", 2, 2e5, SendOrder::RelativeMagnitude, 0, false},
        {"BudgetMixed", 2, 1e6, SendOrder::Magnitude, 2, true},
        {"VeryStale", 5, 2e5, SendOrder::Random, 1, false},
        {"Turn", 1, 2e5, SendOrder::RoundRobin, 1, true},
        {"Endless", 1, endless, SendOrder::Age, 1, false},
    }),
    [](const auto &info) { return info.param.name; });

TEST(ProcessCache, ReadsWithinTheBoundNeedNoMessage) {
  StoreOptions options;
  options.workers = 2;
  options.staleness = 2;
  ParameterStore store({{"w", 1, 1}}, options);
  Elsewhere other(store, 1);
  float one = 1, value;
  other.get(0, &value, nullptr);
  for (float clock = 0; clock < 3; ++clock) {
    other.cache->get(0, 0, &value, nullptr);
    EXPECT_EQ(value, clock);
    other.cache->inc(0, 0, &one);
    other.cache->tick();
  }
  EXPECT_EQ(other.cache->needed(), 1);
  try {
    other.cache->get(0, 0, &value, nullptr);
    FAIL();
  } catch (const StoreError &error) {
    EXPECT_THAT(error.what(), HasSubstr("fetch it, and await what others"));
  }
  EXPECT_THAT(other.cache->readsByStaleness(), testing::ElementsAre(2, 1, 1));
}

TEST(ProcessCache, ABudgetLimitsWhatGoesAndComes) {
  StoreOptions options;
  options.workers = 2;
  options.staleness = 100;
  options.budget = 1e4;
  options.roundBytes = 320; // 20 rows
  ParameterStore store({{"w", 1000, 1}}, options);
  Elsewhere other(store, 1);
  float one = 1;
  for (size_t row = 0; row < 1000; ++row)
    other.cache->inc(0, row, &one);
  auto begin = std::chrono::steady_clock::now();
  size_t sent = 0;
  std::chrono::duration<double> took{};
  while (took.count() < 0.3) {
    sent += other.cache->take(false).size() * 16;
    took = std::chrono::steady_clock::now() - begin;
  }
  EXPECT_LE(double(sent), 1e4 * took.count() + 320);
  EXPECT_GT(sent, 320u);
  SentRows rows;
  for (uint32_t row = 0; row < 20; ++row) // checked rows have counts, too
    *rows.append(0, row, other.cache->numbersOf(0)) = 1;
  size_t came = 0;
  for (; other.cache->room() > 0; came += 320) {
    EXPECT_EQ(other.cache->room(), 320u);
    other.cache->add(rows, 0);
  }
  took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(double(came), 1e4 * took.count() + 320);
}

TEST(ProcessCache, AWorkerHasItsRowsInOnePlace) {
  StoreOptions options;
  options.workers = 2;
  ParameterStore store({{"w", 2, 1}}, options);
  float value = 3;
  store.inc(1, 0, 1, &value);
  {
    Elsewhere other(store, 1);
    for (const auto &call :
         {std::function<void()>([&] { store.get(1, 0, 0, &value); }),
          std::function<void()>([&] { store.inc(1, 0, 0, &value); })})
      try {
        call();
        FAIL();
      } catch (const StoreError &error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("worker 1 has its rows in another process"));
      }
    other.get(1, &value, nullptr);
    EXPECT_EQ(value, 3); // what it did before
    store.moveBack(1);
  }
  store.get(1, 0, 1, &value);
  EXPECT_EQ(value, 3);
  options.processes = 1;
  ParameterStore shared({{"w", 2, 1}}, options);
  int64_t clock, fresh;
  EXPECT_FALSE(shared.moveElsewhere(1, clock, fresh));
  shared.moveBack(1);
  try {
    shared.fetch(1, 0, 0, &value);
    FAIL();
  } catch (const StoreError &error) {
    EXPECT_THAT(error.what(),
                HasSubstr("worker 1 has its rows with the store"));
  }
}

TEST(ProcessCache, GradientsMakeTheSameSteps) {
  float made[2];
  for (bool isElsewhere : {false, true}) {
    StoreOptions options;
    ParameterStore store({{"w", 1, 1, UpdateRule::AdaptiveRevision, 0.5}},
                         options);
    std::unique_ptr<Elsewhere> other;
    if (isElsewhere)
      other = std::make_unique<Elsewhere>(store, 0);
    float value;
    for (int clock = 0; clock < 6; ++clock) {
      other ? other->get(0, &value, nullptr) : store.get(0, 0, 0, &value);
      for (float gradient : {value + 1, float(clock)})
        other ? other->cache->inc(0, 0, &gradient)
              : store.inc(0, 0, 0, &gradient);
      if (other) {
        other->cache->tick();
        other->round();
      } else {
        store.clock(0);
      }
    }
    other ? other->finish() : store.finish(0);
    store.drain();
    store.read(0, 0, &made[isElsewhere]);
  }
  EXPECT_NE(made[0], 0);
  EXPECT_EQ(made[0], made[1]);
}

TEST(SentRows, WhatIsNoMessageIsRefused) {
  SentRows rows;
  *rows.append(0, 1, 1) = 2;
  std::string text = rows.text();
  EXPECT_EQ(SentRows::parse(text).numbers, std::vector<float>{2});
  for (std::string wrong :
       {std::string("short"), text.substr(0, text.size() - 1),
        std::string(8, '\xff') + text}) {
    EXPECT_THROW(SentRows::parse(wrong), StoreError);
  }
  StoreOptions options;
  ParameterStore store({{"w", 2, 4}}, options);
  Elsewhere other(store, 0);
  EXPECT_THROW(store.receive(0, rows, 0, 0), StoreError);
  EXPECT_THROW(other.cache->add(rows, 0), StoreError);
}

} // namespace
