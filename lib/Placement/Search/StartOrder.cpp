//===- StartOrder.cpp - The schedule of an order of starts ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/StartOrder.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::search;

StartOrder::StartOrder(const Model &model)
    : model(model), on(model.numNodes),
      source(static_cast<size_t>(model.numTensors) * model.numDevices, -1),
      waiting(model.numNodes + source.size()), earliest(waiting.size()),
      begin(waiting.size()), end(waiting.size()), usesLeft(source.size(), 0),
      lastUse(source.size()), memory(model.numDevices) {}

/// The quickest of the direct way and those over one other device; the model's
/// where it takes more.
int32_t StartOrder::quickestWay(int32_t t, int32_t home, int32_t to) const {
  int32_t via = StartPlan::noWay;
  int64_t least = never;
  if (model.linked(home, to)) {
    via = StartPlan::direct;
    least = model.transferNs(t, home, to);
  }
  for (int32_t d = 0; d < model.numDevices; ++d) {
    if (d == home || d == to || !model.linked(home, d) || !model.linked(d, to))
      continue;
    int64_t ns = model.transferNs(t, home, d) + model.transferNs(t, d, to);
    if (ns < least) {
      via = d;
      least = ns;
    }
  }
  return via != StartPlan::noWay || !model.reaches(home, to) ? via
                                                             : StartPlan::route;
}

/// The transfers of a tensor; false when there is no way to a device.
bool StartOrder::addTransfers(const StartPlan &plan, int32_t t) {
  int32_t home = on[model.producer[t]];
  size_t first = made.size();
  auto make = [&](int32_t d) {
    if (int32_t &from = source[index(t, d)]; from < 0) {
      from = home;
      made.push_back(index(t, d));
    }
  };
  for (int32_t user : model.users[t]) {
    ++usesLeft[index(t, on[user])];
    if (on[user] != home)
      make(on[user]);
  }
  size_t needed = made.size();
  std::vector<int32_t> far;
  for (size_t k = first; k < needed; ++k) {
    int32_t to = made[k] % model.numDevices, via = plan.via[made[k]];
    bool isWay = via == StartPlan::direct
                     ? model.linked(home, to)
                     : via >= 0 && via != home && via != to &&
                           model.linked(home, via) && model.linked(via, to);
    if (!isWay)
      via = quickestWay(t, home, to);
    if (via == StartPlan::noWay)
      return false;
    if (via == StartPlan::route)
      far.push_back(to);
    else if (via >= 0)
      source[made[k]] = via;
  }
  // What passes it on needs it directly from home.
  for (size_t k = first; k < needed; ++k)
    if (int32_t via = source[made[k]]; via != home) {
      make(via);
      source[index(t, via)] = home;
    }
  // Up to a device that has it already, by whatever way.
  for (int32_t at : far)
    for (int32_t from;; at = from) {
      from = source[index(t, at)] = model.hopBefore(home, at);
      if (from == home || source[index(t, from)] >= 0)
        break;
      make(from);
    }
  for (size_t k = first; k < made.size(); ++k)
    ++usesLeft[index(t, source[made[k]])];
  return true;
}

/// Devices where all that ever comes there might not fit at once.
void StartOrder::findTightMemories() {
  std::vector<int64_t> room(model.numDevices), scratch(model.numDevices, 0);
  for (int32_t d = 0; d < model.numDevices; ++d) {
    memory[d] = {};
    room[d] = model.deviceMemory(d);
  }
  auto take = [&](int32_t d, int64_t bytes) {
    room[d] = bytes > room[d] ? -1 : room[d] - bytes;
    memory[d].isTight |= room[d] < 0;
  };
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t d = on[i];
    memory[d].level += model.resident[i];
    take(d, model.resident[i]);
    scratch[d] = std::max(scratch[d], model.scratch[i]);
    auto [first, last] = model.tensorsOf(i);
    for (int32_t t = first; t < last; ++t)
      take(d, model.memory[t]);
  }
  for (int32_t transfer : made)
    take(transfer % model.numDevices, model.copy[transfer / model.numDevices]);
  for (int32_t d = 0; d < model.numDevices; ++d) {
    take(d, scratch[d]);
    lack(d, memory[d].level - model.deviceMemory(d));
  }
}

