//===- Schedule.cpp - A schedule for an assignment --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Schedule.h"

#include <algorithm>

using namespace baechi::placement;

Scheduler::Scheduler(const Model &model)
    : model(model), numDevices(model.numDevices), needs(model.numNodes, 0),
      tail(model.numNodes), states(model.numNodes),
      readyNodes(model.numDevices),
      readyTransfers(static_cast<size_t>(model.numDevices) * model.numDevices),
      links(*model.machine), wanted(model.numDevices, -1) {
  for (int32_t i = 0; i < model.numNodes; ++i)
    needs[i] = static_cast<int32_t>(model.operands[i].size() +
                                    model.controlSources[i].size());
}

/// Longest path from the start of every node to the end of the step. False
/// when two devices must talk that cannot.
bool Scheduler::computeTails(const Assignment &device) {
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k], d = device[i];
    int64_t longest = 0;
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      for (int32_t user : model.users[t]) {
        int64_t path = tail[user];
        if (int32_t e = device[user]; e != d) {
          if (!model.reaches(d, e))
            return false;
          path += model.routeNs(t, d, e);
        }
        longest = std::max(longest, path);
      }
    for (int32_t user : model.controlUsers[i]) {
      int64_t path = tail[user];
      if (int32_t e = device[user]; e != d) {
        if (!model.linked(d, e))
          return false;
        path += model.latencyNs(d, e);
      }
      longest = std::max(longest, path);
    }
    tail[i] = longest + model.timeOf(i, d);
  }
  return true;
}

void Scheduler::reset(const Assignment &device, const Options &options) {
  cutoff = options.cutoff;
  beyond = false;
  now = 0;
  left = model.numNodes;
  for (auto &heap : readyNodes)
    heap.clear();
  for (int32_t pair : pendingPairs)
    readyTransfers[pair].clear();
  pendingPairs.clear();
  nodeRunning.assign(numDevices, 0);
  workLeft.assign(numDevices, 0);
  std::span<const int64_t> priority = options.priority;
  if (priority.empty())
    priority = tail;
  for (int32_t i = 0; i < model.numNodes; ++i) {
    workLeft[device[i]] += model.timeOf(i, device[i]);
    states[i] = {priority[i], device[i], needs[i]};
  }
  running.clear();
  freeSlots.clear();
  events.clear();
  links.clear();
  transfersChanged = false;
  if (record) {
    record->start.assign(model.numNodes, 0);
    record->transfers.clear();
  }
}

void Scheduler::push(Event event) {
  events.push_back(event);
  std::push_heap(events.begin(), events.end());
}

/// One of the things that \p node waits for is there.
void Scheduler::arrive(int32_t node) {
  State &state = states[node];
  if (--state.waiting > 0)
    return;
  auto &heap = readyNodes[state.on];
  heap.push_back({state.priority, node});
  std::push_heap(heap.begin(), heap.end());
}

/// The processor may bring what will be asked of a node's users while others
/// run.
void Scheduler::fetchUsers(int32_t node) const {
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    for (int32_t user : model.users[t])
      __builtin_prefetch(&states[user], /*rw=*/1);
}

void Scheduler::want(int32_t to, int64_t rank) {
  if (wanted[to] < 0)
    wanting.push_back(to);
  wanted[to] = std::max(wanted[to], rank);
}

/// Queues the copies of a tensor that \p from makes, to the wanting devices.
void Scheduler::requestCopies(int32_t tensor, int32_t from) {
  for (int32_t to : wanting) {
    int32_t pair = from * numDevices + to;
    auto &heap = readyTransfers[pair];
    if (heap.empty())
      pendingPairs.push_back(pair);
    heap.push_back({wanted[to], tensor});
    std::push_heap(heap.begin(), heap.end());
    transfersChanged = true;
    wanted[to] = -1;
  }
  wanting.clear();
}

/// The tensor is on \p at: the copies that are made from there.
void Scheduler::passOn(int32_t tensor, int32_t at) {
  int32_t home = states[model.producer[tensor]].on;
  for (int32_t user : model.users[tensor])
    if (int32_t next = model.hopAfter(at, home, states[user].on); next >= 0)
      want(next, states[user].priority);
  requestCopies(tensor, at);
}

