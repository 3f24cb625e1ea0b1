//===- Explain.cpp - Why an operator is where it is -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Explain.h"
#include "Baechi/Placement/Study/Critical.h"
#include "Memory/Memory.h"
#include "Study/Occupancy.h"
#include "Study/Why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::study;

class Explainer::Implementation {
public:
  Implementation(const Problem &problem, const Placement &placement,
                 const ExplainOptions &options);
  Explanation explain(int32_t op);
  SetExplanation explainSet(std::span<const int32_t> ops);

private:
  struct Exclusion {
    Limit limit = Limit::None;
    std::string reason;
  };
  /// The step with some units moved.
  struct Moved {
    std::optional<int64_t> makespan, maxLoad;
  };

  const Operator &op(int32_t i) const { return problem.graph.ops[i]; }
  const std::string &deviceName(int32_t d) const {
    return problem.machine.devices[d].name;
  }
  int64_t end(int32_t i) const {
    return placement.startNs[i] + model.timeOf(i, placement.device[i]);
  }
  Exclusion exclusionOf(Unit u, int32_t i, int32_t d) const;
  Exclusion missingLink(const std::vector<uint8_t> &moves, Unit u,
                        int32_t d) const;
  void arrival(int32_t i, DeviceChoice &choice) const;
  int64_t needed(int32_t i, int32_t d, int64_t start) const;
  int64_t levelDuring(int32_t d, int64_t start, int64_t length) const;
  void memory(int32_t i, DeviceChoice &choice) const;
  Moved move(const std::vector<uint8_t> &moves, int32_t d);
  const Transfer *transferTo(int32_t tensor, int32_t d) const;
  int64_t lastUse(int32_t tensor, int32_t d) const;

  const Problem &problem;
  const Placement &placement;
  ExplainOptions options;
  Model model;
  Scheduler scheduler;
  Critical critical;
  LinkOccupancy links;
  std::vector<Occupancy> devices;
  std::vector<std::vector<MemoryLevel>> levels;
  /// (tensor, device) -> transfer
  std::map<std::pair<int32_t, int32_t>, const Transfer *> transfers;
  /// The placement's own order, for scheduling again.
  std::vector<std::vector<int64_t>> priorities;
  std::optional<int64_t> again;
};

Explainer::Implementation::Implementation(const Problem &problem,
                                          const Placement &placement,
                                          const ExplainOptions &options)
    : problem(problem), placement(placement), options(options), model(problem),
      scheduler(model), critical(criticalParts(problem, placement)),
      links(problem.machine, placement), devices(model.numDevices),
      levels(memoryOverTime(problem, placement)) {
  for (int32_t i = 0; i < model.numNodes; ++i)
    devices[placement.device[i]].add({placement.startNs[i], end(i), i});
  for (Occupancy &device : devices)
    device.sort();
  for (const Transfer &t : placement.transfers)
    transfers[{model.firstTensor[t.op] + t.output, t.to}] = &t;
  auto &priority = priorities.emplace_back();
  for (int64_t start : placement.startNs)
    priority.push_back(placement.makespanNs - start);
  if (options.reschedule && model.numNodes > 0)
    again = move({}, 0).makespan;
}

/// Why operator \p i of unit \p u cannot be on \p d whatever the others do.
Explainer::Implementation::Exclusion
Explainer::Implementation::exclusionOf(Unit u, int32_t i, int32_t d) const {
  if (model.mayUse(u, d))
    return {};
  const std::string &kind = problem.machine.devices[d].kind;
  if (model.timeOf(i, d) < 0)
    return {Limit::Kind, fmt::format("it has no time for the kind '{}'", kind)};
  if (op(i).pin && *op(i).pin != deviceName(d))
    return {Limit::Pin, fmt::format("it is pinned to {}", *op(i).pin)};
  for (int32_t other : model.members[u]) {
    if (model.timeOf(other, d) < 0)
      return {Limit::Group,
              fmt::format("'{}' of its group '{}' has no time for the kind "
                          "'{}'",
                          op(other).name, *op(i).group, kind)};
    if (op(other).pin && *op(other).pin != deviceName(d))
      return {Limit::Group,
              fmt::format("its group '{}' is pinned to {} by '{}'",
                          *op(i).group, *op(other).pin, op(other).name)};
  }
  return {};
}