bool StartOrder::prepare(const StartPlan &plan) {
  current = &plan;
  for (int32_t transfer : made) {
    source[transfer] = -1;
    waiting[model.numNodes + transfer] = 0;
    earliest[model.numNodes + transfer] = 0;
  }
  made.clear();
  order.clear();
  ready.clear();
  result = {.makespan = 0};
  deviceFree.assign(model.numDevices, 0);
  linkFree.assign(
      static_cast<size_t>(model.numDevices) * std::max(model.numDevices, 2), 0);
  std::fill(usesLeft.begin(), usesLeft.end(), 0);
  std::fill(lastUse.begin(), lastUse.end(), 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    on[i] = plan.device[model.unit[i]];
    waiting[i] = static_cast<int32_t>(model.operands[i].size() +
                                      model.controlSources[i].size());
    earliest[i] = 0;
    for (int32_t s : model.controlSources[i])
      if (int32_t d = plan.device[model.unit[s]];
          d != on[i] && !model.linked(d, on[i]))
        return false;
  }
  for (int32_t t = 0; t < model.numTensors; ++t)
    if (!addTransfers(plan, t))
      return false;
  findTightMemories();
  return true;
}

void StartOrder::makeReady(int32_t step) {
  int64_t key = isNode(step) ? current->nodeKey[step]
                             : current->transferKey[step - model.numNodes];
  ready.push_back({key, step});
  std::push_heap(ready.begin(), ready.end());
}

/// Something that \p step waits for is there.
void StartOrder::arrive(int32_t step, int64_t at) {
  earliest[step] = std::max(earliest[step], at);
  if (--waiting[step] <= 0)
    makeReady(step);
}

/// Notes bytes that are missing where something starts.
void StartOrder::lack(int32_t d, int64_t bytes) {
  if (bytes > 0)
    result.excess += static_cast<double>(bytes) /
                     (static_cast<double>(model.deviceMemory(d)) + 1);
}

/// The first time from \p from on at which a device has room for \p bytes, and
/// nothing that comes earlier in the order starts there later. They are then
/// taken.
int64_t StartOrder::fit(int32_t d, int64_t from, int64_t bytes) {
  Memory &of = memory[d];
  if (!of.isTight || bytes == 0)
    return from;
  int64_t at = std::max(from, of.since);
  auto next = [&] {
    of.level -= of.releases.front().bytes;
    std::pop_heap(of.releases.begin(), of.releases.end());
    of.releases.pop_back();
  };
  while (!of.releases.empty() && of.releases.front().at <= at)
    next();
  int64_t room = model.deviceMemory(d) - bytes;
  while (of.level > room && !of.releases.empty()) {
    at = of.releases.front().at;
    while (!of.releases.empty() && of.releases.front().at <= at)
      next();
  }
  lack(d, of.level - room);
  of.level += bytes;
  of.since = at;
  return at;
}

void StartOrder::release(int32_t d, int64_t at, int64_t bytes) {
  if (bytes == 0 || !memory[d].isTight)
    return;
  memory[d].releases.push_back({at, bytes});
  std::push_heap(memory[d].releases.begin(), memory[d].releases.end());
}

/// A use of a tensor on a device ends; the last one lets it go.
void StartOrder::use(int32_t holding, int64_t until) {
  lastUse[holding] = std::max(lastUse[holding], until);
  if (--usesLeft[holding] != 0)
    return;
  int32_t t = holding / model.numDevices, d = holding % model.numDevices;
  int32_t producer = model.producer[t];
  if (on[producer] != d)
    release(d, lastUse[holding], model.copy[t]);
  else if (!model.keepsOutputs[producer])
    release(d, lastUse[holding], model.memory[t]);
}

/// Bytes that a node takes on its device. Without a duration it takes what
/// others will use, in the place of what only it still needs.
int64_t StartOrder::bytesOf(int32_t i, int64_t at) {
  int32_t d = on[i];
  bool isInstant = model.timeOf(i, d) == 0;
  int64_t bytes = isInstant ? 0 : model.scratch[i];
  auto [first, last] = model.tensorsOf(i);
  for (int32_t t = first; t < last; ++t)
    if (!isInstant || usesLeft[index(t, d)] > 0 || model.keepsOutputs[i])
      bytes += model.memory[t];
  if (!isInstant)
    return bytes;
  for (int32_t t : model.operands[i]) {
    int32_t holding = index(t, d), producer = model.producer[t];
    if (usesLeft[holding] != 1 || lastUse[holding] > at)
      continue;
    if (on[producer] != d)
      bytes -= model.copy[t];
    else if (!model.keepsOutputs[producer])
      bytes -= model.memory[t];
    else
      continue;
    // Gone already: `use` must not let it go again.
    usesLeft[holding] = gone;
  }
  return bytes;
}

