//===- StoreSimulationTest.cpp - A store in simulated time ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ParameterStore.h"

#include <gmock/gmock.h>

#include <functional>
#include <numeric>

using namespace baechi::store;
using testing::HasSubstr;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

StoreOptions optionsOf(int workers, int staleness, std::optional<double> budget,
                       SendOrder order = SendOrder::RelativeMagnitude) {
  StoreOptions options;
  options.workers = workers;
  options.staleness = staleness;
  options.budget = budget;
  options.order = order;
  options.patience = endless;
  options.roundBytes = 1000;
  options.checked = true;
  options.simulated = SimulatedNetwork{1e6, 1000000};
  return options;
}

/// Workers that read some rows, compute, add whole numbers to them, and tell
/// their clock. \p slots of each worker's are a clock.
class Loop {
public:
  Loop(ParameterStore &store, int slots, int64_t clocks)
      : store(store), slots(slots), clocks(clocks),
        done(size_t(store.options().workers), 0) {}

  /// Seconds of a worker's slot.
  virtual double seconds(int worker, int slot) {
    return 0.01 + 0.001 * double((worker * 7 + slot * 3) % 5);
  }
  virtual ~Loop() = default;

  void run() {
    while (std::optional<int> worker = store.next())
      turn(*worker);
  }

  std::vector<int64_t> seen; ///< sums of what was read, in order

private:
  void turn(int worker) {
    int &slot = done[size_t(worker)];
    size_t rows = store.tables()[0].rows, width = store.tables()[0].width;
    std::vector<float> value(width), update(width);
    if (slot % 2 == 1) {
      for (size_t i = 0; i < 5; ++i) {
        update.assign(width, float(1 + i % 3));
        store.inc(worker, 0, (size_t(slot * 5 + worker) + i) % rows,
                  update.data());
      }
      if (slot / 2 % slots == slots - 1 && store.clock(worker) == clocks)
        return store.finish(worker);
      ++slot;
      return store.compute(worker, 0);
    }
    float sum = 0;
    for (size_t i = 0; i < 5; ++i) {
      store.get(worker, 0, (size_t(slot * 5 + worker) + i * 3) % rows,
                value.data());
      sum += value[0];
    }
    seen.push_back(int64_t(sum));
    store.compute(worker, seconds(worker, slot++ / 2));
  }

  ParameterStore &store;
  int slots;
  int64_t clocks;
  std::vector<int> done;
};

std::vector<float> valuesOf(ParameterStore &store) {
  std::vector<float> all, value(store.tables()[0].width);
  store.drain();
  for (size_t row = 0; row < store.tables()[0].rows; ++row) {
    store.read(0, row, value.data());
    all.insert(all.end(), value.begin(), value.end());
  }
  return all;
}

std::string errorOf(const std::function<void()> &call) {
  try {
    call();
  } catch (const StoreError &error) {
    return error.what();
  }
  return "";
}

/// Two workers, one row of 100 numbers (412 bytes), 1 MB/s, 1 ms of latency.
TEST(StoreSimulation, ATripByHand) {
  ParameterStore store({{"x", 1, 100}}, optionsOf(2, 0, {}));
  std::vector<float> one(100, 1), value(100);
  for (int worker : {0, 1}) {
    ASSERT_EQ(store.next(), worker);
    store.get(worker, 0, 0, value.data());
    store.compute(worker, worker == 0 ? 0.010 : 0.030);
  }
  // First reads take two latencies and the row's bytes.
  ASSERT_EQ(store.next(), 0);
  EXPECT_NEAR(store.simulatedSeconds(), 0.010 + 0.002412, 1e-9);
  store.inc(0, 0, 0, one.data());
  store.clock(0);
  store.compute(0, 0);
  ASSERT_EQ(store.next(), 1);
  EXPECT_NEAR(store.simulatedSeconds(), 0.030 + 0.002412, 1e-9);
  store.inc(1, 0, 0, one.data());
  store.clock(1);
  store.compute(1, 0);
  // Both rows go up when the last worker is there, and then down.
  ASSERT_EQ(store.next(), 0);
  EXPECT_NEAR(store.simulatedSeconds(), 0.032412 + 2 * 0.001412, 1e-9);
  store.get(0, 0, 0, value.data());
  EXPECT_EQ(value[7], 2);
  EXPECT_NEAR(store.report().secondsWaited[0], 0.020 + 2 * 0.001412, 1e-9);
}

struct Case {
  int workers, processes, staleness;
  std::optional<double> budget;
  SendOrder order;
};

/// Every read is counted by the checker; the sums are whole numbers.
TEST(StoreSimulation, NothingIsStalerThanPromisedOrLost) {
  for (const Case &each :
       std::vector<Case>{{1, 0, 0, {}, SendOrder::Age},
                         {4, 0, 0, {}, SendOrder::Age},
                         {4, 0, 2, {}, SendOrder::Age},
                         {4, 2, 1, 2e4, SendOrder::Random},
                         {5, 0, 0, 2e4, SendOrder::RelativeMagnitude},
                         {5, 0, 3, 5e4, SendOrder::RoundRobin},
                         {4, 0, 1, 1e4, SendOrder::Magnitude},
                         {4, 3, 2, endless, SendOrder::RelativeMagnitude}}) {
    StoreOptions options =
        optionsOf(each.workers, each.staleness, each.budget, each.order);
    options.processes = each.processes;
    std::vector<std::vector<int64_t>> seen;
    std::vector<double> seconds;
    std::vector<std::vector<float>> values;
    for (int again = 0; again < 2; ++again) {
      ParameterStore store({{"x", 40, 3}}, options);
      Loop loop(store, 3, 8);
      loop.run();
      seconds.push_back(store.simulatedSeconds());
      seen.push_back(loop.seen);
      values.push_back(valuesOf(store));
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seconds[0], seconds[1]);
    // 5 updates of 1, 2, 3, 1, 2 a slot, to 3 numbers.
    float sum = std::accumulate(values[0].begin(), values[0].end(), 0.0f);
    EXPECT_EQ(sum, float(each.workers * 8 * 3 * 9 * 3));
  }
}

