//===- Period.cpp - The distance between steps that overlap -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Period.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace baechi::placement;

/// Whether a mean, of nanoseconds over steps, is larger than another.
static bool isLarger(int64_t ns, int64_t steps, const Period &other) {
  return static_cast<__int128>(ns) * other.cycle >
         static_cast<__int128>(other.cycleNs) * steps;
}

PeriodReplay::PeriodReplay(const Model &model)
    : model(model), depth(model.numNodes, 0) {
  for (int32_t i : model.order)
    model.forEachUser(i, [&](int32_t user) {
      depth[user] = std::max(depth[user], depth[i] + 1);
    });
}

Period PeriodReplay::run(const Placement &placement) {
  Schedule schedule{placement.makespanNs, placement.startNs, {}};
  for (const Transfer &each : placement.transfers)
    schedule.transfers.push_back({model.firstTensor[each.op] + each.output,
                                  each.from, each.to, each.startNs,
                                  each.endNs});
  return run(placement.device, schedule);
}

/// All tasks of a step, in order of their starts; where these are the same, by
/// what they wait for, and then by number.
void PeriodReplay::order(const Assignment &device, const Schedule &schedule) {
  tasks.clear();
  for (int32_t i = 0; i < model.numNodes; ++i) {
    int32_t d = device[i];
    int64_t start = schedule.start[i], end = start + model.timeOf(i, d);
    tasks.push_back({start, end, depth[i], Kind::Operator, 0, i, -1, d, d});
    for (int32_t user : model.controlUsers[i])
      if (device[user] != d)
        tasks.push_back({end, end + model.latencyNs(d, device[user]), depth[i],
                         Kind::Signal, 0, i, user, d, device[user]});
  }
  // A tensor's devices, and the transfers behind it there.
  std::map<std::pair<int32_t, int32_t>, int32_t> hops;
  std::vector<ScheduledTransfer> transfers = schedule.transfers;
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const ScheduledTransfer &a, const ScheduledTransfer &b) {
                     return std::tie(a.start, a.end) < std::tie(b.start, b.end);
                   });
  for (const ScheduledTransfer &each : transfers) {
    auto before = hops.find({each.tensor, each.from});
    int32_t count = before == hops.end() ? 0 : before->second;
    hops[{each.tensor, each.to}] = count + 1;
    int64_t ns = model.transferNs(each.tensor, each.from, each.to);
    tasks.push_back({each.start, each.start + ns,
                     depth[model.producer[each.tensor]], Kind::Transfer, count,
                     each.tensor, -1, each.from, each.to});
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const Task &a, const Task &b) { return a.key() < b.key(); });
}

int32_t PeriodReplay::find(int32_t device) {
  while (group[device] != device)
    device = group[device] = group[group[device]];
  return device;
}

void PeriodReplay::join(int32_t a, int32_t b) { group[find(a)] = find(b); }

/// What each task waits for, the links that transfers need, and what gives lent
/// tensors back.
void PeriodReplay::connect(const Assignment &device) {
  auto count = static_cast<int32_t>(tasks.size());
  int32_t devices = model.numDevices;
  std::vector<int32_t> taskOf(model.numNodes);
  std::map<std::pair<int32_t, int32_t>, int32_t> arrival; // tensor, device
  for (int32_t k = 0; k < count; ++k) {
    const Task &task = tasks[k];
    if (task.kind == Kind::Operator)
      taskOf[task.id] = k;
    else if (task.kind == Kind::Transfer)
      arrival[{task.id, task.to}] = k;
  }
  group.resize(devices);
  std::iota(group.begin(), group.end(), 0);
  links.assign(static_cast<size_t>(2) * count, -1);
  std::map<std::pair<int32_t, int32_t>, int32_t> positions; // of links
  std::vector<int32_t> userOf;                              // of a link
  auto position = [&](int32_t a, int32_t b) {
    auto [it, isNew] = positions.try_emplace(
        {a, b}, devices + static_cast<int32_t>(userOf.size()));
    if (isNew)
      userOf.push_back(a < devices ? a : a - devices);
    return it->second;
  };
  std::vector<std::pair<int32_t, int32_t>> waits, returns;
  auto whereIs = [&](int32_t tensor, int32_t d) {
    int32_t producer = model.producer[tensor];
    return device[producer] == d ? taskOf[producer] : arrival.at({tensor, d});
  };
  for (int32_t i = 0; i < model.numNodes; ++i) {
    for (int32_t t : model.operands[i]) {
      int32_t source = whereIs(t, device[i]);
      waits.emplace_back(taskOf[i], source);
      if (tasks[source].kind == Kind::Transfer)
        returns.emplace_back(source, taskOf[i]);
    }
    for (int32_t source : model.controlSources[i])
      if (device[source] == device[i])
        waits.emplace_back(taskOf[i], taskOf[source]);
  }
  for (int32_t k = 0; k < count; ++k) {
    const Task &task = tasks[k];
    if (task.kind == Kind::Operator)
      continue;
    join(task.from, task.to);
    if (task.kind == Kind::Signal) {
      waits.emplace_back(k, taskOf[task.id]);
      waits.emplace_back(taskOf[task.user], k);
      continue;
    }
    int32_t source = whereIs(task.id, task.from);
    waits.emplace_back(k, source);
    if (tasks[source].kind == Kind::Transfer)
      returns.emplace_back(source, k);
    auto *held = &links[2 * size_t(k)];
    switch (model.machine->linkModel) {
    case LinkModel::Unlimited:
      break;
    case LinkModel::Parallel:
      held[0] = position(task.from, task.to);
      break;
    case LinkModel::Duplex:
      held[0] = position(task.from, -1);
      held[1] = position(devices + task.to, -1);
      break;
    case LinkModel::Sequential:
      held[0] = position(task.from, -1);
      held[1] = position(task.to, -1);
      break;
    }
  }
  needs = makeRows(count, waits);
  borrowers = makeRows(count, returns);
  groupOf.resize(devices);
  for (int32_t d = 0; d < devices; ++d)
    groupOf[d] = find(d);
  for (int32_t d : userOf)
    groupOf.push_back(find(d));
}

