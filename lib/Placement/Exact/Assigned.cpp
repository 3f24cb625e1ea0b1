//===- Assigned.cpp - A small problem with its devices fixed ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Assigned.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

Assigned::Assigned(const Instance &instance, const Assignment &device)
    : instance(instance), model(instance.model), device(device),
      time(instance.numNodes), tail(instance.numNodes, 0),
      copiesRead(instance.numNodes), localSources(instance.numNodes, 0),
      signalsTo(instance.numNodes), longestSignal(instance.numNodes, 0),
      twinBefore(instance.twin), movedOf(model.numTensors, -1),
      homeReaders(model.numTensors, 0) {
  for (int32_t i = 0; i < instance.numNodes; ++i) {
    int32_t d = device[i];
    time[i] = model.timeOf(i, d);
    resident[d] += model.resident[i];
    for (int32_t source : model.controlSources[i]) {
      if (device[source] == d) {
        localSources[i] |= OpSet(1) << source;
        continue;
      }
      if (!model.linked(device[source], d)) {
        connected = false;
        return;
      }
      int64_t ns = model.latencyNs(device[source], d);
      signalsTo[i].push_back({source, i, ns});
      longestSignal[source] = std::max(longestSignal[source], ns);
    }
    for (int32_t t : model.operands[i])
      if (device[model.producer[t]] == d)
        localSources[i] |= OpSet(1) << model.producer[t];
    while (twinBefore[i] >= 0 && device[twinBefore[i]] != d)
      twinBefore[i] = instance.twin[twinBefore[i]];
  }
  findCopies();
  if (!connected)
    return;
  findTails();
  Levels most = resident;
  std::array<int64_t, maxDevices> scratch{};
  for (int32_t i = 0; i < instance.numNodes; ++i) {
    scratch[device[i]] = std::max(scratch[device[i]], model.scratch[i]);
    most[device[i]] += instance.outputBytes[i];
  }
  for (const Copy &copy : copies)
    most[copy.to] += model.copy[copy.tensor];
  for (int32_t d = 0; d < instance.numDevices; ++d) {
    tight[d] = most[d] + scratch[d] > model.deviceMemory(d);
    anyTight |= tight[d];
  }
}

/// The copies that are needed; beyond two devices also those that may relay.
void Assigned::findCopies() {
  int32_t devices = instance.numDevices;
  for (int32_t t : instance.tensors) {
    int32_t home = device[model.producer[t]];
    std::array<OpSet, maxDevices> readers{};
    forEachBit(instance.users[t], [&](int32_t user) {
      readers[device[user]] |= OpSet(1) << user;
    });
    homeReaders[t] = readers[home];
    if (homeReaders[t] == instance.users[t])
      continue;
    auto index = static_cast<int32_t>(moved.size());
    movedOf[t] = index;
    Moved tensor{t, home, static_cast<int32_t>(copies.size()), 0};
    CopySet needed;
    for (int32_t d = 0; d < devices; ++d) {
      if (d == home)
        continue;
      bool relays = false;
      for (int32_t e = 0; e < devices && !readers[d]; ++e)
        relays |= e != home && e != d && readers[e] &&
                  instance.pathNs(t, d, e) != never;
      bool reached = instance.pathNs(t, home, d) != never;
      connected &= reached || !readers[d];
      if (!reached || !(readers[d] || relays))
        continue;
      auto id = static_cast<int32_t>(copies.size());
      copies.push_back({t, d, index, readers[d], 0, 0});
      if (readers[d])
        needed.set(id);
      forEachBit(readers[d],
                 [&](int32_t user) { copiesRead[user].push_back(id); });
    }
    tensor.endCopy = static_cast<int32_t>(copies.size());
    DeviceSet holders = DeviceSet(1) << home;
    for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
      holders |= DeviceSet(1) << copies[c].to;
    for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
      forEachBit(holders, [&](int32_t d) {
        if (d != copies[c].to && model.linked(d, copies[c].to))
          copies[c].sources |= DeviceSet(1) << d;
      });
    moved.push_back(tensor);
    neededOf.push_back(needed);
  }
}

std::pair<int32_t, int32_t> Assigned::carriers(int32_t from, int32_t to) const {
  switch (model.machine->linkModel) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    return {from * maxDevices + to, -1};
  case LinkModel::Duplex:
    return {from, maxDevices + to};
  case LinkModel::Sequential:
    return {from, to};
  }
  return {-1, -1};
}

