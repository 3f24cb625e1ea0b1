//===- PeakEstimate.cpp - What an assignment asks of memories ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/PeakEstimate.h"
#include "Memory/Orders.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

PeakEstimate::PeakEstimate(const Model &model)
    : PeakEstimate(model, leanOrders(model)) {}

PeakEstimate::PeakEstimate(const Model &model,
                           std::vector<std::vector<int32_t>> orders)
    : model(model), peak(model.numDevices), level(model.numDevices),
      at(model.numDevices) {
  for (auto &order : orders)
    addOrder(std::move(order));
}

void PeakEstimate::addOrder(std::vector<int32_t> nodes) {
  auto &place = places.emplace_back(model.numNodes);
  for (int32_t k = 0; k < model.numNodes; ++k)
    place[nodes[k]] = k;
  orders.push_back(std::move(nodes));
}

/// What all orders of \p device begin with.
void PeakEstimate::begin(const Assignment &device) {
  int32_t devices = model.numDevices;
  firstLevel.assign(devices, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    firstLevel[device[i]] += model.resident[i];
  allUses.assign(static_cast<size_t>(model.numTensors) * devices, 0);
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t home = device[model.producer[t]];
    int32_t *ofTensor = &allUses[static_cast<size_t>(t) * devices];
    for (int32_t user : model.users[t]) {
      // The transfer to a device is one more use where it comes from.
      for (int32_t d = device[user]; ofTensor[d]++ == 0 && d != home;)
        d = model.sourceOf(home, d);
    }
  }
}

/// Runs the nodes one by one, each after the transfers it needs, up to the one
/// at \p end, which begins but does not end. Ends, and says false, once as many
/// bytes as \p least are above the memories. After begin().
bool PeakEstimate::run(const Assignment &device, size_t order, int32_t end,
                       int64_t least) {
  int32_t devices = model.numDevices;
  std::fill(at.begin(), at.end(), 0);
  level = firstLevel;
  peak = level;
  uses = allUses;
  copied.assign(uses.size(), 0);
  int64_t over = excessOf(model, peak);
  auto raise = [&](int32_t d, int32_t k) {
    int64_t before = std::max(peak[d], model.deviceMemory(d));
    int64_t more = std::max<int64_t>(level[d] - before, 0);
    over = std::min(over, never - more) + more;
    peak[d] = level[d];
    at[d] = k;
  };
  auto release = [&](int32_t t, int32_t d) {
    if (--usesLeft(t, d) > 0)
      return;
    int32_t source = model.producer[t];
    if (device[source] != d)
      level[d] -= model.copy[t];
    else if (!model.keepsOutputs[source])
      level[d] -= model.memory[t];
  };
  for (int32_t k = 0; k < model.numNodes; ++k) {
    int32_t i = orders[order][k], d = device[i];
    auto note = [&] {
      if (level[d] > peak[d])
        raise(d, k);
    };
    auto bring = [&](auto &&self, int32_t t, int32_t to) -> void {
      int32_t home = device[model.producer[t]];
      if (to == home || copied[static_cast<size_t>(t) * devices + to])
        return;
      copied[static_cast<size_t>(t) * devices + to] = 1;
      int32_t from = model.sourceOf(home, to);
      self(self, t, from);
      level[to] += model.copy[t];
      if (to != d && level[to] > peak[to])
        raise(to, k);
      release(t, from);
    };
    for (int32_t t : model.operands[i])
      bring(bring, t, d);
    note();
    auto [first, last] = model.tensorsOf(i);
    for (int32_t t = first; t < last; ++t)
      level[d] += model.memory[t];
    // What takes no time holds its results only from its end on.
    bool instant = model.timeOf(i, d) == 0;
    if (!instant) {
      level[d] += model.scratch[i];
      note();
    }
    if (k == end)
      return true;
    if (over >= least)
      return false;
    for (int32_t t : model.operands[i])
      release(t, d);
    for (int32_t t = first; t < last; ++t)
      if (model.users[t].empty() && !model.keepsOutputs[i])
        level[d] -= model.memory[t];
    if (instant)
      note();
    else
      level[d] -= model.scratch[i];
  }
  return over < least;
}

int64_t PeakEstimate::excess(const Assignment &device) {
  // The best order of an assignment is often the best of the next one.
  size_t first = bestOrder;
  int64_t least = never;
  begin(device);
  for (size_t k = 0; k < orders.size() && least > 0; ++k) {
    size_t order = (first + k) % orders.size();
    if (!run(device, order, model.numNodes, least) && k > 0)
      continue;
    least = excessOf(model, peak);
    bestOrder = order;
    bestPeaks = peak;
    bestAt = at;
  }
  return least;
}

std::vector<int64_t> PeakEstimate::heldAt(Moment moment,
                                          const Assignment &device, int32_t d) {
  begin(device);
  run(device, moment.order, moment.at);
  const std::vector<int32_t> &place = places[moment.order];
  std::vector<int64_t> held(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (device[i] == d)
      held[model.unit[i]] += model.resident[i];
  int32_t now = orders[moment.order][moment.at];
  if (device[now] == d)
    held[model.unit[now]] += model.scratch[now];
  std::vector<Unit> sharers;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    int32_t source = model.producer[t];
    bool isHome = device[source] == d, isKept = model.keepsOutputs[source] != 0;
    if (isHome ? place[source] > moment.at ||
                     (usesLeft(t, d) == 0 && !isKept && source != now)
               : usesLeft(t, d) == 0 ||
                     !copied[static_cast<size_t>(t) * model.numDevices + d])
      continue;
    sharers.clear();
    if (isHome)
      sharers.push_back(model.unit[source]);
    if (!isHome || !isKept)
      for (int32_t user : model.users[t])
        if (device[user] == d && place[user] >= moment.at)
          sharers.push_back(model.unit[user]);
    // What is only passed on is there for the sake of those who made it.
    if (sharers.empty())
      sharers.push_back(model.unit[source]);
    int64_t bytes = isHome ? model.memory[t] : model.copy[t];
    auto count = static_cast<int64_t>(sharers.size());
    for (Unit u : sharers)
      held[u] += bytes / count;
    held[sharers.front()] += bytes % count;
  }
  return held;
}