void StartOrder::takeNode(int32_t i) {
  int32_t d = on[i];
  auto [first, last] = model.tensorsOf(i);
  int64_t ns = model.timeOf(i, d), from = earliest[i];
  if (ns > 0)
    from = std::max(from, deviceFree[d]);
  begin[i] = fit(d, from, bytesOf(i, from));
  end[i] = begin[i] + ns;
  if (ns > 0) {
    deviceFree[d] = end[i];
    release(d, end[i], model.scratch[i]);
  }
  for (int32_t t : model.operands[i])
    use(index(t, d), end[i]);
  for (int32_t t = first; t < last; ++t) {
    int32_t holding = index(t, d);
    if (usesLeft[holding] == 0 && ns > 0) {
      // Nobody needs it: let go at once.
      usesLeft[holding] = 1;
      use(holding, end[i]);
    }
    lastUse[holding] = std::max(lastUse[holding], end[i]);
    for (int32_t user : model.users[t])
      if (on[user] == d)
        arrive(user, end[i]);
    for (int32_t to = 0; to < model.numDevices; ++to)
      if (int32_t transfer = index(t, to); source[transfer] == d)
        arrive(model.numNodes + transfer, end[i]);
  }
  for (int32_t user : model.controlUsers[i])
    arrive(user, end[i] + (on[user] == d ? 0 : model.latencyNs(d, on[user])));
}

/// What a transfer occupies, up to two of them; nullptr: nothing.
int64_t *StartOrder::carrier(int32_t from, int32_t to, bool second) {
  switch (model.machine->linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    return second ? nullptr : &linkFree[from * model.numDevices + to];
  case LinkModel::Duplex:
    return &linkFree[second ? model.numDevices + to : from];
  case LinkModel::Sequential:
    return &linkFree[second ? to : from];
  }
  return nullptr;
}

void StartOrder::takeTransfer(int32_t transfer) {
  int32_t t = transfer / model.numDevices, to = transfer % model.numDevices;
  int32_t from = source[transfer], step = model.numNodes + transfer;
  int64_t ns = model.transferNs(t, from, to), at = earliest[step];
  int64_t *one = carrier(from, to, false), *two = carrier(from, to, true);
  for (int64_t *free : {one, two})
    if (free && ns > 0)
      at = std::max(at, *free);
  begin[step] = fit(to, at, model.copy[t]);
  end[step] = begin[step] + ns;
  for (int64_t *free : {one, two})
    if (free && ns > 0)
      *free = end[step];
  lastUse[transfer] = std::max(lastUse[transfer], end[step]);
  use(index(t, from), end[step]);
  for (int32_t user : model.users[t])
    if (on[user] == to)
      arrive(user, end[step]);
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (int32_t next = index(t, d); source[next] == to)
      arrive(model.numNodes + next, end[step]);
}

StartOrder::Value StartOrder::run(const StartPlan &plan) {
  if (!prepare(plan))
    return {};
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (waiting[i] == 0)
      makeReady(i);
  while (!ready.empty()) {
    int32_t step = ready.front().step;
    std::pop_heap(ready.begin(), ready.end());
    ready.pop_back();
    order.push_back(step);
    if (isNode(step))
      takeNode(step);
    else
      takeTransfer(step - model.numNodes);
    result.makespan = std::max(result.makespan, end[step]);
  }
  return result;
}

Placement StartOrder::placement() const {
  Placement placement;
  placement.device = on;
  placement.startNs.assign(begin.begin(), begin.begin() + model.numNodes);
  placement.makespanNs = result.makespan;
  for (int32_t step : order) {
    if (isNode(step))
      continue;
    int32_t transfer = step - model.numNodes;
    int32_t t = transfer / model.numDevices, producer = model.producer[t];
    placement.transfers.push_back(
        {producer, t - model.firstTensor[producer], source[transfer],
         transfer % model.numDevices, begin[step], end[step]});
  }
  std::stable_sort(placement.transfers.begin(), placement.transfers.end(),
                   [](const Transfer &a, const Transfer &b) {
                     return a.startNs < b.startNs;
                   });
  return placement;
}