void Assigned::findTails() {
  for (auto it = model.order.rbegin(); it != model.order.rend(); ++it) {
    int32_t i = *it, d = device[i];
    int64_t longest = 0;
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      for (int32_t user : model.users[t])
        longest =
            std::max(longest, instance.pathNs(t, d, device[user]) + tail[user]);
    for (int32_t user : model.controlUsers[i])
      longest = std::max(longest, tail[user]);
    for (int32_t user : model.controlUsers[i])
      if (device[user] != d)
        longest =
            std::max(longest, model.latencyNs(d, device[user]) + tail[user]);
    tail[i] = time[i] + longest;
  }
  for (Copy &copy : copies)
    forEachBit(copy.readers, [&](int32_t user) {
      copy.tail = std::max(copy.tail, tail[user]);
    });
  // What only relays must still reach one of those that read it.
  for (Copy &copy : copies) {
    if (copy.readers)
      continue;
    int64_t least = never;
    const Moved &tensor = moved[copy.of];
    for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
      if (copies[c].readers)
        if (int64_t ns = instance.pathNs(copy.tensor, copy.to, copies[c].to);
            ns != never)
          least = std::min(least, ns + copies[c].tail);
    copy.tail = least == never ? 0 : least;
  }
}

/// True when a transfer of the tensor from \p from is on its way.
bool Assigned::leaves(const Progress &at, int32_t movedIndex,
                      int32_t from) const {
  const Moved &tensor = moved[movedIndex];
  for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
    if (at.copyStarted[c] && !at.copyEnded[c] && at.source[c] == from)
      return true;
  return false;
}

bool Assigned::isUsedAtHome(const Progress &at, int32_t tensor,
                            int32_t movedIndex) const {
  int32_t source = model.producer[tensor];
  return !(at.ended >> source & 1) || model.keepsOutputs[source] ||
         (homeReaders[tensor] & ~at.ended) ||
         (movedIndex >= 0 && leaves(at, movedIndex, device[source]));
}

bool Assigned::isUsedThere(const Progress &at, int32_t copy) const {
  return !at.copyEnded[copy] || (copies[copy].readers & ~at.ended) ||
         leaves(at, copies[copy].of, copies[copy].to);
}

/// True when a device other than that of \p exceptCopy (-1: home) holds the
/// tensor for those that still want it.
bool Assigned::heldForOthers(const Progress &at, int32_t movedIndex,
                             int32_t exceptCopy) const {
  if (exceptCopy >= 0 && !at.homeDropped[movedIndex])
    return true;
  const Moved &tensor = moved[movedIndex];
  for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
    if (c != exceptCopy && at.copyStarted[c] && !at.dropped[c])
      return true;
  return false;
}

bool Assigned::holds(const Progress &at, int32_t movedIndex,
                     int32_t from) const {
  const Moved &tensor = moved[movedIndex];
  if (from == tensor.home)
    return (at.ended >> model.producer[tensor.tensor] & 1) &&
           !at.homeDropped[movedIndex];
  for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
    if (copies[c].to == from)
      return at.copyEnded[c] && !at.dropped[c];
  return false;
}

void Assigned::levels(const Progress &at, Levels &level,
                      bool onlyCertain) const {
  level = resident;
  forEachBit(at.started & ~at.ended,
             [&](int32_t i) { level[device[i]] += model.scratch[i]; });
  for (int32_t t : instance.tensors) {
    int32_t source = model.producer[t], index = movedOf[t];
    if (!(at.started >> source & 1))
      continue;
    bool isWanted = index >= 0 && wanted(at, index);
    if (isUsedAtHome(at, t, index) ||
        (isWanted && !at.homeDropped[index] &&
         !(onlyCertain && heldForOthers(at, index, -1))))
      level[device[source]] += model.memory[t];
    if (index < 0)
      continue;
    for (int32_t c = moved[index].firstCopy; c < moved[index].endCopy; ++c)
      if (at.copyStarted[c] &&
          (isUsedThere(at, c) ||
           (isWanted && !at.dropped[c] &&
            !(onlyCertain && heldForOthers(at, index, c)))))
        level[copies[c].to] += model.copy[t];
  }
}

bool Assigned::fits(const Progress &at, bool onlyCertain) const {
  Levels level;
  levels(at, level, onlyCertain);
  for (int32_t d = 0; d < instance.numDevices; ++d)
    if (level[d] > model.deviceMemory(d))
      return false;
  return true;
}

std::vector<Assigned::Droppable> Assigned::droppable(const Progress &at,
                                                     int32_t d) const {
  std::vector<Droppable> result;
  for (size_t k = 0; k < moved.size(); ++k) {
    const Moved &tensor = moved[k];
    auto index = static_cast<int32_t>(k);
    int32_t source = model.producer[tensor.tensor];
    if (!(at.started >> source & 1) || !wanted(at, index))
      continue;
    if (tensor.home == d && model.memory[tensor.tensor] > 0 &&
        !at.homeDropped[k] && !isUsedAtHome(at, tensor.tensor, index) &&
        heldForOthers(at, index, -1))
      result.push_back({-1, index});
    for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
      if (copies[c].to == d && model.copy[tensor.tensor] > 0 &&
          at.copyStarted[c] && !at.dropped[c] && !isUsedThere(at, c) &&
          heldForOthers(at, index, c))
        result.push_back({c, index});
  }
  return result;
}
