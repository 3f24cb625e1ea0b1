//===- PartialSchedule.cpp - What has been placed so far --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/PartialSchedule.h"
#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::placers;

PartialSchedule::PartialSchedule(const Model &model, bool limited)
    : device(model.numNodes, -1), start(model.numNodes, 0), model(model),
      limited(limited && model.memoryMatters()),
      // Nodes are forced somewhere only when memory or links rule devices out.
      countsBytes(this->limited || model.lacksLinks),
      linksAreAlike(model.numClasses == 1 && !model.lacksLinks),
      numDevices(model.numDevices), finish(model.numNodes, 0),
      tensors(model.numTensors), lazy(model.numNodes, 0),
      unitDevice(model.numUnits, -1), free(numDevices, 0), level(numDevices, 0),
      linkModel(model.machine->linkModel), sendFree(numDevices, 0),
      inFree(numDevices, 0),
      pairFree(static_cast<size_t>(numDevices) * numDevices, 0) {
  for (int32_t t = 0; t < model.numTensors; ++t) {
    tensors[t].producer = model.producer[t];
    tensors[t].usersLeft = static_cast<int32_t>(model.users[t].size());
    if (linksAreAlike)
      tensors[t].transfer = model.classTransfer(t, 0);
  }
  isOpen.reserve(static_cast<size_t>(model.numNodes) * numDevices);
  for (Unit u : model.unit)
    for (int32_t d = 0; d < numDevices; ++d)
      isOpen.push_back(model.mayUse(u, d));
  for (int32_t i = 0; i < model.numNodes; ++i) {
    bool isUsed = false;
    model.forEachUser(i, [&](int32_t) { isUsed = true; });
    lazy[i] = isUsed && model.operands[i].empty() &&
              model.controlSources[i].empty() && model.meanTime(i) == 0;
  }
}

void PartialSchedule::fetch(int32_t node) const {
  __builtin_prefetch(&model.unit[node]);
  __builtin_prefetch(&model.firstTensor[node]);
  __builtin_prefetch(
      &model.kindTime[static_cast<size_t>(node) * model.numKinds]);
  __builtin_prefetch(&model.controlSources.begin[node]);
  __builtin_prefetch(&model.controlUsers.begin[node]);
  __builtin_prefetch(&device[node], /*rw=*/1);
  __builtin_prefetch(&start[node], /*rw=*/1);
  __builtin_prefetch(&finish[node], /*rw=*/1);
}

int32_t PartialSchedule::futureHome(int32_t source,
                                    int32_t consumerDevice) const {
  Unit u = model.unit[source];
  if (unitDevice[u] >= 0)
    return unitDevice[u];
  if (model.mayUse(u, consumerDevice))
    return consumerDevice;
  int32_t any = -1;
  for (int32_t d = numDevices; d-- > 0;)
    if (model.mayUse(u, d) && (any < 0 || model.reaches(d, consumerDevice) ||
                               !model.reaches(any, consumerDevice)))
      any = d;
  return any;
}

void PartialSchedule::keepCopy(Tensor &tensor, int32_t d, int64_t time) {
  int32_t &row = tensor.row;
  if (row < 0) {
    if (unusedRows.empty()) {
      row = static_cast<int32_t>(rows.size() / numDevices);
      rows.resize(rows.size() + numDevices, -1);
    } else {
      row = unusedRows.back();
      unusedRows.pop_back();
      std::fill_n(rows.begin() + static_cast<ptrdiff_t>(at(row, 0)), numDevices,
                  -1);
    }
  }
  rows[at(row, d)] = time;
}

void PartialSchedule::setLinkFree(int32_t from, int32_t to, int64_t time) {
  if (linkModel == LinkModel::Unlimited)
    return;
  pairFree[at(from, to)] = sendFree[from] = time;
  (linkModel == LinkModel::Sequential ? sendFree : inFree)[to] = time;
}

/// The transfers of a node follow each other in the order of its operands: one
/// that is complete at `done` delays all from it on, so it counts with their
/// sum, and so does the link that the first one from a home waits for. Under
/// `parallel` links this holds home by home.
void PartialSchedule::arrivalOf(int32_t node, int32_t d,
                                Arrival &arrival) const {
  arrival.fixed = 0;
  arrival.waits.clear();
  auto later = [&](int64_t time) {
    arrival.fixed = std::max(arrival.fixed, time);
  };
  auto cannot = [&] { arrival = {never, {}}; };
  auto operands = model.operands[node];
  int64_t sum = 0;
  for (size_t k = operands.size(); k-- > 0;) {
    int32_t t = operands[k];
    const Tensor &tensor = tensors[t];
    int32_t home = homeOf(tensor, d);
    if (home == d) {
      later(tensor.finish);
      continue;
    }
    if (int64_t there = copyTime(tensor, d); there >= 0) {
      later(there);
      continue;
    }
    if (!model.reaches(home, d)) {
      cannot();
      return;
    }
    int64_t ns = routeNs(t, tensor, home, d);
    if (linkModel == LinkModel::Unlimited) {
      later(tensor.finish + ns);
      continue;
    }
    auto wait =
        std::find_if(arrival.waits.begin(), arrival.waits.end(),
                     [&](const Arrival::Wait &w) { return w.home == home; });
    if (wait == arrival.waits.end()) {
      arrival.waits.push_back({home, 0});
      wait = std::prev(arrival.waits.end());
    }
    sum += ns;
    wait->length = linkModel == LinkModel::Parallel ? wait->length + ns : sum;
    later(tensor.finish + wait->length);
  }
  for (int32_t source : model.controlSources[node]) {
    int32_t home = homeOf(source, d);
    if (home != d && !model.linked(home, d)) {
      cannot();
      return;
    }
    later(finish[source] + (home == d ? 0 : model.latencyNs(home, d)));
  }
}

