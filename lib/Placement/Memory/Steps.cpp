//===- Steps.cpp - Runs and transfers of an assignment ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Steps.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::memory;

Steps::Steps(const Model &model, const Assignment &device)
    : model(model), device(device) {
  std::vector<int32_t> seen(model.numDevices, -1), targets;
  firstTransfer.reserve(model.numTensors + 1);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    firstTransfer.push_back(static_cast<int32_t>(transfers.size()));
    int32_t home = homeOf(t);
    targets.clear();
    for (int32_t user : model.users[t])
      if (int32_t d = device[user]; d != home && seen[d] != t) {
        seen[d] = t;
        targets.push_back(d);
      }
    if (model.lacksLinks)
      model.addRelays(home, targets);
    for (int32_t d : targets)
      transfers.push_back({t, model.sourceOf(home, d), d});
  }
  firstTransfer.push_back(static_cast<int32_t>(transfers.size()));
}

Step Steps::transferTo(int32_t tensor, int32_t to) const {
  int32_t k = firstTransfer[tensor];
  while (transfers[k].to != to)
    ++k;
  return model.numNodes + k;
}

std::vector<int64_t> Steps::resident() const {
  std::vector<int64_t> bytes(model.numDevices, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    bytes[device[i]] += model.resident[i];
  return bytes;
}

Levels::Levels(const Steps &steps)
    : level(steps.resident()), steps(steps), usesLeft(steps.numHoldings(), 0) {
  for (int32_t h = 0; h < steps.numHoldings(); ++h)
    steps.forEachUse(h, [&](Step) { ++usesLeft[h]; });
}

int64_t Levels::released(Step s) const {
  int64_t bytes = 0;
  steps.forEachRead(s, [&](int32_t h) {
    if (usesLeft[h] == 1 && !steps.isKept(h))
      bytes += steps.bytesOf(h);
  });
  steps.forEachBorn(s, [&](int32_t h) {
    if (usesLeft[h] == 0 && !steps.isKept(h))
      bytes += steps.bytesOf(h);
  });
  return bytes;
}

int64_t Levels::born(Step s) const {
  int64_t bytes = 0;
  steps.forEachBorn(s, [&](int32_t h) { bytes += steps.bytesOf(h); });
  return bytes;
}

int64_t Levels::growth(Step s) const {
  return steps.isRun(s) ? born(s) - released(s) : born(s);
}

int64_t Levels::need(Step s) const {
  if (steps.isInstant(s))
    return growth(s);
  return steps.isRun(s) ? born(s) + steps.model.scratch[s] : born(s);
}

void Levels::begin(Step s) {
  level[steps.deviceOf(s)] +=
      steps.isRun(s) ? born(s) + steps.model.scratch[s] : born(s);
}

void Levels::end(Step s) {
  if (steps.isRun(s))
    level[steps.device[s]] -= released(s) + steps.model.scratch[s];
  else
    level[steps.transfer(s).from] -= released(s);
  steps.forEachRead(s, [&](int32_t h) { --usesLeft[h]; });
}

std::vector<int64_t>
baechi::placement::memory::orderPeaks(const Steps &steps,
                                      std::span<const Step> order) {
  Levels levels(steps);
  std::vector<int64_t> peaks = levels.level;
  for (Step s : order) {
    int32_t d = steps.deviceOf(s);
    peaks[d] = std::max(peaks[d], levels.level[d] + levels.need(s));
    levels.begin(s);
    levels.end(s);
  }
  return peaks;
}

std::vector<int64_t>
baechi::placement::memory::leastPossiblePeaks(const Steps &steps) {
  const Model &model = steps.model;
  std::vector<int64_t> most(model.numDevices, 0), kept(model.numDevices, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    // Without a duration nothing is held for its sake, not even at the end.
    if (steps.isInstant(i))
      continue;
    int64_t bytes = model.scratch[i], born = 0;
    steps.forEachBorn(i, [&](int32_t h) { born += steps.bytesOf(h); });
    steps.forEachRead(i, [&](int32_t h) { bytes += steps.bytesOf(h); });
    int32_t d = steps.device[i];
    most[d] = std::max(most[d], bytes + born);
    if (model.keepsOutputs[i])
      kept[d] += born;
  }
  auto peaks = steps.resident();
  for (int32_t d = 0; d < model.numDevices; ++d)
    peaks[d] += std::max(most[d], kept[d]);
  return peaks;
}

StepOrder
baechi::placement::memory::lateTransfers(const Steps &steps,
                                         std::span<const int32_t> nodes) {
  const Model &model = steps.model;
  StepOrder order;
  order.reserve(steps.size());
  std::vector<uint8_t> taken(steps.transfers.size(), 0);
  auto bring = [&](auto &&self, int32_t t, int32_t d) -> void {
    if (steps.homeOf(t) == d)
      return;
    Step s = steps.transferTo(t, d);
    if (uint8_t &isTaken = taken[s - model.numNodes]; !isTaken) {
      isTaken = 1;
      self(self, t, steps.transfer(s).from);
      order.push_back(s);
    }
  };
  for (int32_t i : nodes) {
    int32_t d = steps.device[i];
    for (int32_t t : model.operands[i])
      bring(bring, t, d);
    order.push_back(i);
  }
  return order;
}

StepOrder baechi::placement::memory::orderOf(const Steps &steps,
                                             const Schedule &schedule) {
  const Model &model = steps.model;
  StepOrder order = lateTransfers(steps, model.order);
  std::vector<int64_t> end(steps.size());
  for (int32_t i = 0; i < model.numNodes; ++i)
    end[i] = schedule.start[i] + model.timeOf(i, steps.device[i]);
  for (const ScheduledTransfer &transfer : schedule.transfers)
    end[steps.transferTo(transfer.tensor, transfer.to)] = transfer.end;
  // What must come first ends no later and keeps its place among equals.
  std::stable_sort(order.begin(), order.end(),
                   [&](Step a, Step b) { return end[a] < end[b]; });
  return order;
}