/// A device that does not move and that unit \p u could not talk to from
/// \p d.
Explainer::Implementation::Exclusion
Explainer::Implementation::missingLink(const std::vector<uint8_t> &moves,
                                       Unit u, int32_t d) const {
  Exclusion found;
  for (int32_t i : model.members[u]) {
    auto ends = [&](int32_t other) {
      return moves[model.unit[other]] ? d : placement.device[other];
    };
    // Data may come over other devices, a control signal needs a link.
    auto from = [&](int32_t source, bool isData) {
      int32_t e = ends(source);
      if (e != d && !(isData ? model.reaches(e, d) : model.linked(e, d)))
        found = {Limit::Link,
                 fmt::format("there is no link to it from {}, where '{}' is",
                             deviceName(e), op(source).name)};
    };
    auto to = [&](int32_t user, bool isData) {
      int32_t e = ends(user);
      if (e != d && !(isData ? model.reaches(d, e) : model.linked(d, e)))
        found = {Limit::Link,
                 fmt::format("there is no link from it to {}, where '{}' is",
                             deviceName(e), op(user).name)};
    };
    for (int32_t t : model.operands[i])
      from(model.producer[t], true);
    for (int32_t source : model.controlSources[i])
      from(source, false);
    auto [first, last] = model.tensorsOf(i);
    for (int32_t t = first; t < last; ++t)
      for (int32_t user : model.users[t])
        to(user, true);
    for (int32_t user : model.controlUsers[i])
      to(user, false);
    if (found.limit != Limit::None)
      break;
  }
  return found;
}

const Transfer *Explainer::Implementation::transferTo(int32_t tensor,
                                                      int32_t d) const {
  auto it = transfers.find({tensor, d});
  return it == transfers.end() ? nullptr : it->second;
}

/// When everything that \p i waits for would be on the choice's device. What
/// its group produces moves with it.
void Explainer::Implementation::arrival(int32_t i, DeviceChoice &choice) const {
  int32_t d = choice.device;
  auto arrives = [&](int64_t at, int32_t source, int32_t output, int32_t from) {
    if (choice.lastOperand >= 0 && at <= choice.arrivalNs)
      return;
    choice.arrivalNs = at;
    choice.lastOperand = source;
    choice.lastOutput = output;
    choice.lastFrom = from;
  };
  auto isHere = [&](int32_t source) {
    return placement.device[source] == d || model.unit[source] == model.unit[i];
  };
  std::vector<std::pair<int64_t, int32_t>> toMove; // (ready, tensor)
  for (int32_t t : model.operands[i]) {
    int32_t source = model.producer[t];
    int32_t output = t - model.firstTensor[source];
    if (isHere(source))
      arrives(end(source), source, output, d);
    else if (const Transfer *moved = transferTo(t, d))
      arrives(moved->endNs, source, output, moved->from);
    else
      toMove.emplace_back(end(source), t);
  }
  std::sort(toMove.begin(), toMove.end());
  std::vector<Occupancy::Span> booked;
  for (auto [ready, t] : toMove) {
    int32_t source = model.producer[t], home = placement.device[source];
    // From the first device on the way, seen from here, that has it.
    std::vector<int32_t> way{d};
    int64_t there = ready;
    int32_t from = home;
    for (int32_t at = model.hopBefore(home, d); at != home;
         at = model.hopBefore(home, at)) {
      if (const Transfer *moved = transferTo(t, at)) {
        there = moved->endNs;
        from = at;
        break;
      }
      way.push_back(at);
    }
    for (; !way.empty(); way.pop_back()) {
      int32_t to = way.back();
      int64_t length = model.transferNs(t, from, to);
      there =
          links.firstGap(from, to, there, length,
                         to == d ? booked : std::vector<Occupancy::Span>()) +
          length;
      if (to == d)
        booked.push_back({there - length, there, from});
      else
        from = to;
    }
    arrives(there, source, t - model.firstTensor[source], from);
  }
  for (int32_t source : model.controlSources[i]) {
    int32_t from = placement.device[source];
    if (isHere(source))
      arrives(end(source), source, -1, d);
    else
      arrives(end(source) + model.latencyNs(from, d), source, -1, from);
  }
}

