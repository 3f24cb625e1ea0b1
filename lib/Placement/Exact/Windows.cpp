//===- Windows.cpp - Bounds of incomplete assignments -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Windows.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

Windows::Windows(const Instance &instance, Objective objective)
    : instance(instance), model(instance.model), objective(objective),
      numDevices(instance.numDevices), aliveWith(instance.numNodes),
      head(static_cast<size_t>(instance.numNodes) * numDevices),
      tail(head.size()) {
  for (int32_t i = 0; i < instance.numNodes; ++i)
    for (int32_t t : instance.tensors) {
      int32_t source = model.producer[t];
      OpSet later = instance.after[i] | OpSet(1) << i;
      if (instance.before[i] >> source & 1 &&
          (instance.users[t] & later || model.keepsOutputs[source]))
        aliveWith[i].push_back(t);
    }
}

/// True when the unit can still be somewhere.
bool Windows::remove(Unit u, int32_t d) {
  (*domains)[u] &= ~(DeviceSet(1) << d);
  changed = true;
  empty |= (*domains)[u] == 0;
  return !empty;
}

int64_t Windows::shortest(int32_t node) const {
  int64_t best = never;
  forEachBit(of(node),
             [&](int32_t d) { best = std::min(best, model.timeOf(node, d)); });
  return best;
}

/// From an operator's end on \p from to what follows on \p to; a tensor, or -1:
/// a control edge. `never`: impossible.
int64_t Windows::waitAlong(int32_t tensor, int32_t from, int32_t to) const {
  if (from == to)
    return 0;
  if (tensor >= 0)
    return instance.pathNs(tensor, from, to);
  return model.linked(from, to) ? model.latencyNs(from, to) : never;
}

/// When operator \p i can start on \p d, each source on the device that is best
/// for it.
void Windows::heads(int32_t i, int32_t d) {
  int64_t latest = 0;
  auto visit = [&](int32_t source, int32_t tensor) {
    int64_t soonest = never;
    bool together = model.unit[source] == model.unit[i];
    forEachBit(together ? DeviceSet(1) << d : of(source), [&](int32_t e) {
      int64_t wait = waitAlong(tensor, e, d);
      if (wait != never && headOf(source, e) != never)
        soonest = std::min(soonest,
                           headOf(source, e) + model.timeOf(source, e) + wait);
    });
    latest = std::max(latest, soonest);
  };
  for (int32_t t : model.operands[i])
    visit(model.producer[t], t);
  for (int32_t source : model.controlSources[i])
    visit(source, -1);
  headOf(i, d) = latest;
}

/// How long the step goes on after the end of \p i on \p d.
void Windows::tails(int32_t i, int32_t d) {
  int64_t longest = 0;
  auto visit = [&](int32_t user, int32_t tensor) {
    int64_t least = never;
    bool together = model.unit[user] == model.unit[i];
    forEachBit(together ? DeviceSet(1) << d : of(user), [&](int32_t e) {
      int64_t wait = waitAlong(tensor, d, e);
      if (wait != never && tailOf(user, e) != never)
        least = std::min(least, tailOf(user, e) + model.timeOf(user, e) + wait);
    });
    longest = std::max(longest, least);
  };
  auto [begin, end] = model.tensorsOf(i);
  for (int32_t t = begin; t < end; ++t)
    for (int32_t user : model.users[t])
      visit(user, t);
  for (int32_t user : model.controlUsers[i])
    visit(user, -1);
  tailOf(i, d) = longest;
}

/// Longest paths with the devices that are left; for a pipeline's load only
/// whether there are paths.
bool Windows::paths() {
  int64_t limit = objective == Objective::Makespan ? cutoff : never;
  std::fill(head.begin(), head.end(), never);
  std::fill(tail.begin(), tail.end(), never);
  for (int32_t i : model.order)
    forEachBit(of(i), [&](int32_t d) { heads(i, d); });
  for (auto it = model.order.rbegin(); it != model.order.rend(); ++it)
    forEachBit(of(*it), [&](int32_t d) { tails(*it, d); });
  for (int32_t i : model.order) {
    int64_t least = never;
    DeviceSet set = of(i);
    forEachBit(set, [&](int32_t d) {
      int64_t through = never;
      if (headOf(i, d) != never && tailOf(i, d) != never)
        through = headOf(i, d) + model.timeOf(i, d) + tailOf(i, d);
      if (through >= limit)
        remove(model.unit[i], d);
      else
        least = std::min(least, through);
    });
    if (empty)
      return false;
    if (objective == Objective::Makespan)
      bound = std::max(bound, least);
  }
  return true;
}

