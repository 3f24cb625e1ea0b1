//===- Memory.cpp - Schedules that fit the memories -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;

namespace {

bool fits(const Model &model, const std::vector<int64_t> &peaks) {
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (peaks[d] > model.deviceMemory(d))
      return false;
  return true;
}

/// Nodes by start; ties in topological order.
std::vector<int32_t> orderByStart(const Model &model,
                                  const std::vector<int64_t> &start) {
  std::vector<int32_t> position(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  std::vector<int32_t> order = model.order;
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tie(start[a], position[a]) < std::tie(start[b], position[b]);
  });
  return order;
}

} // namespace

std::vector<int32_t> baechi::placement::lowPeakOrder(const Model &model) {
  // The bytes that a node's own result and scratch ask for.
  std::vector<int64_t> need(model.numNodes, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    auto [begin, end] = model.tensorsOf(i);
    need[i] = model.scratch[i] + std::accumulate(model.memory.begin() + begin,
                                                 model.memory.begin() + end,
                                                 int64_t(0));
  }
  // Roots in topological order: what can be consumed early is.
  std::vector<int32_t> order, stack;
  std::vector<uint8_t> state(model.numNodes, 0); // 1: opened, 2: placed
  order.reserve(model.numNodes);
  std::vector<int32_t> sources;
  for (int32_t root : model.order) {
    // A source that others read comes with its first reader.
    bool isSource =
        model.operands[root].empty() && model.controlSources[root].empty();
    bool isRead = false;
    model.forEachUser(root, [&](int32_t) { isRead = true; });
    if (state[root] || (isSource && isRead))
      continue;
    stack.push_back(root);
    while (!stack.empty()) {
      int32_t i = stack.back();
      if (state[i] == 0) {
        state[i] = 1;
        sources.clear();
        model.forEachSource(i, [&](int32_t s) {
          if (state[s] == 0)
            sources.push_back(s);
        });
        std::sort(sources.begin(), sources.end(), [&](int32_t a, int32_t b) {
          return need[a] != need[b] ? need[a] < need[b] : a > b;
        });
        stack.insert(stack.end(), sources.begin(), sources.end());
        continue;
      }
      stack.pop_back();
      if (state[i] == 1) {
        state[i] = 2;
        order.push_back(i);
      }
    }
  }
  return order;
}

bool baechi::placement::scheduleWithin(
    Scheduler &scheduler, const Model &model, const Assignment &device,
    Schedule &schedule, std::span<const std::vector<int64_t>> priorities) {
  schedule.makespan = never;
  std::vector<int64_t> fastestStart;
  int64_t fastest = never;
  auto attempt = [&](const Scheduler::Options &options) {
    Schedule tried;
    if (scheduler.run(device, options, &tried) == never)
      return;
    if (options.activation.empty() && tried.makespan < fastest) {
      fastest = tried.makespan;
      fastestStart = tried.start;
    }
    if (tried.makespan < schedule.makespan &&
        fits(model, schedulePeaks(model, device, tried)))
      schedule = std::move(tried);
  };
  attempt({});
  if (fastest == never)
    return false; // two devices that must talk cannot
  for (const auto &priority : priorities) {
    Scheduler::Options options;
    options.priority = priority;
    attempt(options);
  }
  if (schedule.makespan != never)
    return true;
  // By activation: the fastest order first, then those of lower peaks.
  for (int kind = 0; kind < 3 && schedule.makespan == never; ++kind) {
    std::vector<int32_t> order = kind == 0   ? orderByStart(model, fastestStart)
                                 : kind == 1 ? model.order
                                             : lowPeakOrder(model);
    if (!fits(model, sequentialPeaks(model, device, order)))
      continue;
    Scheduler::Options options;
    options.activation = order;
    attempt(options);
  }
  return schedule.makespan != never;
}