int64_t PartialSchedule::timeOf(const Arrival &arrival, int32_t d) const {
  int64_t time = arrival.fixed;
  for (const Arrival::Wait &wait : arrival.waits)
    time = std::max(time, endOf(wait, d));
  return time;
}

int64_t PartialSchedule::arrivalTime(int32_t node, int32_t d) const {
  Arrival arrival;
  arrivalOf(node, d, arrival);
  return timeOf(arrival, d);
}

bool PartialSchedule::fits(int32_t node, int32_t d) const {
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
    const Tensor &tensor = tensors[t];
    if (tensor.home < 0) {
      charge(model.unit[tensor.producer]);
      need += homeOf(tensor, d) == d ? model.memory[t] : model.copy[t];
    } else if (tensor.home != d && copyTime(tensor, d) < 0) {
      need += model.copy[t];
    }
  }
  return need <= room(d);
}

/// Keeps the transfers that \p node needs on \p d; returns when all is there.
/// What is passed on keeps the two ends busy, as if there were a link. Where no
/// way leads the result will be found invalid; it goes on regardless.
int64_t PartialSchedule::book(int32_t node, int32_t d) {
  int64_t ready = 0;
  for (int32_t t : model.operands[node]) {
    Tensor &tensor = tensors[t];
    int32_t home = tensor.home;
    int64_t there = home == d ? tensor.finish : copyTime(tensor, d);
    if (there < 0) {
      if (!model.reaches(home, d))
        return 0;
      there = std::max(tensor.finish, linkFree(home, d)) +
              routeNs(t, tensor, home, d);
      setLinkFree(home, d, there);
      keepCopy(tensor, d, there);
      if (countsBytes)
        level[d] += model.copy[t];
      copied.push_back(t);
    }
    ready = std::max(ready, there);
  }
  for (int32_t source : model.controlSources[node]) {
    int32_t home = device[source];
    if (home != d && !model.linked(home, d))
      return 0;
    ready = std::max(ready, finish[source] +
                                (home == d ? 0 : model.latencyNs(home, d)));
  }
  return ready;
}

/// A unit has got its device: its nodes may go nowhere else.
void PartialSchedule::settleUnit(Unit u, int32_t d) {
  unitDevice[u] = d;
  level[d] += model.unitResident[u];
  bool bringsLazy = false;
  for (int32_t i : model.members[u]) {
    for (int32_t e = 0; e < numDevices; ++e)
      if (e != d)
        ruleOut(i, e);
    bringsLazy |= lazy[i] != 0;
  }
  if (bringsLazy)
    lazyUnits.push_back(u);
}

/// Gives a node its device and charges what it holds there.
void PartialSchedule::settle(int32_t node, int32_t d) {
  device[node] = d;
  if (Unit u = model.unit[node]; unitDevice[u] < 0)
    settleUnit(u, d);
  ruleOut(node, d);
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t) {
    tensors[t].home = d;
    if (countsBytes && (tensors[t].usersLeft > 0 || model.keepsOutputs[node]))
      level[d] += model.memory[t];
  }
}

void PartialSchedule::freeOperands(int32_t node) {
  for (int32_t t : model.operands[node]) {
    Tensor &tensor = tensors[t];
    if (--tensor.usersLeft > 0)
      continue;
    if (int32_t row = tensor.row; row >= 0) {
      if (countsBytes)
        for (int32_t d = 0; d < numDevices; ++d)
          if (rows[at(row, d)] >= 0)
            level[d] -= model.copy[t];
      unusedRows.push_back(row);
      tensor.row = -1;
    }
    if (countsBytes && !model.keepsOutputs[tensor.producer])
      level[tensor.home] -= model.memory[t];
  }
}

void PartialSchedule::place(int32_t node, int32_t d) {
  copied.clear();
  lazyUnits.clear();
  for (int32_t t : model.operands[node])
    if (const Tensor &tensor = tensors[t]; tensor.home < 0)
      settle(tensor.producer, homeOf(tensor, d));
  for (int32_t source : model.controlSources[node])
    if (device[source] < 0)
      settle(source, homeOf(source, d));
  int64_t begin = std::max(book(node, d), free[d]);
  settle(node, d);
  start[node] = begin;
  finish[node] = free[d] = begin + std::max<int64_t>(0, model.timeOf(node, d));
  auto [first, last] = model.tensorsOf(node);
  for (int32_t t = first; t < last; ++t)
    tensors[t].finish = finish[node];
  freeOperands(node);
}
