//===- MeteredEvaluator.cpp - What an assignment is worth ------------------*-
// C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/MeteredEvaluator.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

MeteredEvaluator::MeteredEvaluator(const SearchModel &searched, Meter &meter,
                                   double cost)
    : of(searched.model), meter(meter), cost(cost), evaluator(of),
      nodeDevice(of.numNodes) {
  if (!searched.leanOrders.empty())
    estimate.emplace(of, searched.leanOrders);
}

/// True unless every device can hold all that ever comes to it at once.
bool MeteredEvaluator::memoryIsShort(std::span<const int32_t> device) {
  std::vector<int64_t> room(of.numDevices);
  for (int32_t d = 0; d < of.numDevices; ++d)
    room[d] = of.deviceMemory(d);
  auto take = [&](int32_t d, int64_t bytes) {
    room[d] -= std::min(room[d] + 1, bytes);
    return room[d] < 0;
  };
  for (int32_t i = 0; i < of.numNodes; ++i)
    if (take(device[of.unit[i]], of.resident[i]) ||
        take(device[of.unit[i]], of.scratch[i]))
      return true;
  lastDevice.assign(of.numDevices, -1);
  for (int32_t t = 0; t < of.numTensors; ++t) {
    int32_t home = device[of.unit[of.producer[t]]];
    if (take(home, of.memory[t]))
      return true;
    for (int32_t user : of.users[t])
      for (int32_t d = device[of.unit[user]]; d != home && lastDevice[d] != t;
           d = of.sourceOf(home, d)) {
        lastDevice[d] = t;
        if (take(d, of.copy[t]))
          return true;
      }
  }
  return false;
}

int64_t MeteredEvaluator::penalty(int64_t makespan,
                                  std::span<const int32_t> device) {
  for (int32_t i = 0; i < of.numNodes; ++i)
    nodeDevice[i] = device[of.unit[i]];
  estimate->excess(nodeDevice);
  double excess = 0, fullest = 0;
  for (int32_t d = 0; d < of.numDevices; ++d) {
    double share = static_cast<double>(estimate->peaks()[d]) /
                   (static_cast<double>(of.deviceMemory(d)) + 1);
    excess += std::max(share - 1, 0.0);
    fullest = std::max(fullest, share);
  }
  constexpr double farFromShort = 0.8;
  constexpr int manySkips = 15;
  skips = fullest < farFromShort ? manySkips : 0;
  return static_cast<int64_t>(
      std::min(static_cast<double>(makespan) * 2 * excess, 1e18));
}

int64_t MeteredEvaluator::value(const Solution &solution, int64_t cutoff) {
  meter.charge(cost);
  int64_t value = evaluator.run(solution.device, solution.offset, cutoff);
  if (value == never)
    return never;
  if (estimate && memoryIsShort(solution.device))
    value += penalty(value, solution.device);
  meter.found(value);
  return value;
}

int64_t MeteredEvaluator::valueNearby(const Solution &solution,
                                      int64_t cutoff) {
  if (skips == 0)
    return value(solution, cutoff);
  meter.charge(cost);
  int64_t value = evaluator.run(solution.device, solution.offset, cutoff);
  if (value != never) {
    --skips;
    meter.found(value);
  }
  return value;
}

bool MeteredEvaluator::record(const Solution &solution, Schedule &schedule) {
  meter.charge(cost);
  return evaluator.run(solution.device, solution.offset, never, &schedule) !=
         never;
}
