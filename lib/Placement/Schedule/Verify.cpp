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

#include "Baechi/Placement/Schedule/Verify.h"
#include "Schedule/ReplayedLinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>

using namespace baechi::placement;

namespace {

/// A tensor on one device: complete there from `from`, last used at `lastUse`.
struct Holding {
  int64_t from;
  int64_t lastUse;
};

/// A copy of a tensor; `next` is another one of it.
struct Copy {
  Holding held;
  int32_t device;
  int32_t next;
};

/// Bytes taken or given back at a time.
struct MemoryEvent {
  int64_t at;
  int64_t bytes;
  bool operator<(const MemoryEvent &other) const { return at < other.at; }
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
  size_t tensor(int32_t op, int32_t output) const {
    return firstTensor[op] + output;
  }
  Holding *holding(int32_t op, int32_t output, int32_t device);
  template <typename Items, typename ProducerOf>
  void fetchAhead(const Items &items, size_t at, ProducerOf producerOf) const;
  std::string nameOf(const Transfer &t) const;
  std::string nameOf(const Span &span) const;
  int64_t end(size_t op) const { return placement.startNs[op] + time[op]; }
  void exclusive(std::vector<Span> spans, const std::string &where);
  void follow(int32_t d, std::span<const MemoryEvent> taken,
              std::span<const MemoryEvent> given);

  const Graph &graph;
  const Machine &machine;
  const Placement &placement;
  bool keepLevels;
  int32_t numDevices;
  std::vector<int64_t> time;
  std::vector<size_t> firstTensor;
  std::vector<Holding> produced;  ///< per tensor, where it is made
  std::vector<int32_t> firstCopy; ///< per tensor, into `copied`; < 0: none
  std::vector<Copy> copied;
  std::vector<Transfer> copies; ///< the valid transfers, in order of start
  int64_t endOfStep = 0;
};

/// A tensor on a device; nullptr: it never comes there.
Holding *Replay::holding(int32_t op, int32_t output, int32_t device) {
  size_t t = tensor(op, output);
  if (placement.device[op] == device)
    return &produced[t];
  for (int32_t c = firstCopy[t]; c >= 0; c = copied[c].next)
    if (copied[c].device == device)
      return &copied[c].held;
  return nullptr;
}

/// A list is gone through from the front, what its items ask of operators is
/// anywhere: the processor may bring what those further on will ask, first of
/// the producer, then of its tensors.
template <typename Items, typename ProducerOf>
void Replay::fetchAhead(const Items &items, size_t at,
                        ProducerOf producerOf) const {
  constexpr size_t near = 12, far = 24;
  auto producer = [&](size_t k) -> int32_t {
    int32_t op = k < items.size() ? producerOf(items[k]) : -1;
    return op < static_cast<int64_t>(graph.ops.size()) ? op : -1;
  };
  if (int32_t op = producer(at + far); op >= 0) {
    __builtin_prefetch(&graph.ops[op].outputs);
    __builtin_prefetch(&firstTensor[op]);
    __builtin_prefetch(&placement.device[op]);
  }
  if (int32_t op = producer(at + near);
      op >= 0 && firstTensor[op] < firstTensor[op + 1]) {
    __builtin_prefetch(graph.ops[op].outputs.data());
    __builtin_prefetch(&produced[firstTensor[op]], /*rw=*/1);
    __builtin_prefetch(&firstCopy[firstTensor[op]], /*rw=*/1);
  }
}

std::string Replay::nameOf(const Transfer &t) const {
  return fmt::format("{}:{} {}->{}", graph.ops[t.op].name, t.output,
                     deviceName(t.from), deviceName(t.to));
}

std::string Replay::nameOf(const Span &span) const {
  return span.transfer < 0 ? graph.ops[span.op].name
                           : nameOf(copies[span.transfer]);
}

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
      report("two at once on {}: {} [{}, {}) and {} [{}, {})", where, nameOf(a),
             a.start, a.end, nameOf(b), b.start, b.end);
  }
}

