//===- Verify.cpp - Replays a placement -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `verify`, `usage` and `memoryOverTime`: the rules of docs/formats.md
/// replayed on the problem itself. Shares nothing with the scheduler, so that
/// neither can hide a mistake of the other.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Placement.h"
#include "Model/Support.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

using namespace baechi::placement;

namespace {

/// A tensor on one device: complete there from `from`, last used at `lastUse`.
struct Holding {
  int64_t from = -1;
  int64_t lastUse = -1;
  bool present() const { return from >= 0; }
};

struct Span {
  int64_t start;
  int64_t end;
  std::string name;
};

/// Memory taken (delta > 0) or given back at a time.
struct MemoryEvent {
  int64_t at;
  int64_t delta;
};

class Replay {
public:
  Replay(const Problem &problem, const Placement &placement, bool keepLevels)
      : graph(problem.graph), machine(problem.machine), placement(placement),
        keepLevels(keepLevels),
        numDevices(static_cast<int32_t>(problem.machine.devices.size())) {}

  /// True when the placement is complete enough to go on.
  bool shape();
  void operators();
  void constraints();
  void transfers();
  void edges();
  void memory();
  void makespan();

  std::vector<std::string> violations;
  std::vector<DeviceUsage> devices;
  std::vector<std::vector<MemoryLevel>> levels;

private:
  template <typename... Args>
  void report(fmt::format_string<Args...> format, Args &&...args) {
    violations.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool validDevice(int32_t d) const { return d >= 0 && d < numDevices; }
  const std::string &deviceName(int32_t d) const {
    return machine.devices[d].name;
  }
  Holding &holding(int32_t op, int32_t output, int32_t device) {
    return held[(firstTensor[op] + output) * numDevices + device];
  }
  int64_t end(size_t op) const { return placement.startNs[op] + time[op]; }
  void exclusive(std::vector<Span> spans, const std::string &where);

  const Graph &graph;
  const Machine &machine;
  const Placement &placement;
  bool keepLevels;
  int32_t numDevices;
  std::vector<int64_t> time;
  std::vector<size_t> firstTensor;
  std::vector<Holding> held;
  std::vector<Transfer> copies;
  int64_t endOfStep = 0;
};

bool Replay::shape() {
  size_t n = graph.ops.size();
  devices.resize(machine.devices.size());
  if (placement.device.size() != n || placement.startNs.size() != n) {
    report("shape: the graph has {} operators, the placement {} devices and {} "
           "starts",
           n, placement.device.size(), placement.startNs.size());
    return false;
  }
  time.resize(n);
  firstTensor.resize(n + 1);
  for (size_t i = 0; i < n; ++i) {
    const Operator &op = graph.ops[i];
    firstTensor[i + 1] = firstTensor[i] + op.outputs.size();
    int32_t d = placement.device[i];
    if (!validDevice(d)) {
      report("unknown device: {} is on device {} of {}", op.name, d,
             numDevices);
      continue;
    }
    auto cost = timeOn(op, machine.devices[d].kind);
    if (!cost)
      report("unsupported: {} cannot run on {} ({})", op.name, deviceName(d),
             machine.devices[d].kind);
    else
      time[i] = *cost;
    if (placement.startNs[i] < 0)
      report("negative start: {} starts at {} ns", op.name,
             placement.startNs[i]);
  }
  return violations.empty();
}

/// Spans of no length may be anywhere; the others may not overlap.
void Replay::exclusive(std::vector<Span> spans, const std::string &where) {
  std::erase_if(spans, [](const Span &span) { return span.end <= span.start; });
  std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) {
    return std::tie(a.start, a.end) < std::tie(b.start, b.end);
  });
  for (size_t k = 1; k < spans.size(); ++k) {
    const Span &a = spans[k - 1], &b = spans[k];
    if (b.start < a.end)
      report("two at once on {}: {} [{}, {}) and {} [{}, {})", where, a.name,
             a.start, a.end, b.name, b.start, b.end);
  }
}

