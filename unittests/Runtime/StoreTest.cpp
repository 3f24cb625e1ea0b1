//===- StoreTest.cpp - What reads of a parameter store see ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ParameterStore.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>

using namespace baechi::store;

namespace {

using Body = std::function<void(int worker)>;

/// Runs every worker on a thread; the first error of any is thrown.
void runWorkers(int workers, const Body &body) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<size_t>(workers));
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      try {
        body(worker);
      } catch (const StoreError &error) {
        errors[size_t(worker)] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    if (!error.empty())
      throw StoreError(error);
}

struct Case {
  std::string name;
  int workers, processes, staleness;
  std::optional<double> budget;
  SendOrder order;

  friend void PrintTo(const Case &given, std::ostream *os) {
    *os << given.name;
  }
};

std::vector<Case> cases() {
  constexpr double endless = std::numeric_limits<double>::infinity();
  return {{"One", 1, 0, 0, {}, SendOrder::Age},
          {"Bulk", 4, 0, 0, {}, SendOrder::RelativeMagnitude},
          {"Stale", 4, 0, 2, {}, SendOrder::RelativeMagnitude},
          {"Shared", 4, 2, 1, {}, SendOrder::RelativeMagnitude},
          {"VeryStale", 3, 0, 5, 2e6, SendOrder::RelativeMagnitude},
          {"Random", 4, 0, 1, 2e6, SendOrder::Random},
          {"Magnitude", 4, 3, 3, 1e6, SendOrder::Magnitude},
          {"Age", 4, 0, 0, 2e6, SendOrder::Age},
          {"Endless", 4, 0, 2, endless, SendOrder::RelativeMagnitude}};
}

StoreOptions optionsOf(const Case &given) {
  StoreOptions options;
  options.workers = given.workers;
  options.processes = given.processes;
  options.staleness = given.staleness;
  options.budget = given.budget;
  options.order = given.order;
  options.roundBytes = 500;
  options.patience = 300; // a slow machine is no fault
  return options;
}

