//===- ExchangeSimulationTest.cpp - Steps of replicas over slow links -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/ExchangeSimulation.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

using namespace baechi::replicas;
using testing::HasSubstr;

namespace {

constexpr int64_t ms = 1000000;

ExchangeResult simulate(const std::vector<Layer> &layers, Policy policy,
                        ExchangeOptions options = {}) {
  if (options.bytesPerSecond == 0)
    options.bytesPerSecond = 1e9;
  options.policy = policy;
  return simulateExchange(layers, options);
}

TEST(ExchangeSimulation, OneMachineOnlyComputes) {
  ExchangeOptions options;
  options.machines = 1;
  ExchangeResult result =
      simulate({{"a", 1000, 2 * ms, 4 * ms}, {"b", 5000, 1 * ms, 2 * ms}},
               Policy::P3, options);
  EXPECT_EQ(result.stepNs, 9 * ms);
  EXPECT_EQ(result.computeNs, 9 * ms);
  EXPECT_EQ(result.exchangeNs, 0);
}

/// Two machines, one array of 1 MB on the first's server: the second's gradient
/// takes latency and 1 ms, and so do the new values back.
TEST(ExchangeSimulation, OneArrayByHand) {
  ExchangeOptions options;
  options.machines = 2;
  options.latencyNs = 1000;
  ExchangeResult result =
      simulate({{"a", 250000, 3 * ms, 5 * ms}}, Policy::Fifo, options);
  // Machine 0 begins its next step at once, machine 1 a latency and 1 ms later;
  // the step is the same on both.
  EXPECT_EQ(result.stepNs, 8 * ms + 2 * (1 * ms + 1000));
  EXPECT_EQ(result.exchangeNs, 1 * ms);
  EXPECT_EQ(result.pieces, 1u);
}

/// The same, where the workers are told of new values and ask for them: two
/// latencies more. A server that adds 1 MB in 1 ms has added its own machine's
/// gradient when the other's comes.
TEST(ExchangeSimulation, OneArrayThatIsAskedForByHand) {
  ExchangeOptions options;
  options.machines = 2;
  options.latencyNs = 1000;
  options.asked = true;
  std::vector<Layer> layers = {{"a", 250000, 3 * ms, 5 * ms}};
  int64_t there = 8 * ms + 2 * (1 * ms + 1000) + 2 * 1000;
  EXPECT_EQ(simulate(layers, Policy::Fifo, options).stepNs, there);
  options.serverBytesPerSecond = 1e9;
  EXPECT_EQ(simulate(layers, Policy::Fifo, options).stepNs, there + 1 * ms);
}

/// What a worker asks for waits behind the gradients that it sends.
TEST(ExchangeSimulation, WhatIsAskedForIsLate) {
  std::vector<Layer> layers;
  for (int i = 0; i < 8; ++i)
    layers.push_back({"conv", 200000, 4 * ms, 8 * ms});
  layers.push_back({"dense", 20000000, ms, 2 * ms});
  ExchangeOptions options;
  options.bytesPerSecond = 1.25e9;
  int64_t sent = simulate(layers, Policy::Fifo, options).stepNs;
  options.asked = true;
  EXPECT_GT(simulate(layers, Policy::Fifo, options).stepNs, sent + 2 * ms);
}

TEST(ExchangeSimulation, FreeLinksLeaveCompute) {
  ExchangeOptions options;
  options.bytesPerSecond = 1e18;
  options.latencyNs = 0;
  for (Policy policy :
       {Policy::Fifo, Policy::Slices, Policy::P3, Policy::TicTac}) {
    ExchangeResult result = simulate(
        {{"a", 1000000, ms, ms}, {"b", 1000000, ms, ms}}, policy, options);
    EXPECT_NEAR(double(result.stepNs), 4.0 * ms, 1000);
  }
}

/// The first layer's gradient is made last and needed first; a late, large
/// layer must not hold it up.
TEST(ExchangeSimulation, PriorityHidesTheLargeLastLayer) {
  std::vector<Layer> layers;
  for (int i = 0; i < 8; ++i)
    layers.push_back({"conv", 200000, 4 * ms, 8 * ms});
  layers.push_back({"dense", 20000000, ms, 2 * ms});
  ExchangeOptions options;
  options.bytesPerSecond = 1.25e9;
  int64_t fifo = simulate(layers, Policy::Fifo, options).stepNs;
  int64_t slices = simulate(layers, Policy::Slices, options).stepNs;
  ExchangeResult p3 = simulate(layers, Policy::P3, options);
  EXPECT_LT(slices, fifo);
  EXPECT_LT(p3.stepNs, slices);
  EXPECT_GE(p3.stepNs, p3.boundNs());
}

TEST(ExchangeSimulation, NoStepIsBelowTheBound) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Layer> layers;
    for (int i = 0, n = 1 + int(random() % 12); i < n; ++i)
      layers.push_back({"l", int64_t(random() % 3000000),
                        int64_t(random() % (5 * ms)),
                        int64_t(random() % (9 * ms))});
    ExchangeOptions options;
    options.machines = 1 + int(random() % 6);
    options.bytesPerSecond = 1e8 * double(1 + random() % 40);
    options.steps = 12;
    options.asked = trial % 2;
    options.serverBytesPerSecond = trial % 3 ? 0 : 2e9;
    for (Policy policy :
         {Policy::Fifo, Policy::Slices, Policy::P3, Policy::TicTac}) {
      ExchangeResult result = simulate(layers, policy, options);
      EXPECT_GE(result.stepNs, result.computeNs);
      // Steps that are counted may leave work to those that are not.
      EXPECT_GE(double(result.stepNs), 0.8 * double(result.boundNs()));
      EXPECT_EQ(result.stepNs, simulate(layers, policy, options).stepNs);
    }
  }
}