void Replay::operators() {
  std::vector<std::vector<Span>> rows(numDevices);
  held.resize(firstTensor.back() * numDevices);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    int32_t d = placement.device[i];
    rows[d].push_back({placement.startNs[i], end(i), graph.ops[i].name});
    devices[d].busyNs += time[i];
    ++devices[d].operators;
    endOfStep = std::max(endOfStep, end(i));
    for (size_t k = 0; k < graph.ops[i].outputs.size(); ++k)
      holding(static_cast<int32_t>(i), static_cast<int32_t>(k), d) = {end(i),
                                                                      end(i)};
  }
  for (int32_t d = 0; d < numDevices; ++d)
    exclusive(std::move(rows[d]), deviceName(d));
}

void Replay::constraints() {
  std::unordered_map<std::string, size_t> first;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Operator &op = graph.ops[i];
    const std::string &device = deviceName(placement.device[i]);
    if (op.pin && *op.pin != device)
      report("pin: {} is pinned to {} and placed on {}", op.name, *op.pin,
             device);
    if (!op.group)
      continue;
    size_t other = first.try_emplace(*op.group, i).first->second;
    if (placement.device[other] != placement.device[i])
      report("group: {} has {} on {} and {} on {}", *op.group,
             graph.ops[other].name, deviceName(placement.device[other]),
             op.name, device);
  }
}

void Replay::transfers() {
  // Of transfers that take no time, one may pass on what the one before it in
  // the list has brought.
  std::vector<Transfer> sorted = placement.transfers;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Transfer &a, const Transfer &b) {
                     return a.startNs < b.startNs;
                   });
  // What a transfer occupies under the link model, by name.
  std::unordered_map<std::string, std::vector<Span>> occupied;
  for (const Transfer &t : sorted) {
    if (t.op < 0 || static_cast<size_t>(t.op) >= graph.ops.size() ||
        t.output < 0 ||
        static_cast<size_t>(t.output) >= graph.ops[t.op].outputs.size() ||
        !validDevice(t.from) || !validDevice(t.to) || t.from == t.to) {
      report("unknown transfer: operator {} output {} from device {} to {}",
             t.op, t.output, t.from, t.to);
      continue;
    }
    std::string name =
        fmt::format("{}:{} {}->{}", graph.ops[t.op].name, t.output,
                    deviceName(t.from), deviceName(t.to));
    int64_t bytes = graph.ops[t.op].outputs[t.output].bytes;
    endOfStep = std::max(endOfStep, t.endNs);
    const std::optional<Link> &link = machine.link(t.from, t.to);
    if (!link)
      report("no link: {}", name);
    else if (t.endNs - t.startNs < link->transferNs(bytes))
      report("too fast: {} takes {} ns, its link needs {}", name,
             t.endNs - t.startNs, link->transferNs(bytes));
    Holding &source = holding(t.op, t.output, t.from);
    if (!source.present() || source.from > t.startNs)
      report("transfer before its tensor is there: {} at {} ns", name,
             t.startNs);
    else
      source.lastUse = std::max(source.lastUse, t.endNs);
    Holding &target = holding(t.op, t.output, t.to);
    if (target.present()) {
      report("moved twice: {}", name);
      continue;
    }
    target = {t.endNs, t.endNs};
    copies.push_back(t);
    devices[t.from].sentBytes += bytes;
    Span span{t.startNs, t.endNs, name};
    const std::string &from = deviceName(t.from), &to = deviceName(t.to);
    switch (machine.linkModel) {
    case LinkModel::Unlimited:
      break;
    case LinkModel::Parallel:
      occupied["the link " + from + "->" + to].push_back(span);
      break;
    case LinkModel::Duplex:
      occupied["the outgoing side of " + from].push_back(span);
      occupied["the incoming side of " + to].push_back(span);
      break;
    case LinkModel::Sequential:
      occupied["the copy engine of " + from].push_back(span);
      occupied["the copy engine of " + to].push_back(span);
      break;
    }
  }
  std::vector<std::string> names;
  for (const auto &[name, spans] : occupied)
    names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string &name : names)
    exclusive(std::move(occupied[name]), name);
}