/// The end of the last use of a tensor's copy on a device.
int64_t Explainer::Implementation::lastUse(int32_t tensor, int32_t d) const {
  int64_t last = 0;
  for (int32_t user : model.users[tensor])
    if (placement.device[user] == d)
      last = std::max(last, end(user));
  return last;
}

/// The bytes that operator \p i brings to a device when it starts there.
int64_t Explainer::Implementation::needed(int32_t i, int32_t d,
                                          int64_t start) const {
  int64_t bytes = model.unitResident[model.unit[i]];
  auto [begin, last] = model.tensorsOf(i);
  bool takesTime = model.timeOf(i, d) > 0;
  for (int32_t t = begin; t < last; ++t)
    if (takesTime || model.keepsOutputs[i] || !model.users[t].empty())
      bytes += model.memory[t];
  // Intervals are half open: what takes no time holds nothing for its sake.
  if (!takesTime)
    return bytes;
  bytes += model.scratch[i];
  for (int32_t t : model.operands[i]) {
    int32_t source = model.producer[t];
    if (placement.device[source] == d || model.unit[source] == model.unit[i])
      continue;
    const Transfer *there = transferTo(t, d);
    bool others = std::any_of(
        model.users[t].begin(), model.users[t].end(), [&](int32_t user) {
          return user != i && placement.device[user] == d && end(user) > start;
        });
    if (!there || there->startNs > start || !others)
      bytes += model.copy[t];
  }
  return bytes;
}

int64_t Explainer::Implementation::levelDuring(int32_t d, int64_t start,
                                               int64_t length) const {
  const auto &steps = levels[d];
  auto it = std::upper_bound(
      steps.begin(), steps.end(), start,
      [](int64_t at, const MemoryLevel &step) { return at < step.atNs; });
  int64_t level = it == steps.begin() ? 0 : std::prev(it)->bytes;
  for (; it != steps.end() && it->atNs < start + length; ++it)
    level = std::max(level, it->bytes);
  return level;
}

void Explainer::Implementation::memory(int32_t i, DeviceChoice &choice) const {
  int32_t d = choice.device;
  bool own = placement.device[i] == d;
  // Where it is, its own bytes are part of the level.
  int64_t start = own ? placement.startNs[i] : choice.startNs;
  choice.neededBytes = needed(i, d, start);
  choice.freeBytes =
      model.deviceMemory(d) - levelDuring(d, start, choice.timeNs);
  if (own)
    choice.freeBytes += choice.neededBytes;
}

/// Schedules the step with the marked units (all, where the list is empty:
/// none) on \p d.
Explainer::Implementation::Moved
Explainer::Implementation::move(const std::vector<uint8_t> &moves, int32_t d) {
  Assignment device = placement.device;
  if (!moves.empty())
    for (int32_t i = 0; i < model.numNodes; ++i)
      if (moves[model.unit[i]])
        device[i] = d;
  Moved result;
  Schedule schedule;
  if (memory::scheduleWithin(scheduler, model, device, schedule, priorities)) {
    result.makespan = schedule.makespan;
    result.maxLoad = maxLoad(model, device);
  }
  return result;
}