/// While rows wait all of the budget is used, and never more of it.
TEST(StoreSimulation, TheBudgetIsKeptAndUsed) {
  constexpr double budget = 3e4;
  StoreOptions options = optionsOf(4, 2, budget);
  ParameterStore store({{"x", 4000, 30}}, options);
  std::vector<float> one(30, 1), value(30);
  std::vector<int> slots(4, 0);
  SplitMix random(3);
  while (std::optional<int> worker = store.next()) {
    for (int i = 0; i < 20; ++i) {
      size_t row = random.next() % 4000;
      store.get(*worker, 0, row, value.data());
      store.inc(*worker, 0, row, one.data());
    }
    int slot = ++slots[size_t(*worker)];
    if (slot % 5 == 0)
      store.clock(*worker);
    if (slot == 50)
      store.finish(*worker);
    else
      store.compute(*worker, 0.01);
  }
  StoreReport report = store.report();
  double all = store.simulatedSeconds() * budget;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_LE(double(report.bytesSent[i]), all + 1000);
    EXPECT_GE(double(report.bytesSent[i]), 0.95 * all);
    EXPECT_LE(double(report.bytesReceived[i] - report.bytesFetched[i]),
              all + 1000);
  }
}

/// A worker slowed tenfold keeps the others within the bound, and none fails
/// that has patience.
class OneIsSlow : public Loop {
public:
  using Loop::Loop;
  double seconds(int worker, int) override { return worker == 2 ? 0.1 : 0.01; }
};

TEST(StoreSimulation, ASlowWorkerIsWaitedForOrNamed) {
  StoreOptions options = optionsOf(4, 1, {});
  {
    ParameterStore store({{"x", 40, 3}}, options);
    OneIsSlow(store, 3, 8).run();
    StoreReport report = store.report();
    EXPECT_THAT(report.clocks, testing::Each(8));
    // Three slots of a tenth of a second a clock, but for the first two.
    EXPECT_GT(report.secondsWaited[0], 1.5);
    EXPECT_LT(report.secondsWaited[2], 0.1);
  }
  options.patience = 0.2;
  ParameterStore store({{"x", 40, 3}}, options);
  std::string error = errorOf([&] { OneIsSlow(store, 3, 8).run(); });
  EXPECT_THAT(error, HasSubstr("for worker 2, which is at clock"));
  EXPECT_LT(store.simulatedSeconds(), 2);
}

TEST(StoreSimulation, AStoppedWorkerIsNamed) {
  ParameterStore store({{"x", 4, 1}}, optionsOf(2, 0, {}));
  ASSERT_EQ(store.next(), 0);
  store.clock(0);
  store.compute(0, 0);
  ASSERT_EQ(store.next(), 1);
  store.lose(1, "killed");
  EXPECT_EQ(errorOf([&] { store.next(); }), "worker 1 is lost: killed");
  StoreOptions waits = optionsOf(2, 0, {});
  waits.whenLost = WhenLost::Wait;
  ParameterStore other({{"x", 4, 1}}, waits);
  ASSERT_EQ(other.next(), 0);
  other.clock(0);
  other.compute(0, 0);
  ASSERT_EQ(other.next(), 1);
  other.lose(1, "killed");
  EXPECT_THAT(errorOf([&] { other.next(); }),
              HasSubstr("for worker 1, which is at clock 0"));
}

TEST(StoreSimulation, WrongTurns) {
  ParameterStore store({{"x", 4, 1}}, optionsOf(2, 0, {}));
  float value = 0;
  ASSERT_EQ(store.next(), 0);
  EXPECT_THAT(errorOf([&] { store.next(); }),
              HasSubstr("worker 0 had its turn and neither computes"));
  EXPECT_EQ(errorOf([&] { store.compute(1, 0); }),
            "it is not the turn of worker 1");
  EXPECT_THAT(errorOf([&] { store.compute(0, -1); }),
              HasSubstr("computes for -1.000000 s"));
  store.clock(0);
  EXPECT_THAT(errorOf([&] { store.get(0, 0, 0, &value); }),
              HasSubstr("reads before the bound lets it"));
  StoreOptions real;
  ParameterStore threads({{"x", 4, 1}}, real);
  EXPECT_THAT(errorOf([&] { threads.next(); }), HasSubstr("not simulated"));
  EXPECT_THAT(errorOf([&] { threads.compute(0, 1); }),
              HasSubstr("not simulated"));
  StoreOptions wrong = optionsOf(1, 0, {});
  wrong.simulated->bytesPerSecond = 0;
  EXPECT_THAT(errorOf([&] { ParameterStore({{"x", 4, 1}}, wrong); }),
              HasSubstr("the simulated network's bytes per second is 0"));
  wrong.simulated = SimulatedNetwork{1, -1};
  EXPECT_THAT(errorOf([&] { ParameterStore({{"x", 4, 1}}, wrong); }),
              HasSubstr("the simulated network's latency is -1"));
}

} // namespace