void Replay::edges() {
  for (const Edge &edge : graph.edges) {
    const Operator &from = graph.ops[edge.from], &to = graph.ops[edge.to];
    int32_t a = placement.device[edge.from], b = placement.device[edge.to];
    int64_t start = placement.startNs[edge.to];
    if (edge.output < 0) {
      if (a != b && !machine.link(a, b)) {
        report("no link: control edge {} -> {}", from.name, to.name);
        continue;
      }
      int64_t wait = a == b ? 0 : machine.link(a, b)->latencyNs;
      if (start < end(edge.from) + wait)
        report("control edge: {} starts at {} ns, {} allows {}", to.name, start,
               from.name, end(edge.from) + wait);
      continue;
    }
    Holding &operand = holding(edge.from, edge.output, b);
    if (!operand.present())
      report("never moved: {}:{} to {} on {}", from.name, edge.output, to.name,
             deviceName(b));
    else if (start < operand.from)
      report("before its operand: {} starts at {} ns, {}:{} is there at {}",
             to.name, start, from.name, edge.output, operand.from);
    else
      operand.lastUse = std::max(operand.lastUse, end(edge.to));
  }
}

void Replay::memory() {
  std::vector<std::vector<MemoryEvent>> events(numDevices);
  auto hold = [&](int32_t d, int64_t from, int64_t until, int64_t bytes) {
    if (bytes == 0 || until <= from)
      return;
    events[d].push_back({from, bytes});
    events[d].push_back({until, -bytes});
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Operator &op = graph.ops[i];
    int32_t d = placement.device[i];
    int64_t start = placement.startNs[i];
    devices[d].residentBytes += op.resident;
    hold(d, start, end(i), op.scratch);
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      int64_t last =
          holding(static_cast<int32_t>(i), static_cast<int32_t>(k), d).lastUse;
      hold(d, start, op.result ? endOfStep : last, op.outputs[k].memory);
    }
  }
  for (const Transfer &t : copies)
    hold(t.to, t.startNs, holding(t.op, t.output, t.to).lastUse,
         graph.ops[t.op].outputs[t.output].copy);
  levels.resize(numDevices);
  for (int32_t d = 0; d < numDevices; ++d) {
    // Half open: what is released at a time makes room at that time.
    std::sort(events[d].begin(), events[d].end(),
              [](const MemoryEvent &a, const MemoryEvent &b) {
                return std::tie(a.at, a.delta) < std::tie(b.at, b.delta);
              });
    DeviceUsage &device = devices[d];
    int64_t level = device.peakBytes = device.residentBytes;
    auto &steps = levels[d];
    if (keepLevels)
      steps.push_back({0, level});
    for (const MemoryEvent &event : events[d]) {
      level += event.delta;
      if (keepLevels) {
        if (steps.back().atNs < event.at)
          steps.push_back({event.at, level});
        steps.back().bytes = level;
      }
      if (level > device.peakBytes) {
        device.peakBytes = level;
        device.peakAtNs = event.at;
      }
    }
    if (device.peakBytes > machine.devices[d].memory)
      report("memory: {} needs {} bytes at {} ns, {} available", deviceName(d),
             device.peakBytes, device.peakAtNs, machine.devices[d].memory);
  }
}

void Replay::makespan() {
  if (placement.makespanNs != endOfStep)
    report("makespan: the placement says {} ns, the replay gives {}",
           placement.makespanNs, endOfStep);
}

Replay replay(const Problem &problem, const Placement &placement,
              bool keepLevels = false) {
  Replay result(problem, placement, keepLevels);
  if (!result.shape())
    return result;
  result.operators();
  result.constraints();
  result.transfers();
  result.edges();
  result.memory();
  result.makespan();
  return result;
}

} // namespace

std::vector<DeviceUsage> baechi::placement::usage(const Problem &problem,
                                                  const Placement &placement) {
  return replay(problem, placement).devices;
}

std::vector<std::vector<MemoryLevel>>
baechi::placement::memoryOverTime(const Problem &problem,
                                  const Placement &placement) {
  return replay(problem, placement, /*keepLevels=*/true).levels;
}

std::vector<std::string> baechi::placement::verify(const Problem &problem,
                                                   const Placement &placement) {
  return replay(problem, placement).violations;
}
