//===- EarliestStart.cpp - m-ETF and m-SCT's schedule -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Placers.h"
#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;

namespace {

class EarliestStartPlacer {
public:
  EarliestStartPlacer(const Model &model, std::span<const int32_t> favourites,
                      bool limited);
  EarliestStart run();

private:
  struct Entry {
    int64_t key; ///< available: urgency; pending: minus the arrival
    int64_t urgency;
    int32_t node;
    bool operator<(const Entry &other) const {
      return std::tie(key, urgency, other.node) <
             std::tie(other.key, other.urgency, node);
    }
  };
  using Heap = std::vector<Entry>;
  struct Choice {
    int32_t node = -1;
    int32_t device = -1;
    int64_t start = 0;
    int64_t key = never; ///< start plus what is lost on a slower device
    int64_t urgency = 0;
    bool better(const Choice &other) const {
      return std::tuple(key, -urgency, node, device) <
             std::tuple(other.key, -other.urgency, other.node, other.device);
    }
  };

  bool isLazy(int32_t node) const;
  bool open(int32_t node, int32_t d) const {
    Unit u = model.unit[node];
    return result.device[node] < 0 && !ruledOut[at(node, d)] &&
           (unitDevice[u] < 0 ? model.mayUse(u, d) : unitDevice[u] == d);
  }
  int32_t homeOf(int32_t tensor, int32_t consumerDevice) const;
  int64_t arrival(int32_t node, int32_t d, bool book);
  void becomeReady(int32_t node);
  void addEntry(int32_t node, int32_t d);
  static void push(Heap &heap, Entry entry);
  static void pop(Heap &heap);
  void refill(int32_t d);
  Choice top(int32_t d);
  Choice makeChoice(int32_t node, int32_t d, int64_t ready) const;
  Choice forAwakeDevice(int32_t d);
  bool urgentOn(const Choice &choice);
  Choice choose();
  bool fits(int32_t node, int32_t d) const;
  bool forceNext();
  void commit(int32_t node, int32_t d);
  void settle(int32_t node, int32_t d);
  void freeOperands(int32_t node);
  size_t at(int32_t tensorOrNode, int32_t d) const {
    return static_cast<size_t>(tensorOrNode) * devices + d;
  }

  const Model &model;
  std::span<const int32_t> favourites;
  bool limited; ///< by the devices' memories
  int32_t devices;
  EarliestStart result;
  std::vector<int64_t> tail, finish;
  std::vector<int32_t> waiting;   ///< sources that are not placed
  std::vector<int32_t> usersLeft; ///< per tensor
  std::vector<uint8_t> lazy;
  std::vector<int32_t> unitDevice;
  std::vector<int64_t> copyAt; ///< [tensor * D + d]; < 0: no copy there
  std::vector<int64_t> deviceFree, level;
  std::vector<int32_t> last; ///< per device, its last operator
  std::vector<Heap> available, pending;
  std::vector<uint8_t> ruledOut; ///< [node * D + d]: no memory, no link
  size_t nextToForce = 0;        ///< in topological order
  // When the link model's exclusive parts are free; copies for estimates.
  std::vector<int64_t> outFree, inFree, pairFree, outTry, inTry, pairTry;
};

EarliestStartPlacer::EarliestStartPlacer(const Model &model,
                                         std::span<const int32_t> favourites,
                                         bool limited)
    : model(model), favourites(favourites), limited(limited),
      devices(model.numDevices), tail(model.numNodes, 0),
      finish(model.numNodes, 0), waiting(model.numNodes, 0),
      usersLeft(model.numTensors), lazy(model.numNodes, 0),
      unitDevice(model.numUnits, -1),
      copyAt(static_cast<size_t>(model.numTensors) * devices, -1),
      deviceFree(devices, 0), level(devices, 0), last(devices, -1),
      available(devices), pending(devices),
      ruledOut(static_cast<size_t>(model.numNodes) * devices, 0),
      outFree(devices, 0), inFree(devices, 0),
      pairFree(static_cast<size_t>(devices) * devices, 0) {
  result.device.assign(model.numNodes, -1);
  result.start.assign(model.numNodes, 0);
  // Urgency: the longest path to the end with every transfer.
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k];
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      for (int32_t user : model.users[t])
        tail[i] = std::max(tail[i], tail[user] + model.meanTransfer(t));
    for (int32_t user : model.controlUsers[i])
      tail[i] = std::max(tail[i], tail[user]);
    tail[i] += model.meanTime(i);
  }
  for (int32_t t = 0; t < model.numTensors; ++t)
    usersLeft[t] = static_cast<int32_t>(model.users[t].size());
  for (int32_t i = 0; i < model.numNodes; ++i)
    lazy[i] = isLazy(i);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    waiting[i] = 0;
    model.forEachSource(i, [&](int32_t s) { waiting[i] += !lazy[s]; });
  }
}