/// Starts the most urgent transfers whose links are free.
void Scheduler::startTransfers() {
  transfersChanged = false;
  for (;;) {
    size_t best = pendingPairs.size();
    for (size_t k = 0; k < pendingPairs.size(); ++k) {
      int32_t pair = pendingPairs[k];
      if (!links.areFree(model.machine->linkModel, pair / numDevices,
                         pair % numDevices))
        continue;
      if (best < pendingPairs.size()) {
        // One tensor may be as urgent on two devices: the first pair decides.
        const Ready &a = readyTransfers[pendingPairs[best]].front();
        const Ready &b = readyTransfers[pair].front();
        if (b < a || (!(a < b) && pendingPairs[best] < pair))
          continue;
      }
      best = k;
    }
    if (best == pendingPairs.size())
      return;
    int32_t pair = pendingPairs[best];
    int32_t from = pair / numDevices, to = pair % numDevices;
    auto &heap = readyTransfers[pair];
    int32_t tensor = heap.front().id;
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    if (heap.empty()) {
      pendingPairs[best] = pendingPairs.back();
      pendingPairs.pop_back();
    }
    int64_t end = now + model.transferNs(tensor, from, to);
    links.set(model.machine->linkModel, from, to, true);
    auto slot = static_cast<int32_t>(running.size());
    if (freeSlots.empty()) {
      running.push_back({tensor, from, to});
    } else {
      slot = freeSlots.back();
      freeSlots.pop_back();
      running[slot] = {tensor, from, to};
    }
    push({end, Kind::TransferEnds, slot});
    if (record)
      record->transfers.push_back({tensor, from, to, now, end});
  }
}

void Scheduler::startNode(int32_t d) {
  auto &heap = readyNodes[d];
  int32_t i = heap.front().id;
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
  if (now > cutoff - tail[i] || now > cutoff - workLeft[d]) {
    beyond = true;
    return;
  }
  nodeRunning[d] = 1;
  fetchUsers(i);
  // What will be asked of the next one.
  if (!heap.empty()) {
    int32_t next = heap.front().id;
    __builtin_prefetch(&tail[next]);
    __builtin_prefetch(&model.firstTensor[next]);
    __builtin_prefetch(
        &model.kindTime[static_cast<size_t>(next) * model.numKinds]);
  }
  int64_t ns = model.timeOf(i, d);
  workLeft[d] -= ns;
  push({now + ns, Kind::NodeEnds, i});
  if (record)
    record->start[i] = now;
}

void Scheduler::finishNode(int32_t node) {
  int32_t d = states[node].on;
  nodeRunning[d] = 0;
  --left;
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t) {
    for (int32_t user : model.users[t]) {
      const State &state = states[user];
      if (state.on == d)
        arrive(user);
      else if (!model.lacksLinks)
        want(state.on, state.priority);
      else
        want(model.hopAfter(d, d, state.on), state.priority);
    }
    requestCopies(t, d);
  }
  for (int32_t user : model.controlUsers[node]) {
    if (int32_t e = states[user].on; e == d)
      arrive(user);
    else
      push({now + model.latencyNs(d, e), Kind::SignalArrives, user});
  }
}

void Scheduler::finishTransfer(int32_t slot) {
  auto [tensor, from, to] = running[slot];
  freeSlots.push_back(slot);
  links.set(model.machine->linkModel, from, to, false);
  transfersChanged = true;
  for (int32_t user : model.users[tensor])
    if (states[user].on == to)
      arrive(user);
  if (model.lacksLinks)
    passOn(tensor, to);
}

int64_t Scheduler::run(const Assignment &device, const Options &options,
                       Schedule *recordTo) {
  record = recordTo;
  if (!computeTails(device))
    return never;
  if (cutoff = options.cutoff; cutoff != never)
    for (int64_t path : tail)
      if (path > cutoff)
        return never;
  reset(device, options);
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (states[i].waiting == 0)
      readyNodes[device[i]].push_back({states[i].priority, i});
  for (auto &heap : readyNodes)
    std::make_heap(heap.begin(), heap.end());
  for (;;) {
    if (transfersChanged)
      startTransfers();
    for (int32_t d = 0; d < numDevices; ++d)
      if (!nodeRunning[d] && !readyNodes[d].empty())
        startNode(d);
    if (beyond || events.empty())
      break;
    now = events.front().at;
    while (!events.empty() && events.front().at == now) {
      Event event = events.front();
      std::pop_heap(events.begin(), events.end());
      events.pop_back();
      switch (event.kind) {
      case Kind::NodeEnds:
        finishNode(event.id);
        break;
      case Kind::TransferEnds:
        finishTransfer(event.id);
        break;
      case Kind::SignalArrives:
        arrive(event.id);
        break;
      }
    }
  }
  int64_t makespan = left > 0 || beyond || now > cutoff ? never : now;
  if (record)
    record->makespan = makespan;
  return makespan;
}