/// What is on one device, one operator at a time, with each unit that might
/// come to it.
bool Windows::machine(int32_t d) {
  std::vector<Job> certain, jobs;
  auto add = [&](std::vector<Job> &to, int32_t i) {
    if (objective == Objective::MaxLoad)
      to.push_back({0, model.timeOf(i, d), 0});
    else if (int64_t ns = model.timeOf(i, d); ns > 0)
      to.push_back({headOf(i, d), ns, tailOf(i, d)});
  };
  for (int32_t i = 0; i < instance.numNodes; ++i)
    if (isOn(i, d))
      add(certain, i);
  jobs = certain;
  int64_t alone = oneMachineBound(jobs);
  if (alone >= cutoff)
    return false;
  bound = std::max(bound, alone);
  if (cutoff == never)
    return true;
  for (Unit u = 0; u < model.numUnits; ++u) {
    DeviceSet set = (*domains)[u];
    if (!(set >> d & 1) || (set & (set - 1)) == 0)
      continue;
    jobs = certain;
    for (int32_t i : model.members[u])
      add(jobs, i);
    if (oneMachineBound(jobs) >= cutoff && !remove(u, d))
      return false;
  }
  return true;
}

bool Windows::machines() {
  for (int32_t d = 0; d < numDevices; ++d)
    if (!machine(d))
      return false;
  return true;
}

/// Operators that only the devices of a set can run, as identical machines
/// (Carlier, "Scheduling jobs with release dates and tails on identical
/// machines", 1987): these start at the smallest heads, stop before the
/// smallest tails, and the work between is at least the least times.
bool Windows::sharedWork() {
  auto all = (DeviceSet(1) << numDevices) - 1;
  constexpr int32_t fewDevices = 4;
  DeviceSet first = numDevices <= fewDevices ? 1 : all;
  for (DeviceSet set = first; set <= all; ++set) {
    auto machines = static_cast<size_t>(__builtin_popcount(set));
    if (machines < 2)
      continue;
    headsOfSet.clear();
    tailsOfSet.clear();
    __int128 sum = 0;
    for (int32_t i = 0; i < instance.numNodes; ++i) {
      if (of(i) & ~set)
        continue;
      int64_t ns = shortest(i);
      sum += ns;
      if (objective == Objective::MaxLoad || ns == 0)
        continue;
      int64_t h = never, t = never;
      forEachBit(of(i), [&](int32_t d) {
        h = std::min(h, headOf(i, d));
        t = std::min(t, tailOf(i, d));
      });
      headsOfSet.push_back(h);
      tailsOfSet.push_back(t);
    }
    if (objective == Objective::Makespan) {
      // Fewer operators than devices never use more devices than they are.
      machines = std::min(machines, headsOfSet.size());
      std::sort(headsOfSet.begin(), headsOfSet.end());
      std::sort(tailsOfSet.begin(), tailsOfSet.end());
      for (size_t k = 0; k < machines; ++k)
        sum += headsOfSet[k] + tailsOfSet[k];
    }
    if (machines == 0)
      continue;
    auto count = static_cast<__int128>(machines);
    bound = std::max(bound, static_cast<int64_t>((sum + count - 1) / count));
  }
  return bound < cutoff;
}

/// The transfers of \p tensor that are certain, in the lists of what carries
/// them. With a third device a copy may come from there instead; a pipeline's
/// load has it come the model's way. False when there is no way: of what
/// `machines` has decided `paths` knows nothing yet.
bool Windows::addTransfers(int32_t t, std::vector<std::vector<Job>> &out,
                           std::vector<std::vector<Job>> &in,
                           std::vector<std::vector<Job>> &pair) {
  int32_t source = model.producer[t];
  if (!fixed(source))
    return true;
  int32_t home = __builtin_ctz(of(source));
  int64_t head = 0;
  if (objective == Objective::Makespan)
    head = headOf(source, home) + model.timeOf(source, home);
  std::vector<int64_t> tailAt(numDevices, -1);
  forEachBit(instance.users[t], [&](int32_t user) {
    if (!fixed(user) || isOn(user, home))
      return;
    int32_t d = __builtin_ctz(of(user));
    int64_t tail = 0;
    if (objective == Objective::Makespan)
      tail = tailOf(user, d) + model.timeOf(user, d);
    tailAt[d] = std::max(tailAt[d], tail);
  });
  for (int32_t d = 0; d < numDevices; ++d)
    if (tailAt[d] >= 0 && !model.reaches(home, d))
      return false;
  if (objective == Objective::MaxLoad || numDevices == 2) {
    std::vector<uint8_t> counted(numDevices, 0);
    for (int32_t d = 0; d < numDevices; ++d) {
      int32_t to = tailAt[d] < 0 ? home : d;
      while (to != home && !counted[to]) {
        counted[to] = 1;
        int32_t from = model.hopBefore(home, to);
        Job job{head, model.transferNs(t, from, to), tailAt[d]};
        out[from].push_back(job);
        in[to].push_back(job);
        pair[from * numDevices + to].push_back(job);
        to = from;
      }
    }
    return true;
  }
  int64_t leastOut = never, throughOut = -1;
  for (int32_t d = 0; d < numDevices; ++d) {
    if (d != home && model.linked(home, d))
      leastOut = std::min(leastOut, model.transferNs(t, home, d));
    if (tailAt[d] < 0)
      continue;
    // The last hop into the device, and the first one out of home.
    Job last{never, never, tailAt[d]};
    for (int32_t e = 0; e < numDevices; ++e)
      if (int64_t ns = instance.pathNs(t, home, e);
          e != d && ns != never && model.linked(e, d)) {
        last.head = std::min(last.head, head + ns);
        last.length = std::min(last.length, model.transferNs(t, e, d));
      }
    in[d].push_back(last);
    throughOut = std::max(throughOut, instance.pathNs(t, home, d) + tailAt[d]);
  }
  if (throughOut >= 0)
    out[home].push_back({head, leastOut, throughOut - leastOut});
  return true;
}

