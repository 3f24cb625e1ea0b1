//===- Repair.cpp - Assignments that fit ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Memory.h"
#include "Memory/Orders.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;

namespace {

/// Units are moved while that lowers the bytes above the limits.
class Repairer {
public:
  Repairer(const Model &model, Assignment &device)
      : model(model), device(device), home(model.numUnits),
        trialLimit(std::clamp<int64_t>(
            visitLimit / (model.numNodes + model.numTensors + 1), 200, 3000)) {
    for (int32_t i = 0; i < model.numNodes; ++i)
      home[model.unit[i]] = device[i];
  }
  bool run();

private:
  static constexpr size_t unitsPerRound = 24;
  /// A trial looks at every node and tensor twice: about a second in all.
  static constexpr int64_t visitLimit = 50'000'000;

  int64_t measure();
  void move(Unit u, int32_t d);
  std::vector<Unit> heaviestOn(int32_t d) const;
  bool improve();
  bool swap();

  const Model &model;
  Assignment &device;
  std::vector<int32_t> home;
  std::vector<int64_t> peaks;
  int64_t excess = 0;
  int64_t trials = 0;
  int64_t trialLimit;
};

/// Bytes above the limits in the best order; leaves its peaks.
int64_t Repairer::measure() {
  ++trials;
  int64_t best = never;
  Steps steps(model, device);
  for (const StepOrder &order : plainOrders(steps)) {
    auto found = orderPeaks(steps, order);
    if (int64_t over = excessOf(model, found); over < best) {
      best = over;
      peaks = std::move(found);
    }
  }
  return best;
}

void Repairer::move(Unit u, int32_t d) {
  home[u] = d;
  for (int32_t i : model.members[u])
    device[i] = d;
}

/// The units whose leaving a device frees most, resident bytes and the
/// tensors that they hold there.
std::vector<Unit> Repairer::heaviestOn(int32_t d) const {
  std::vector<std::pair<int64_t, Unit>> weights;
  for (Unit u = 0; u < model.numUnits; ++u) {
    if (home[u] != d || model.pinned(u))
      continue;
    int64_t weight = model.unitResident[u];
    for (int32_t i : model.members[u]) {
      weight += model.scratch[i];
      auto [begin, end] = model.tensorsOf(i);
      for (int32_t t = begin; t < end; ++t)
        weight += model.memory[t];
    }
    if (weight > 0)
      weights.emplace_back(-weight, u);
  }
  std::sort(weights.begin(), weights.end());
  std::vector<Unit> units;
  // The heaviest, and a spread over the others: the last bytes that are
  // missing are found by a small unit.
  size_t step = std::max<size_t>(1, weights.size() / unitsPerRound);
  for (size_t k = 0; k < weights.size(); ++k)
    if (k < unitsPerRound / 2 || k % step == 0)
      units.push_back(weights[k].second);
  return units;
}

bool Repairer::improve() {
  // The device that is most above its limit first.
  std::vector<int32_t> order(model.numDevices);
  std::iota(order.begin(), order.end(), 0);
  std::vector<int64_t> over(model.numDevices);
  for (int32_t d = 0; d < model.numDevices; ++d)
    over[d] = peaks[d] - model.deviceMemory(d);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return over[a] != over[b] ? over[a] > over[b] : a < b;
  });
  for (int32_t from : order) {
    if (over[from] <= 0)
      break;
    for (Unit u : heaviestOn(from))
      // To the device with the most room first.
      for (auto to = order.rbegin(); to != order.rend(); ++to) {
        if (*to == from || !model.mayUse(u, *to))
          continue;
        if (trials > trialLimit)
          return false;
        auto before = peaks;
        move(u, *to);
        if (int64_t now = measure(); now < excess) {
          excess = now;
          return true;
        }
        move(u, from);
        peaks = std::move(before);
      }
  }
  return false;
}

/// When no single move helps: exchanges two units whose resident bytes differ
/// by what is missing, or by a little more.
bool Repairer::swap() {
  auto listOf = [&](int32_t d) {
    std::vector<std::pair<int64_t, Unit>> list;
    for (Unit u = 0; u < model.numUnits; ++u)
      if (home[u] == d)
        list.emplace_back(model.unitResident[u], u);
    std::sort(list.begin(), list.end());
    return list;
  };
  for (int32_t from = 0; from < model.numDevices; ++from) {
    int64_t missing = peaks[from] - model.deviceMemory(from);
    if (missing <= 0)
      continue;
    auto given = listOf(from);
    for (int32_t to = 0; to < model.numDevices; ++to) {
      if (peaks[to] >= model.deviceMemory(to))
        continue;
      auto taken = listOf(to);
      for (const auto &[bytes, u] : given) {
        // The largest partner that is smaller by at least what is missing.
        auto it = std::upper_bound(taken.begin(), taken.end(),
                                   std::pair(bytes - missing, model.numUnits));
        if (it == taken.begin() || !model.mayUse(u, to))
          continue;
        Unit v = std::prev(it)->second;
        if (!model.mayUse(v, from) || trials > trialLimit)
          continue;
        auto before = peaks;
        move(u, to);
        move(v, from);
        if (int64_t now = measure(); now < excess) {
          excess = now;
          return true;
        }
        move(u, from);
        move(v, to);
        peaks = std::move(before);
      }
    }
  }
  return false;
}

bool Repairer::run() {
  excess = measure();
  while (excess > 0)
    if (!improve() && !swap())
      return false;
  return true;
}

} // namespace

bool baechi::placement::repair(const Model &model, Assignment &device) {
  return Repairer(model, device).run();
}

bool baechi::placement::packUnits(const Model &model, Assignment &device) {
  std::vector<int64_t> weight(model.numUnits, 0);
  std::vector<int64_t> work(model.numUnits, 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    work[model.unit[i]] += model.meanTime(i);
  auto choices = [&](Unit u) {
    return std::count(model.allowed.begin() +
                          static_cast<ptrdiff_t>(u) * model.numDevices,
                      model.allowed.begin() +
                          static_cast<ptrdiff_t>(u + 1) * model.numDevices,
                      1);
  };
  std::vector<Unit> order(model.numUnits);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::tuple<int64_t, int64_t, Unit>> keys(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u)
    keys[u] = {choices(u), -model.unitResident[u], u};
  std::sort(keys.begin(), keys.end());
  std::vector<int64_t> room;
  for (int32_t d = 0; d < model.numDevices; ++d)
    room.push_back(model.deviceMemory(d));
  bool all = true;
  for (const auto &[count, bytes, u] : keys) {
    int32_t target = -1;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (model.mayUse(u, d) && (target < 0 || room[d] > room[target]))
        target = d;
    room[target] -= model.unitResident[u];
    all &= room[target] >= 0;
    for (int32_t i : model.members[u])
      device[i] = target;
  }
  return all;
}