/// Parameters and inputs: they take no time and go where their first consumer
/// goes.
bool EarliestStartPlacer::isLazy(int32_t node) const {
  bool used = false;
  model.forEachUser(node, [&](int32_t) { used = true; });
  return used && model.operands[node].empty() &&
         model.controlSources[node].empty() && model.meanTime(node) == 0;
}

void EarliestStartPlacer::push(Heap &heap, Entry entry) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end());
}

void EarliestStartPlacer::pop(Heap &heap) {
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

/// The device that a tensor comes from, were a consumer on \p consumerDevice.
int32_t EarliestStartPlacer::homeOf(int32_t tensor,
                                    int32_t consumerDevice) const {
  int32_t source = model.producer[tensor];
  if (result.device[source] >= 0)
    return result.device[source];
  Unit u = model.unit[source];
  if (unitDevice[u] >= 0)
    return unitDevice[u];
  if (model.mayUse(u, consumerDevice))
    return consumerDevice;
  for (int32_t d = 0; d < devices; ++d)
    if (model.mayUse(u, d) && model.linked(d, consumerDevice))
      return d;
  return consumerDevice;
}

/// When everything that \p node waits for is on \p d; `never` when it cannot
/// get there. \p book: keeps the transfers.
int64_t EarliestStartPlacer::arrival(int32_t node, int32_t d, bool book) {
  auto *out = &outFree, *in = &inFree, *pair = &pairFree;
  bool copied = false;
  int64_t ready = 0;
  for (int32_t t : model.operands[node]) {
    int32_t home = homeOf(t, d);
    int64_t done = finish[model.producer[t]];
    if (home == d) {
      ready = std::max(ready, done);
      continue;
    }
    int64_t &there = copyAt[at(t, d)];
    if (there >= 0) {
      ready = std::max(ready, there);
      continue;
    }
    if (!model.linked(home, d))
      return never;
    if (!book && !copied) {
      // Several transfers for one operator wait for each other.
      outTry = outFree;
      inTry = inFree;
      pairTry = pairFree;
      out = &outTry, in = &inTry, pair = &pairTry;
      copied = true;
    }
    int64_t end = model.transferNs(t, home, d);
    switch (model.machine->linkModel) {
    case LinkModel::Unlimited:
      end += done;
      break;
    case LinkModel::Parallel: {
      int64_t &free = (*pair)[home * devices + d];
      end += std::max(done, free);
      free = end;
      break;
    }
    case LinkModel::Duplex:
      end += std::max({done, (*out)[home], (*in)[d]});
      (*out)[home] = (*in)[d] = end;
      break;
    case LinkModel::Sequential:
      end += std::max({done, (*out)[home], (*out)[d]});
      (*out)[home] = (*out)[d] = end;
      break;
    }
    if (book) {
      there = end;
      level[d] += model.copy[t];
    }
    ready = std::max(ready, end);
  }
  for (int32_t source : model.controlSources[node]) {
    int32_t home = result.device[source];
    if (home < 0)
      home = d; // a lazy source that will follow
    if (home != d && !model.linked(home, d))
      return never;
    ready = std::max(ready, finish[source] +
                                (home == d ? 0 : model.latencyNs(home, d)));
  }
  return ready;
}

void EarliestStartPlacer::addEntry(int32_t node, int32_t d) {
  int64_t ready = arrival(node, d, /*book=*/false);
  if (ready == never)
    ruledOut[at(node, d)] = 1;
  else if (ready <= deviceFree[d])
    push(available[d], {tail[node], tail[node], node});
  else
    push(pending[d], {-ready, tail[node], node});
}

void EarliestStartPlacer::becomeReady(int32_t node) {
  for (int32_t d = 0; d < devices; ++d)
    if (open(node, d))
      addEntry(node, d);
}

/// Moves what has arrived to the available operators, after a second look: the
/// links may have become busier since.
void EarliestStartPlacer::refill(int32_t d) {
  Heap &wait = pending[d];
  while (!wait.empty()) {
    Entry entry = wait.front();
    if (!open(entry.node, d)) {
      pop(wait);
      continue;
    }
    if (-entry.key > deviceFree[d])
      break;
    pop(wait);
    addEntry(entry.node, d);
  }
  while (!available[d].empty() && !open(available[d].front().node, d))
    pop(available[d]);
}

EarliestStartPlacer::Choice
EarliestStartPlacer::makeChoice(int32_t node, int32_t d, int64_t ready) const {
  int64_t start = std::max(ready, deviceFree[d]);
  return {node, d, start, start + model.timeOf(node, d) - model.minTime(node),
          tail[node]};
}

/// The best pair of a device, its start computed anew.
EarliestStartPlacer::Choice EarliestStartPlacer::top(int32_t d) {
  for (;;) {
    refill(d);
    bool now = !available[d].empty();
    Heap &heap = now ? available[d] : pending[d];
    if (heap.empty())
      return {};
    Entry entry = heap.front();
    int64_t ready = arrival(entry.node, d, /*book=*/false);
    if (now ? ready <= deviceFree[d] : ready <= -entry.key)
      return makeChoice(entry.node, d, ready);
    pop(heap);
    push(pending[d], {-ready, entry.urgency, entry.node});
  }
}

/// True when the operator could start nowhere earlier.
bool EarliestStartPlacer::urgentOn(const Choice &choice) {
  for (int32_t d = 0; d < devices; ++d) {
    if (d == choice.device || !open(choice.node, d))
      continue;
    int64_t ready = arrival(choice.node, d, /*book=*/false);
    if (ready != never && makeChoice(choice.node, d, ready).key <= choice.key)
      return false;
  }
  return true;
}

/// A device whose last operator has a favourite child that is not placed takes
/// that child, or an urgent operator.
EarliestStartPlacer::Choice EarliestStartPlacer::forAwakeDevice(int32_t d) {
  int32_t child = favourites[last[d]];
  Choice best;
  if (waiting[child] == 0)
    if (int64_t ready = arrival(child, d, /*book=*/false); ready != never)
      best = makeChoice(child, d, ready);
  Choice other = top(d);
  if (other.node >= 0 && other.node != child && other.better(best) &&
      urgentOn(other))
    return other;
  return best;
}

EarliestStartPlacer::Choice EarliestStartPlacer::choose() {
  Choice best;
  for (int32_t d = 0; d < devices; ++d) {
    bool awake = !favourites.empty() && last[d] >= 0 &&
                 favourites[last[d]] >= 0 && open(favourites[last[d]], d);
    Choice choice = awake ? forAwakeDevice(d) : top(d);
    if (choice.node >= 0 && choice.better(best))
      best = choice;
  }
  if (best.node >= 0)
    return best;
  // Every device waits for a child that another must make possible first.
  for (int32_t d = 0; d < devices; ++d)
    if (Choice choice = top(d); choice.node >= 0 && choice.better(best))
      best = choice;
  return best;
}

bool EarliestStartPlacer::fits(int32_t node, int32_t d) const {
  if (!limited)
    return true;
  int64_t need = model.scratch[node];
  auto charge = [&](Unit u) {
    if (unitDevice[u] < 0)
      need += model.unitResident[u];
  };
  charge(model.unit[node]);
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    need += model.memory[t];
  for (int32_t t : model.operands[node]) {
    int32_t source = model.producer[t];
    if (result.device[source] < 0) {
      charge(model.unit[source]);
      need += homeOf(t, d) == d ? model.memory[t] : model.copy[t];
    } else if (result.device[source] != d && copyAt[at(t, d)] < 0) {
      need += model.copy[t];
    }
  }
  return need <= model.deviceMemory(d) - level[d];
}

/// When every pair has been ruled out: the next operator in topological order
/// goes to the roomiest device whatever its memory says. The repair that
/// follows sees more than this rule does.
bool EarliestStartPlacer::forceNext() {
  // Lazy operators are taken along by their consumers.
  while (nextToForce < model.order.size() &&
         (result.device[model.order[nextToForce]] >= 0 ||
          lazy[model.order[nextToForce]]))
    ++nextToForce;
  if (nextToForce == model.order.size())
    return false;
  int32_t node = model.order[nextToForce], target = -1;
  Unit u = model.unit[node];
  auto room = [&](int32_t d) { return model.deviceMemory(d) - level[d]; };
  for (bool linked : {true, false})
    for (int32_t d = 0; d < devices && (linked || target < 0); ++d)
      if ((unitDevice[u] < 0 ? model.mayUse(u, d) : unitDevice[u] == d) &&
          (!linked || arrival(node, d, /*book=*/false) != never) &&
          (target < 0 || room(d) > room(target)))
        target = d;
  commit(node, target);
  return true;
}

void EarliestStartPlacer::freeOperands(int32_t node) {
  for (int32_t t : model.operands[node]) {
    if (--usersLeft[t] > 0)
      continue;
    int32_t source = model.producer[t];
    for (int32_t d = 0; d < devices; ++d)
      if (copyAt[at(t, d)] >= 0)
        level[d] -= model.copy[t];
    if (!model.keepsOutputs[source])
      level[result.device[source]] -= model.memory[t];
  }
}

/// Gives a node its device and charges what it holds there.
void EarliestStartPlacer::settle(int32_t node, int32_t d) {
  result.device[node] = d;
  Unit u = model.unit[node];
  if (unitDevice[u] < 0) {
    unitDevice[u] = d;
    level[d] += model.unitResident[u];
  }
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    if (!model.users[t].empty() || model.keepsOutputs[node])
      level[d] += model.memory[t];
}

void EarliestStartPlacer::commit(int32_t node, int32_t d) {
  for (int32_t t : model.operands[node])
    if (int32_t source = model.producer[t]; result.device[source] < 0)
      settle(source, homeOf(t, d));
  for (int32_t source : model.controlSources[node])
    if (result.device[source] < 0) {
      Unit u = model.unit[source];
      int32_t home = unitDevice[u] >= 0 ? unitDevice[u] : d;
      for (int32_t e = 0; e < devices && !model.mayUse(u, home); ++e)
        home = e;
      settle(source, home);
    }
  // Where no link leads the result will be found invalid; go on regardless.
  int64_t ready = arrival(node, d, /*book=*/true);
  int64_t start = std::max(ready == never ? 0 : ready, deviceFree[d]);
  settle(node, d);
  result.start[node] = start;
  finish[node] = deviceFree[d] =
      start + std::max<int64_t>(0, model.timeOf(node, d));
  last[d] = node;
  freeOperands(node);
  model.forEachUser(node, [&](int32_t user) {
    if (--waiting[user] == 0)
      becomeReady(user);
  });
}

EarliestStart EarliestStartPlacer::run() {
  for (int32_t i : model.order)
    if (waiting[i] == 0 && !lazy[i])
      becomeReady(i);
  for (;;) {
    Choice choice = choose();
    if (choice.node < 0) {
      if (!forceNext())
        break;
    } else if (fits(choice.node, choice.device)) {
      commit(choice.node, choice.device);
    } else {
      ruledOut[at(choice.node, choice.device)] = 1;
    }
  }
  return std::move(result);
}

} // namespace

EarliestStart baechi::placement::earliestStart(
    const Model &model, std::span<const int32_t> favouriteChild, bool limited) {
  return EarliestStartPlacer(model, favouriteChild, limited).run();
}