void Replay::operators() {
  std::vector<std::vector<Span>> rows(numDevices);
  produced.resize(firstTensor.back());
  firstCopy.resize(firstTensor.back(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    int32_t d = placement.device[i];
    rows[d].push_back(
        {placement.startNs[i], end(i), static_cast<int32_t>(i), -1});
    devices[d].busyNs += time[i];
    ++devices[d].operators;
    endOfStep = std::max(endOfStep, end(i));
    for (size_t t = firstTensor[i]; t < firstTensor[i + 1]; ++t)
      produced[t] = {end(i), end(i)};
  }
  for (int32_t d = 0; d < numDevices; ++d)
    exclusive(std::move(rows[d]), deviceName(d));
}

void Replay::constraints() {
  std::unordered_map<std::string_view, size_t> first;
  first.reserve(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Operator &op = graph.ops[i];
    if (const std::string &device = deviceName(placement.device[i]);
        op.pin && *op.pin != device)
      report("pin: {} is pinned to {} and placed on {}", op.name, *op.pin,
             device);
    if (!op.group)
      continue;
    size_t other = first.try_emplace(*op.group, i).first->second;
    if (placement.device[other] != placement.device[i])
      report("group: {} has {} on {} and {} on {}", *op.group,
             graph.ops[other].name, deviceName(placement.device[other]),
             op.name, deviceName(placement.device[i]));
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
  ReplayedLinks links(machine);
  for (size_t k = 0; k < sorted.size(); ++k) {
    fetchAhead(sorted, k, [](const Transfer &t) { return t.op; });
    const Transfer &t = sorted[k];
    if (t.op < 0 || static_cast<size_t>(t.op) >= graph.ops.size() ||
        t.output < 0 ||
        static_cast<size_t>(t.output) >= graph.ops[t.op].outputs.size() ||
        !validDevice(t.from) || !validDevice(t.to) || t.from == t.to) {
      report("unknown transfer: operator {} output {} from device {} to {}",
             t.op, t.output, t.from, t.to);
      continue;
    }
    int64_t bytes = graph.ops[t.op].outputs[t.output].bytes;
    endOfStep = std::max(endOfStep, t.endNs);
    const std::optional<Link> &link = machine.link(t.from, t.to);
    if (!link)
      report("no link: {}", nameOf(t));
    else if (t.endNs - t.startNs < link->transferNs(bytes))
      report("too fast: {} takes {} ns, its link needs {}", nameOf(t),
             t.endNs - t.startNs, link->transferNs(bytes));
    Holding *source = holding(t.op, t.output, t.from);
    if (!source || source->from > t.startNs)
      report("transfer before its tensor is there: {} at {} ns", nameOf(t),
             t.startNs);
    else
      source->lastUse = std::max(source->lastUse, t.endNs);
    if (holding(t.op, t.output, t.to)) {
      report("moved twice: {}", nameOf(t));
      continue;
    }
    int32_t &first = firstCopy[tensor(t.op, t.output)];
    copied.push_back({{t.endNs, t.endNs}, t.to, first});
    first = static_cast<int32_t>(copied.size()) - 1;
    Span span{t.startNs, t.endNs, -1, static_cast<int32_t>(copies.size())};
    copies.push_back(t);
    devices[t.from].sentBytes += bytes;
    links.occupy(t.from, t.to, span);
  }
  for (ReplayedLinks::Resource &resource : std::move(links).byName())
    exclusive(std::move(resource.spans), resource.name);
}

void Replay::edges() {
  for (size_t k = 0; k < graph.edges.size(); ++k) {
    fetchAhead(graph.edges, k, [](const Edge &edge) { return edge.from; });
    const Edge &edge = graph.edges[k];
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
    Holding *operand = holding(edge.from, edge.output, b);
    if (!operand)
      report("never moved: {}:{} to {} on {}", from.name, edge.output, to.name,
             deviceName(b));
    else if (start < operand->from)
      report("before its operand: {} starts at {} ns, {}:{} is there at {}",
             to.name, start, from.name, edge.output, operand->from);
    else
      operand->lastUse = std::max(operand->lastUse, end(edge.to));
  }
}

void Replay::memory() {
  std::vector<std::vector<MemoryEvent>> taken(numDevices), given(numDevices);
  auto hold = [&](int32_t d, int64_t from, int64_t until, int64_t bytes) {
    if (bytes == 0 || until <= from)
      return;
    taken[d].push_back({from, bytes});
    given[d].push_back({until, bytes});
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Operator &op = graph.ops[i];
    int32_t d = placement.device[i];
    int64_t start = placement.startNs[i];
    devices[d].residentBytes += op.resident;
    hold(d, start, end(i), op.scratch);
    for (size_t k = 0; k < op.outputs.size(); ++k)
      hold(d, start,
           op.result ? endOfStep : produced[firstTensor[i] + k].lastUse,
           op.outputs[k].memory);
  }
  for (size_t k = 0; k < copies.size(); ++k) {
    fetchAhead(copies, k, [](const Transfer &t) { return t.op; });
    const Transfer &t = copies[k];
    hold(t.to, t.startNs, holding(t.op, t.output, t.to)->lastUse,
         graph.ops[t.op].outputs[t.output].copy);
  }
  levels.resize(numDevices);
  for (int32_t d = 0; d < numDevices; ++d) {
    std::sort(taken[d].begin(), taken[d].end());
    std::sort(given[d].begin(), given[d].end());
    follow(d, taken[d], given[d]);
    const DeviceUsage &device = devices[d];
    if (device.peakBytes > machine.devices[d].memory)
      report("memory: {} needs {} bytes at {} ns, {} available", deviceName(d),
             device.peakBytes, device.peakAtNs, machine.devices[d].memory);
  }
}

/// The level of a device over time. Half open: what is given back at a time
/// makes room at that time.
void Replay::follow(int32_t d, std::span<const MemoryEvent> taken,
                    std::span<const MemoryEvent> given) {
  DeviceUsage &device = devices[d];
  int64_t level = device.peakBytes = device.residentBytes;
  auto &steps = levels[d];
  auto note = [&](int64_t at) {
    if (!keepLevels)
      return;
    if (steps.empty() || steps.back().atNs < at)
      steps.push_back({at, level});
    steps.back().bytes = level;
  };
  note(0);
  auto back = given.begin();
  auto giveBack = [&](int64_t until) {
    for (; back != given.end() && back->at <= until; ++back) {
      level -= back->bytes;
      note(back->at);
    }
  };
  for (const MemoryEvent &event : taken) {
    giveBack(event.at);
    level += event.bytes;
    note(event.at);
    if (level > device.peakBytes) {
      device.peakBytes = level;
      device.peakAtNs = event.at;
    }
  }
  giveBack(std::numeric_limits<int64_t>::max());
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

std::vector<std::string>
baechi::placement::verify(const Problem &problem, const Placement &placement,
                          std::vector<DeviceUsage> *usage) {
  Replay result = replay(problem, placement);
  if (usage)
    *usage = std::move(result.devices);
  return std::move(result.violations);
}
