//===- Memory.cpp - Schedules that fit the memories -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Downstream.h"
#include "Memory/LimitedSchedule.h"
#include "Memory/Orders.h"
#include "Model/Beside.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

std::vector<int64_t>
baechi::placement::memory::leastPeaks(const Model &model,
                                      const Assignment &device) {
  LeanOrders lean(model);
  return leastPeaks(model, lean, device);
}

std::vector<int64_t>
baechi::placement::memory::leastPeaks(const Model &model, LeanOrders &lean,
                                      const Assignment &device) {
  Steps steps(model, device);
  return findOrder(steps, plainOrders(steps, lean.get())).peaks;
}

Placement baechi::placement::memory::inTurn(const Model &model,
                                            const Placement &placement) {
  const Assignment &device = placement.device;
  Schedule schedule{placement.makespanNs, placement.startNs, {}}, result;
  for (const Transfer &each : placement.transfers)
    schedule.transfers.push_back({model.firstTensor[each.op] + each.output,
                                  each.from, each.to, each.startNs,
                                  each.endNs});
  Steps steps(model, device);
  StepOrder order = orderOf(steps, schedule);
  // What comes late leaves most freedom to where it is put.
  std::vector<int32_t> nodes;
  for (Step s : order)
    if (steps.isRun(s))
      nodes.push_back(s);
  if (StepOrder late = lateTransfers(steps, nodes);
      excessOf(model, orderPeaks(steps, late)) == 0)
    order = std::move(late);
  result.makespan = 0;
  result.start.resize(model.numNodes);
  for (Step s : order) {
    int64_t start = result.makespan;
    if (steps.isRun(s)) {
      for (int32_t source : model.controlSources[s])
        if (int32_t from = device[source], to = device[s]; from != to)
          start = std::max(start, result.start[source] +
                                      model.timeOf(source, from) +
                                      model.latencyNs(from, to));
      result.start[s] = start;
      result.makespan = start + model.timeOf(s, device[s]);
      continue;
    }
    auto [tensor, from, to] = steps.transfer(s);
    result.makespan += model.transferNs(tensor, from, to);
    result.transfers.push_back({tensor, from, to, start, result.makespan});
  }
  return toPlacement(model, device, result);
}

bool baechi::placement::memory::scheduleWithin(
    Scheduler &scheduler, const Model &model, const Assignment &device,
    Schedule &schedule, std::span<const std::vector<int64_t>> priorities) {
  LeanOrders lean(model);
  return scheduleWithin(scheduler, model, lean, device, schedule, priorities);
}

/// In the scheduler's order and in another, which a large model does at once.
static Schedule shorterOfTwo(Scheduler &scheduler, const Model &model,
                             const Assignment &device,
                             std::span<const int64_t> priority) {
  Schedule schedule, other;
  auto second = beside([&] {
    Scheduler::Options options;
    options.priority = priority;
    Scheduler(model).run(device, options, &other);
  });
  scheduler.run(device, {}, &schedule);
  second.get();
  return other.makespan < schedule.makespan ? std::move(other)
                                            : std::move(schedule);
}

bool baechi::placement::memory::scheduleWithin(
    Scheduler &scheduler, const Model &model, LeanOrders &lean,
    const Assignment &device, Schedule &schedule,
    std::span<const std::vector<int64_t>> priorities, bool isFirst) {
  schedule.makespan = never;
  bool memoryMatters = model.memoryMatters();
  if (isFirst && !memoryMatters && priorities.size() == 1 &&
      model.numNodes > manyNodes) {
    schedule = shorterOfTwo(scheduler, model, device, priorities.front());
    return schedule.makespan != never;
  }
  Schedule fastest;
  auto attempt = [&](const Scheduler::Options &options) {
    Schedule tried;
    if (scheduler.run(device, options, &tried) == never)
      return;
    if (!memoryMatters ||
        (tried.makespan < schedule.makespan &&
         excessOf(model, schedulePeaks(model, device, tried)) == 0))
      schedule = std::move(tried);
    else if (tried.makespan < fastest.makespan)
      fastest = std::move(tried);
  };
  attempt({});
  if (schedule.makespan == never && fastest.makespan == never)
    return false; // two devices that must talk cannot
  for (const auto &priority : priorities) {
    Scheduler::Options options;
    options.priority = priority;
    // Once one fits, the others are of interest where they are shorter.
    if (schedule.makespan != never)
      options.cutoff = schedule.makespan - 1;
    attempt(options);
  }
  if (schedule.makespan != never)
    return true;
  Steps steps(model, device);
  if (excessOf(model, leastPossiblePeaks(steps)) > 0)
    return false;
  std::vector<StepOrder> bases = plainOrders(steps, lean.get());
  bases.insert(bases.begin(), orderOf(steps, fastest));
  FoundOrder found = findOrder(steps, bases);
  if (found.excess > 0)
    return false;
  auto attemptWithin = [&](std::span<const int64_t> priority) {
    LimitedOptions options;
    options.priority = priority;
    options.cutoff = schedule.makespan == never ? never : schedule.makespan - 1;
    Schedule tried = scheduleLimited(steps, found.order, options);
    if (tried.makespan < schedule.makespan)
      schedule = std::move(tried);
  };
  attemptWithin({});
  attemptWithin(downstreamFirst(model, device));
  for (const auto &priority : priorities)
    attemptWithin(priority);
  return schedule.makespan != never;
}