class StoreCases : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(, StoreCases, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

/// Element w of every row counts what worker w did, once a clock: what a read
/// must show follows from the rule alone.
TEST_P(StoreCases, ReadsSeeWhatTheBoundPromises) {
  constexpr size_t rows = 100;
  constexpr int64_t clocks = 30;
  StoreOptions options = optionsOf(GetParam());
  options.checked = true; // which counts by itself
  size_t workers = size_t(options.workers);
  ParameterStore store({{"counts", rows, workers}}, options);
  runWorkers(options.workers, [&](int worker) {
    std::vector<float> one(workers, 0.0f), seen(workers);
    one[size_t(worker)] = 1;
    for (int64_t clock = 0; clock < clocks; ++clock) {
      for (size_t row = 0; row < rows; ++row) {
        store.get(worker, 0, row, seen.data());
        EXPECT_EQ(seen[size_t(worker)], float(clock));
        for (float count : seen) {
          EXPECT_GE(count, float(clock - options.staleness));
          EXPECT_LE(count, float(clocks));
        }
        store.inc(worker, 0, row, one.data());
      }
      EXPECT_EQ(store.clock(worker), clock + 1);
    }
    store.finish(worker);
  });
  store.drain();
  std::vector<float> sum(workers);
  for (size_t row = 0; row < rows; ++row) {
    store.read(0, row, sum.data());
    EXPECT_EQ(sum, std::vector<float>(workers, float(clocks)));
  }
  StoreReport report = store.report();
  uint64_t reads = 0;
  for (uint64_t count : report.readsByStaleness)
    reads += count;
  EXPECT_EQ(reads, rows * clocks * workers);
}

/// BAECHI_STORE_UPDATES makes them more: whole numbers, whose sums are exact.
TEST_P(StoreCases, NoUpdateIsLost) {
  constexpr size_t rows = 4096, width = 16;
  const char *asked = std::getenv("BAECHI_STORE_UPDATES");
  StoreOptions options = optionsOf(GetParam());
  options.checked = false;
  options.roundBytes = 100 << 10;
  size_t workers = size_t(options.workers);
  size_t updates =
      (asked ? std::strtoull(asked, nullptr, 10) : 200000) / workers;
  // A clock waits for the bytes of all rows: with a budget there are so many
  // clocks as end within minutes.
  bool waits = options.budget && std::isfinite(*options.budget);
  size_t clockEvery = waits ? std::max<size_t>(5000, updates / 500) : 5000;
  ParameterStore store({{"few", 3, 2}, {"many", rows, width}}, options);
  std::vector<std::vector<uint64_t>> counted(workers,
                                             std::vector<uint64_t>(rows, 0));
  runWorkers(options.workers, [&](int worker) {
    SplitMix random{uint64_t(worker)};
    std::vector<float> update(width), few = {1, -1}, seen(width);
    for (size_t i = 0; i < updates; ++i) {
      size_t row = random.next() % rows;
      update.assign(width, float(1 + row % 3));
      store.inc(worker, 1, row, update.data());
      counted[size_t(worker)][row] += 1 + row % 3;
      if (i % clockEvery == clockEvery - 1) {
        store.inc(worker, 0, 1, few.data());
        store.clock(worker);
        store.get(worker, 1, row, seen.data());
        EXPECT_GE(seen[0], float(counted[size_t(worker)][row]));
      }
    }
    store.finish(worker);
  });
  store.drain();
  std::vector<float> value(width);
  for (size_t row = 0; row < rows; ++row) {
    uint64_t sum = 0;
    for (const std::vector<uint64_t> &mine : counted)
      sum += mine[row];
    ASSERT_LT(sum, 1u << 24) << "floats are no longer exact: take more rows";
    store.read(1, row, value.data());
    EXPECT_EQ(value, std::vector<float>(width, float(sum)));
    // Every cache has the same.
    for (int worker = 0; worker < options.workers; ++worker) {
      store.get(worker, 1, row, value.data());
      EXPECT_EQ(value[width - 1], float(sum));
    }
  }
  store.read(0, 1, value.data());
  EXPECT_EQ(value[0], float(updates / clockEvery * workers));
}

/// With no staleness and clocks alone, a step reads exactly what all wrote in
/// the steps before: the same bits as a loop that does one after the other.
TEST(Store, WithoutStalenessItIsBulkSynchronous) {
  constexpr size_t rows = 8;
  constexpr int workers = 4, clocks = 12;
  // Whole numbers below 2^24, whatever order they are added in.
  auto updateOf = [](int worker, size_t row, float seen) {
    return float((int64_t(seen) * 3 + worker * 7 + int64_t(row)) % 101 - 50);
  };
  std::vector<float> serial(rows, 1.0f);
  for (int clock = 0; clock < clocks; ++clock) {
    std::vector<float> before = serial;
    for (int worker = 0; worker < workers; ++worker)
      for (size_t row = 0; row < rows; ++row)
        serial[row] += updateOf(worker, row, before[row]);
  }
  StoreOptions options;
  options.workers = workers;
  options.patience = 300;
  ParameterStore store({{"x", rows, 1}}, options);
  float one = 1;
  for (size_t row = 0; row < rows; ++row)
    store.set(0, row, &one);
  runWorkers(workers, [&](int worker) {
    for (int clock = 0; clock < clocks; ++clock) {
      float seen = 0;
      for (size_t row = 0; row < rows; ++row) {
        store.get(worker, 0, row, &seen);
        float update = updateOf(worker, row, seen);
        store.inc(worker, 0, row, &update);
      }
      store.clock(worker);
    }
    store.finish(worker);
  });
  store.drain();
  for (size_t row = 0; row < rows; ++row) {
    float value = 0;
    store.read(0, row, &value);
    EXPECT_EQ(value, serial[row]);
  }
}

TEST(Store, RowsThatNobodyReadsAreNotSentDown) {
  StoreOptions options;
  options.workers = 2;
  ParameterStore store({{"x", 100, 4}}, options);
  std::vector<float> value(4, 1.0f);
  runWorkers(2, [&](int worker) {
    for (size_t row = 0; row < 100; ++row)
      store.inc(worker, 0, row, value.data());
    store.clock(worker);
    store.finish(worker);
  });
  store.drain();
  StoreReport report = store.report();
  EXPECT_THAT(report.rowsSent, testing::ElementsAre(100, 100));
  EXPECT_THAT(report.rowsReceived, testing::ElementsAre(0, 0));
  EXPECT_EQ(report.bytesSent[0], 100 * (4 * 4 + bytesOfRowHeader));
}

} // namespace