/// One array there and back, by hand: a card's time for its bytes each way, and
/// twice that where they are stored in between.
TEST(ExchangeSimulation, MessagesMayBeStored) {
  std::vector<Layer> layers = {{"a", 250000, ms, 2 * ms}};
  ExchangeOptions options;
  options.machines = 2;
  options.bytesPerSecond = 1e8; // 10 ms
  options.latencyNs = 0;
  int64_t cut = simulate(layers, Policy::Fifo, options).stepNs;
  EXPECT_EQ(cut, 3 * ms + 20 * ms);
  options.stored = true;
  EXPECT_EQ(simulate(layers, Policy::Fifo, options).stepNs, cut + 20 * ms);
}

TEST(ExchangeSimulation, TheChosenSliceIsTheBestOfThoseTried) {
  std::vector<Layer> layers = {{"a", 3000000, 3 * ms, 6 * ms},
                               {"b", 9000000, 3 * ms, 6 * ms}};
  ExchangeOptions options;
  options.bytesPerSecond = 2e9;
  options.messageNs = 20000;
  int64_t best = chooseSlice(layers, options);
  options.slice = best;
  int64_t step = simulateExchange(layers, options).stepNs;
  for (int64_t slice : {1000, 50000, 2000000}) {
    options.slice = slice;
    EXPECT_LE(step, simulateExchange(layers, options).stepNs);
  }
}

/// Three arrays of a piece and a bit: from the first server on, it has most.
TEST(ExchangeSimulation, ServersInTurnShareEvenly) {
  std::vector<Layer> layers(3, {"a", 300000, ms, ms});
  ExchangeOptions options;
  options.machines = 2;
  options.bytesPerSecond = 1e8;
  options.slice = 200000;
  options.servers = Servers::First;
  int64_t first = simulate(layers, Policy::P3, options).exchangeNs;
  options.servers = Servers::InTurn;
  EXPECT_LE(simulate(layers, Policy::P3, options).exchangeNs, first);
}

TEST(ExchangeSimulation, TheBetterServersAreNoSlower) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Layer> layers;
    for (int i = 0, n = 2 + int(random() % 9); i < n; ++i)
      layers.push_back({"l", int64_t(random() % 900000),
                        int64_t(random() % (3 * ms)),
                        int64_t(random() % (6 * ms))});
    ExchangeOptions options;
    options.bytesPerSecond = 1e8 * double(1 + random() % 20);
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (Servers servers : {Servers::First, Servers::InTurn}) {
      options.servers = servers;
      shortest =
          std::min(shortest, simulate(layers, Policy::P3, options).stepNs);
    }
    options.servers = Servers::Better;
    EXPECT_EQ(simulate(layers, Policy::P3, options).stepNs, shortest);
  }
}

std::string errorOf(const std::vector<Layer> &layers, ExchangeOptions options) {
  try {
    simulateExchange(layers, options);
  } catch (const ExchangeError &error) {
    return error.what();
  }
  return "";
}

TEST(ExchangeSimulation, WrongInputs) {
  ExchangeOptions good;
  good.bytesPerSecond = 1e9;
  std::vector<Layer> layers = {{"a", 1000, 1, 1}};
  EXPECT_EQ(errorOf({}, good), "there is no layer: give at least one");
  EXPECT_EQ(errorOf({{"a", -1, 1, 1}}, good),
            "layer 'a' has a negative size or time");
  ExchangeOptions options = good;
  options.machines = 0;
  EXPECT_EQ(errorOf(layers, options), "there are 0 machines: give at least 1");
  options = good;
  options.bytesPerSecond = 0;
  EXPECT_THAT(errorOf(layers, options), HasSubstr("give more than 0"));
  options = good;
  options.latencyNs = -1;
  EXPECT_THAT(errorOf(layers, options), HasSubstr("negative"));
  options = good;
  options.slice = 100;
  EXPECT_EQ(errorOf(layers, options),
            "the slice has 100 parameters: give at least 256 (1 KiB)");
  options = good;
  options.bigArray = 1;
  EXPECT_THAT(errorOf(layers, options), HasSubstr("at least one a server"));
  options = good;
  options.steps = 2;
  EXPECT_EQ(errorOf(layers, options), "there are 2 steps: give at least 3");
}

} // namespace
