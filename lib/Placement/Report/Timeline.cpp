//===- Timeline.cpp - A placement over time ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Draw.h"
#include "Study/Critical.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

using namespace baechi::placement;

namespace {

using Json = nlohmann::ordered_json;

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

/// Writes one event at a time: a tree of all events would take several times
/// the memory of their text.
class TimelineWriter {
public:
  TimelineWriter(const Problem &problem, const Placement &placement)
      : problem(problem), placement(placement), model(problem),
        critical(criticalParts(model, placement)), outLanes(model.numDevices),
        inLanes(model.numDevices) {}

  std::string run() {
    text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    assignLanes();
    for (int32_t d = 0; d < model.numDevices; ++d)
      writeRows(d);
    for (int32_t i = 0; i < model.numNodes; ++i)
      writeOperator(i);
    for (size_t k = 0; k < placement.transfers.size(); ++k)
      writeTransfer(k);
    writeMemory();
    text += "\n]}\n";
    return std::move(text);
  }

private:
  static constexpr size_t computeRow = 0;

  void write(const Json &event) {
    text += first ? "\n" : ",\n";
    first = false;
    // Names from outside of files need not be UTF-8.
    text += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static int32_t process(int32_t d) { return d + 1; }
  static double microseconds(int64_t ns) {
    return static_cast<double>(ns) / 1e3;
  }
  size_t outRow(size_t lane) const { return 1 + lane; }
  size_t inRow(int32_t d, size_t lane) const {
    return 1 + outLanes[d].count() + lane;
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

  void writeMeta(int32_t d, const char *what, Json args) {
    write({{"ph", "M"},
           {"pid", process(d)},
           {"name", what},
           {"args", std::move(args)}});
  }

  void writeRow(int32_t d, size_t row, const std::string &name) {
    write({{"ph", "M"},
           {"pid", process(d)},
           {"tid", row},
           {"name", "thread_name"},
           {"args", {{"name", name}}}});
    write({{"ph", "M"},
           {"pid", process(d)},
           {"tid", row},
           {"name", "thread_sort_index"},
           {"args", {{"sort_index", row}}}});
  }

  void writeRows(int32_t d) {
    const Device &device = problem.machine.devices[d];
    writeMeta(d, "process_name", {{"name", device.name}});
    writeMeta(d, "process_labels", {{"labels", device.kind}});
    writeMeta(d, "process_sort_index", {{"sort_index", d}});
    writeRow(d, computeRow, "compute");
    auto lanes = [](const char *name, size_t lane) {
      return lane ? std::string(name) + " " + std::to_string(lane + 1) : name;
    };
    for (size_t lane = 0; lane < outLanes[d].count(); ++lane)
      writeRow(d, outRow(lane), lanes("out", lane));
    for (size_t lane = 0; lane < inLanes[d].count(); ++lane)
      writeRow(d, inRow(d, lane), lanes("in", lane));
  }

  void writeSpan(int32_t d, size_t row, const std::string &name,
                 const char *category, int64_t start, int64_t end, Json args) {
    write({{"ph", "X"},
           {"pid", process(d)},
           {"tid", row},
           {"name", name},
           {"cat", category},
           {"ts", microseconds(start)},
           {"dur", microseconds(end - start)},
           {"args", std::move(args)}});
  }

  void writeOperator(int32_t i) {
    const Operator &op = problem.graph.ops[i];
    int32_t d = placement.device[i];
    Json args{{"operator", i}};
    if (op.group)
      args["group"] = *op.group;
    if (op.resident)
      args["resident_bytes"] = op.resident;
    writeSpan(d, computeRow, op.name, critical.op[i] ? "critical" : "compute",
              placement.startNs[i],
              placement.startNs[i] + std::max<int64_t>(model.timeOf(i, d), 0),
              std::move(args));
  }

  /// The transfer at both ends, and an arrow between them.
  void writeTransfer(size_t k) {
    const Transfer &t = placement.transfers[k];
    const Operator &op = problem.graph.ops[t.op];
    const auto &devices = problem.machine.devices;
    std::string name = op.name + ":" + std::to_string(t.output);
    const char *category = critical.transfer[k] ? "critical" : "transfer";
    Json args{{"bytes", op.outputs[t.output].bytes},
              {"from", devices[t.from].name},
              {"to", devices[t.to].name}};
    writeSpan(t.from, outRow(outLane[k]), name, category, t.startNs, t.endNs,
              args);
    writeSpan(t.to, inRow(t.to, inLane[k]), name, category, t.startNs, t.endNs,
              std::move(args));
    auto arrow = [&](const char *phase, int32_t d, size_t row) {
      Json event{{"ph", phase},
                 {"pid", process(d)},
                 {"tid", row},
                 {"id", k},
                 {"name", name},
                 {"cat", "transfer"},
                 {"ts", microseconds(t.startNs)}};
      if (*phase == 'f')
        event["bp"] = "e";
      write(event);
    };
    arrow("s", t.from, outRow(outLane[k]));
    arrow("f", t.to, inRow(t.to, inLane[k]));
  }

  void writeMemory() {
    auto levels = memoryOverTime(problem, placement);
    for (int32_t d = 0; d < static_cast<int32_t>(levels.size()); ++d) {
      // A counter is drawn up to its last value.
      if (levels[d].back().atNs < placement.makespanNs)
        levels[d].push_back({placement.makespanNs, levels[d].back().bytes});
      for (const MemoryLevel &level : levels[d])
        write({{"ph", "C"},
               {"pid", process(d)},
               {"name", "memory"},
               {"ts", microseconds(level.atNs)},
               {"args", {{"bytes", level.bytes}}}});
    }
  }

  const Problem &problem;
  const Placement &placement;
  Model model;
  Critical critical;
  std::vector<Lanes> outLanes, inLanes; ///< per device
  std::vector<size_t> outLane, inLane;  ///< per transfer
  std::string text;
  bool first = true;
};

} // namespace

std::string baechi::placement::formatTimeline(const Problem &problem,
                                              const Placement &placement) {
  return TimelineWriter(problem, placement).run();
}