/// What the link model makes exclusive, one transfer at a time.
bool Windows::links() {
  LinkModel kind = model.machine->linkModel;
  if (kind == LinkModel::Unlimited || numDevices < 2)
    return true;
  std::vector<std::vector<Job>> out(numDevices), in(numDevices);
  std::vector<std::vector<Job>> pair(static_cast<size_t>(numDevices) *
                                     numDevices);
  for (int32_t t : instance.tensors)
    if (!addTransfers(t, out, in, pair))
      return false;
  auto raise = [&](std::vector<Job> &jobs) {
    bound = std::max(bound, oneMachineBound(jobs));
  };
  switch (kind) {
  case LinkModel::Unlimited:
    break;
  case LinkModel::Parallel:
    for (auto &jobs : pair)
      raise(jobs);
    break;
  case LinkModel::Duplex:
    for (auto &jobs : out)
      raise(jobs);
    for (auto &jobs : in)
      raise(jobs);
    break;
  case LinkModel::Sequential:
    for (int32_t d = 0; d < numDevices; ++d) {
      out[d].insert(out[d].end(), in[d].begin(), in[d].end());
      raise(out[d]);
    }
    break;
  }
  return bound < cutoff;
}

/// Bytes on \p d while operator \p i runs there, at the least.
int64_t Windows::footprint(int32_t i, int32_t d) const {
  int64_t bytes = model.scratch[i] + instance.outputBytes[i];
  auto surelyOn = [&](int32_t node) {
    return isOn(node, d) || model.unit[node] == model.unit[i];
  };
  for (int32_t t : aliveWith[i]) {
    int32_t source = model.producer[t];
    bool reads = instance.users[t] >> i & 1;
    bool isSourceHere = surelyOn(source);
    if (isSourceHere) {
      bool held = reads || model.keepsOutputs[source];
      forEachBit(instance.users[t] & instance.after[i],
                 [&](int32_t user) { held |= surelyOn(user); });
      bytes += held ? model.memory[t] : 0;
    } else if (reads) {
      bool never = !(of(source) >> d & 1);
      bytes += never ? model.copy[t] : std::min(model.memory[t], model.copy[t]);
    }
  }
  return bytes;
}

/// Resident bytes and results of what is certain, and what must be there while
/// an operator runs.
bool Windows::memory() {
  std::vector<int64_t> certain(numDevices, 0), kept(numDevices, 0);
  for (int32_t i = 0; i < instance.numNodes; ++i)
    for (int32_t d = 0; d < numDevices; ++d)
      if (isOn(i, d)) {
        certain[d] += model.resident[i];
        // Without a duration it may be the very end of the step.
        if (model.keepsOutputs[i] && model.timeOf(i, d) > 0)
          kept[d] += instance.outputBytes[i];
      }
  for (int32_t d = 0; d < numDevices; ++d)
    if (certain[d] + kept[d] > model.deviceMemory(d))
      return false;
  for (Unit u = 0; u < model.numUnits; ++u) {
    DeviceSet set = (*domains)[u];
    bool single = (set & (set - 1)) == 0;
    forEachBit(set, [&](int32_t d) {
      int64_t room = model.deviceMemory(d) - certain[d] -
                     (single ? 0 : model.unitResident[u]);
      bool fits = room >= 0;
      for (int32_t i : model.members[u])
        fits &= model.timeOf(i, d) == 0 || footprint(i, d) <= room;
      if (!fits)
        remove(u, d);
    });
    if (empty)
      return false;
  }
  // What is left over must go in somewhere.
  __int128 room = 0, need = 0;
  for (int32_t d = 0; d < numDevices; ++d)
    room += model.deviceMemory(d);
  for (int32_t i = 0; i < instance.numNodes; ++i)
    need += model.resident[i];
  return need <= room;
}

bool Windows::narrow(Domains &of, int64_t below, int64_t &lowerBound) {
  domains = &of;
  cutoff = below;
  bound = lowerBound;
  empty = false;
  do {
    changed = false;
    bool possible = (!instance.memoryMatters || memory()) && paths() &&
                    machines() && links() && sharedWork();
    lowerBound = bound;
    if (!possible || bound >= cutoff)
      return false;
  } while (changed);
  return true;
}
