//===- StoreRevisionTest.cpp - Adaptive revision of late gradients -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ParameterStore.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <filesystem>

using namespace baechi::store;

namespace {

constexpr size_t width = 3;
constexpr double step = 0.3;
using Row = std::array<double, width>;

/// Worker w's target; the gradient of half the square of the distance.
double gradientOf(int worker, size_t i, double x) {
  return x - (double(worker) - 1.5 * double(i) + 2);
}

/// The algorithm of the paper for one row, one gradient after the other.
struct Serial {
  Row x{}, all{}, z{}, largest{};
  void apply(const Row &gradient, const Row &known) {
    for (size_t i = 0; i < width; ++i) {
      double g = gradient[i], between = all[i] - known[i];
      double before = largest[i] > 0 ? step / std::sqrt(largest[i]) : 0;
      z[i] += g * g + 2 * g * between;
      largest[i] = std::max(largest[i], z[i]);
      double now = largest[i] > 0 ? step / std::sqrt(largest[i]) : 0;
      x[i] += -now * g + (before - now) * between;
      all[i] += g;
    }
  }
};

StoreOptions simulated(int workers) {
  StoreOptions options;
  options.workers = workers;
  options.checked = true;
  options.simulated = SimulatedNetwork{1e6, 1000};
  return options;
}

std::vector<TableShape> oneRow() {
  return {{"x", 1, width, UpdateRule::AdaptiveRevision, step}};
}

/// Bulk synchronous: everybody's gradient knows of the clocks before, and they
/// come in the workers' order. \p saved: goes on from a file in the middle.
Serial serialOf(int workers, int clocks) {
  Serial serial;
  for (int clock = 0; clock < clocks; ++clock) {
    Serial before = serial;
    for (int worker = 0; worker < workers; ++worker) {
      Row gradient;
      for (size_t i = 0; i < width; ++i)
        gradient[i] = gradientOf(worker, i, before.x[i]);
      serial.apply(gradient, before.all);
    }
  }
  return serial;
}

void run(ParameterStore &store, int64_t clocks) {
  std::vector<bool> computed(size_t(store.options().workers), false);
  while (std::optional<int> worker = store.next()) {
    float x[width], gradient[width];
    if (!computed[size_t(*worker)]) {
      computed[size_t(*worker)] = true;
      store.compute(*worker, 0.01);
      continue;
    }
    computed[size_t(*worker)] = false;
    store.get(*worker, 0, 0, x);
    for (size_t i = 0; i < width; ++i)
      gradient[i] = float(gradientOf(*worker, i, x[i]));
    store.inc(*worker, 0, 0, gradient);
    if (store.clock(*worker) == clocks)
      store.finish(*worker);
    else
      store.compute(*worker, 0);
  }
  store.drain();
}

void expectNear(ParameterStore &store, const Row &expected) {
  float x[width];
  store.read(0, 0, x);
  for (size_t i = 0; i < width; ++i)
    EXPECT_NEAR(x[i], expected[i], 1e-4 * (1 + std::fabs(expected[i]))) << i;
}

TEST(StoreRevision, IsTheSerialAlgorithm) {
  for (int workers : {1, 2, 5}) {
    ParameterStore store(oneRow(), simulated(workers));
    run(store, 40);
    expectNear(store, serialOf(workers, 40).x);
  }
}

TEST(StoreRevision, WithoutDelayIsAdaGrad) {
  ParameterStore store(oneRow(), simulated(1));
  run(store, 30);
  Row x{}, squares{};
  for (int clock = 0; clock < 30; ++clock)
    for (size_t i = 0; i < width; ++i) {
      double g = gradientOf(0, i, x[i]);
      squares[i] += g * g;
      x[i] -= step / std::sqrt(squares[i]) * g;
    }
  expectNear(store, x);
}

TEST(StoreRevision, GoesOnFromItsFile) {
  std::string file = testing::TempDir() + "baechi-store-revision";
  {
    ParameterStore store(oneRow(), simulated(3));
    std::vector<float> x(width);
    for (int clock = 0; clock < 1; ++clock)
      for (int turn = 0; turn < 3; ++turn) {
        int worker = store.next().value();
        std::array<float, width> gradient;
        for (size_t i = 0; i < width; ++i)
          gradient[i] = float(gradientOf(worker, i, 0));
        store.inc(worker, 0, 0, gradient.data());
        store.clock(worker);
        store.compute(worker, 0);
      }
    store.save(file);
  }
  auto store = ParameterStore::restore(file, simulated(3));
  std::filesystem::remove(file);
  EXPECT_EQ(store->tables()[0].step, step);
  EXPECT_THAT(store->report().clocks, testing::Each(1));
  run(*store, 25);
  expectNear(*store, serialOf(3, 25).x);
}

/// Threads and staleness: no order is known, but it is where it should be, and
/// the checker saw every read.
TEST(StoreRevision, DelayedWorkersMeetInTheMiddle) {
  for (std::optional<double> budget : {std::optional<double>(), {2e5}}) {
    StoreOptions options = simulated(8);
    options.staleness = 2;
    options.budget = budget;
    ParameterStore store(oneRow(), options);
    run(store, 400);
    Row middle;
    for (size_t i = 0; i < width; ++i)
      middle[i] = -gradientOf(0, i, 0) + 3.5;
    float x[width];
    store.read(0, 0, x);
    for (size_t i = 0; i < width; ++i)
      EXPECT_NEAR(x[i], middle[i], 0.1);
  }
}

} // namespace
