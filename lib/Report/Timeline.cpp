//===- Timeline.cpp - A placement over time ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Schedule/Verify.h"
#include "Baechi/Placement/Study/Critical.h"
#include "Baechi/Report/Draw.h"
#include "Baechi/Report/TraceEvents.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

/// Rows of transfers in one direction at one device: as many as overlap there.
class Lanes {
public:
  size_t take(int64_t start, int64_t end) {
    size_t lane = 0;
    while (lane < busyUntil.size() && busyUntil[lane] > start)
      ++lane;
    if (lane == busyUntil.size())
      busyUntil.push_back(0);
    busyUntil[lane] = end;
    return lane;
  }
  size_t count() const { return busyUntil.size(); }

private:
  std::vector<int64_t> busyUntil;
};

class TimelineWriter {
public:
  TimelineWriter(const Problem &problem, const Placement &placement)
      : problem(problem), placement(placement),
        critical(criticalParts(problem, placement)), outLanes(numDevices()),
        inLanes(numDevices()) {}

  std::string run() {
    assignLanes();
    for (int32_t d = 0; d < numDevices(); ++d)
      writeRows(d);
    for (int32_t i = 0; i < numOperators(); ++i)
      writeOperator(i);
    for (size_t k = 0; k < placement.transfers.size(); ++k)
      writeTransfer(k);
    writeMemory();
    return events.take();
  }

private:
  int32_t numOperators() const {
    return static_cast<int32_t>(problem.graph.ops.size());
  }
  int32_t numDevices() const {
    return static_cast<int32_t>(problem.machine.devices.size());
  }

  static int32_t process(int32_t d) { return d + 1; }
  TraceRow computeRow(int32_t d) const { return {process(d), 0}; }
  TraceRow outRow(int32_t d, size_t lane) const {
    return {process(d), static_cast<int64_t>(1 + lane)};
  }
  TraceRow inRow(int32_t d, size_t lane) const {
    return outRow(d, outLanes[d].count() + lane);
  }

  void assignLanes() {
    size_t count = placement.transfers.size();
    outLane.resize(count);
    inLane.resize(count);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(placement.transfers[a].startNs, a) <
             std::pair(placement.transfers[b].startNs, b);
    });
    for (size_t k : order) {
      const Transfer &t = placement.transfers[k];
      outLane[k] = outLanes[t.from].take(t.startNs, t.endNs);
      inLane[k] = inLanes[t.to].take(t.startNs, t.endNs);
    }
  }

  void writeRows(int32_t d) {
    const Device &device = problem.machine.devices[d];
    events.nameProcess(process(d), device.name);
    events.describeProcess(process(d), device.kind, d);
    events.nameRow(computeRow(d), "compute");
    auto lanes = [](const char *name, size_t lane) {
      return lane ? std::string(name) + " " + std::to_string(lane + 1) : name;
    };
    for (size_t lane = 0; lane < outLanes[d].count(); ++lane)
      events.nameRow(outRow(d, lane), lanes("out", lane));
    for (size_t lane = 0; lane < inLanes[d].count(); ++lane)
      events.nameRow(inRow(d, lane), lanes("in", lane));
  }

  void writeOperator(int32_t i) {
    const Operator &op = problem.graph.ops[i];
    int32_t d = placement.device[i];
    const std::string &kind = problem.machine.devices[d].kind;
    TraceArguments arguments{{"operator", i}};
    if (op.group)
      arguments.emplace_back("group", *op.group);
    if (op.resident)
      arguments.emplace_back("resident_bytes", op.resident);
    events.addSpan(
        computeRow(d), op.name, critical.op[i] ? "critical" : "compute",
        placement.startNs[i],
        placement.startNs[i] + timeOn(op, kind).value_or(0), arguments);
  }

  /// The transfer at both ends, and an arrow between them.
  void writeTransfer(size_t k) {
    const Transfer &t = placement.transfers[k];
    const Operator &op = problem.graph.ops[t.op];
    const auto &devices = problem.machine.devices;
    std::string name = op.name + ":" + std::to_string(t.output);
    const char *category = critical.transfer[k] ? "critical" : "transfer";
    TraceArguments arguments{{"bytes", op.outputs[t.output].bytes},
                             {"from", devices[t.from].name},
                             {"to", devices[t.to].name}};
    TraceRow out = outRow(t.from, outLane[k]), in = inRow(t.to, inLane[k]);
    for (TraceRow row : {out, in})
      events.addSpan(row, name, category, t.startNs, t.endNs, arguments);
    events.addArrow(name, out, t.startNs, in, t.startNs);
  }

  void writeMemory() {
    auto levels = memoryOverTime(problem, placement);
    for (int32_t d = 0; d < static_cast<int32_t>(levels.size()); ++d) {
      // A counter is drawn up to its last value.
      if (levels[d].back().atNs < placement.makespanNs)
        levels[d].push_back({placement.makespanNs, levels[d].back().bytes});
      for (const MemoryLevel &level : levels[d])
        events.addCounter(process(d), "memory", level.atNs, "bytes",
                          level.bytes);
    }
  }

  const Problem &problem;
  const Placement &placement;
  Critical critical;
  std::vector<Lanes> outLanes, inLanes; ///< per device
  std::vector<size_t> outLane, inLane;  ///< per transfer
  TraceEvents events;
};

} // namespace

std::string baechi::report::formatTimeline(const Problem &problem,
                                           const Placement &placement) {
  return TimelineWriter(problem, placement).run();
}