/// One more step, from the state that the one before has left.
void PeriodReplay::replay(std::vector<int64_t> &state) {
  auto count = static_cast<int32_t>(tasks.size());
  int32_t devices = model.numDevices;
  const std::vector<int64_t> begin(state.begin(), state.begin() + devices);
  std::vector<int64_t> clock = begin, delivered = begin;
  finish.resize(count);
  for (int32_t k = 0; k < count; ++k) {
    const Task &task = tasks[k];
    int64_t at = begin[task.from];
    for (int32_t source : needs[k])
      at = std::max(at, finish[source]);
    if (task.kind == Kind::Operator) {
      at = std::max(at, clock[task.from]);
      finish[k] = clock[task.from] = at + (task.end - task.start);
      continue;
    }
    // What is lent lies with its sender: the receiver need not be there yet.
    if (!isLent(task))
      at = std::max(at, begin[task.to]);
    for (int32_t side = 0; side < 2; ++side)
      if (int32_t link = links[2 * k + side]; link >= 0)
        at = std::max(at, state[link]);
    finish[k] = at + (task.end - task.start);
    for (int32_t side = 0; side < 2; ++side)
      if (int32_t link = links[2 * k + side]; link >= 0)
        state[link] = finish[k];
    for (int32_t d : {task.from, task.to})
      delivered[d] = std::max(delivered[d], finish[k]);
  }
  // Who passes a lent tensor on by lending it has it back first.
  std::vector<int64_t> back = finish;
  for (int32_t k = count; k-- > 0;) {
    if (!isLent(tasks[k]))
      continue;
    for (int32_t reader : borrowers[k])
      back[k] = std::max(back[k], back[reader]);
    int64_t &sender = delivered[tasks[k].from];
    sender = std::max(sender, back[k]);
  }
  for (int32_t d = 0; d < devices; ++d)
    state[d] = std::max(clock[d], delivered[d]);
}

/// Whether each group's devices and links are as far apart as after some
/// earlier step: then \p period is known.
bool PeriodReplay::repeats(Period &period) const {
  const std::vector<int64_t> &now = past.back();
  for (int32_t leader = 0; leader < model.numDevices; ++leader) {
    if (groupOf[leader] != leader)
      continue;
    bool found = false;
    for (size_t k = past.size() - 1; k-- > 0 && !found;) {
      int64_t ns = now[leader] - past[k][leader];
      found = true;
      for (size_t p = 0; p < now.size() && found; ++p)
        found = groupOf[p] != leader || now[p] - past[k][p] == ns;
      auto steps = static_cast<int64_t>(past.size() - 1 - k);
      if (found && isLarger(ns, steps, period))
        period = {ns, steps};
    }
    if (!found)
      return false;
  }
  return true;
}

/// Karp's formula, with the state before the first step as the beginning of all
/// walks.
Period PeriodReplay::meanOfCycles() const {
  const std::vector<int64_t> &last = past.back();
  size_t steps = past.size() - 1;
  Period largest;
  for (size_t p = 0; p < last.size(); ++p) {
    Period least{last[p] - past[0][p], static_cast<int64_t>(steps)};
    for (size_t k = 1; k < steps; ++k) {
      Period mean{last[p] - past[k][p], static_cast<int64_t>(steps - k)};
      if (isLarger(least.cycleNs, least.cycle, mean))
        least = mean;
    }
    if (isLarger(least.cycleNs, least.cycle, largest))
      largest = least;
  }
  return largest;
}

Period PeriodReplay::run(const Assignment &device, const Schedule &schedule) {
  order(device, schedule);
  connect(device);
  past.assign(1, std::vector<int64_t>(groupOf.size(), 0));
  Period period;
  while (past.size() <= groupOf.size()) {
    std::vector<int64_t> state = past.back();
    replay(state);
    past.push_back(std::move(state));
    period = Period();
    if (repeats(period))
      break;
    if (past.size() > groupOf.size())
      period = meanOfCycles();
  }
  period.replayed = static_cast<int64_t>(past.size() - 1);
  return period;
}