Explanation Explainer::Implementation::explain(int32_t i) {
  Explanation e;
  Unit unit = model.unit[i];
  e.op = i;
  e.device = placement.device[i];
  e.startNs = placement.startNs[i];
  e.timeNs = model.timeOf(i, e.device);
  e.groupSize = static_cast<int32_t>(model.members[unit].size());
  e.critical = critical.op[i] != 0;
  e.objective = options.objective;
  e.makespanNs = placement.makespanNs;
  e.maxLoadNs = maxLoad(model, placement);
  e.againNs = again;
  std::vector<uint8_t> moves(model.numUnits, 0);
  moves[unit] = 1;
  for (int32_t d = 0; d < model.numDevices; ++d) {
    DeviceChoice choice;
    choice.device = d;
    Exclusion exclusion = exclusionOf(unit, i, d);
    if (exclusion.limit == Limit::None)
      exclusion = missingLink(moves, unit, d);
    choice.limit = exclusion.limit;
    choice.reason = std::move(exclusion.reason);
    if (choice.limit == Limit::None) {
      choice.timeNs = model.timeOf(i, d);
      arrival(i, choice);
      Occupancy::Gap gap =
          devices[d].firstGap(choice.arrivalNs, choice.timeNs, i);
      choice.startNs = gap.start;
      choice.occupant = gap.after;
      memory(i, choice);
      bool fits = choice.neededBytes <= choice.freeBytes;
      if (d == e.device) {
        choice.makespanNs = e.makespanNs;
        choice.maxLoadNs = e.maxLoadNs;
      } else if (options.reschedule) {
        Moved moved = move(moves, d);
        choice.makespanNs = moved.makespan;
        choice.maxLoadNs = moved.maxLoad;
        fits = moved.makespan.has_value();
      }
      if (!fits && d != e.device) {
        choice.limit = Limit::Memory;
        choice.reason = memoryReason(choice, e.groupSize);
      }
    }
    e.devices.push_back(std::move(choice));
  }
  e.why = why(problem, e);
  return e;
}

SetExplanation
Explainer::Implementation::explainSet(std::span<const int32_t> ops) {
  SetExplanation e;
  e.operators = static_cast<int32_t>(ops.size());
  e.objective = options.objective;
  e.makespanNs = placement.makespanNs;
  e.maxLoadNs = maxLoad(model, placement);
  e.againNs = again;
  e.devices.resize(model.numDevices);
  std::vector<uint8_t> moves(model.numUnits, 0);
  for (int32_t i : ops) {
    moves[model.unit[i]] = 1;
    auto &here = e.devices[placement.device[i]];
    ++here.operators;
    here.timeNs += model.timeOf(i, placement.device[i]);
  }
  for (int32_t d = 0; d < model.numDevices; ++d) {
    Exclusion exclusion;
    for (int32_t i : ops) {
      Unit u = model.unit[i];
      exclusion = exclusionOf(u, i, d);
      if (exclusion.limit == Limit::None)
        exclusion = missingLink(moves, u, d);
      if (exclusion.limit != Limit::None) {
        exclusion.reason =
            fmt::format("'{}': {}", op(i).name, exclusion.reason);
        break;
      }
    }
    auto &choice = e.devices[d];
    if (exclusion.limit == Limit::None && options.reschedule) {
      Moved moved = move(moves, d);
      choice.makespanNs = moved.makespan;
      choice.maxLoadNs = moved.maxLoad;
      if (!moved.makespan)
        exclusion = {Limit::Memory, "no order of the step fits the memories"};
    }
    choice.limit = exclusion.limit;
    choice.reason = std::move(exclusion.reason);
  }
  return e;
}

Explainer::Explainer(const Problem &problem, const Placement &placement,
                     const ExplainOptions &options)
    : implementation(
          std::make_unique<Implementation>(problem, placement, options)) {}
Explainer::~Explainer() = default;

Explanation Explainer::explain(int32_t op) {
  return implementation->explain(op);
}

SetExplanation Explainer::explainSet(std::span<const int32_t> ops) {
  return implementation->explainSet(ops);
}
