//===- Dot.cpp - A placement over its graph ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Grouping/Coplaced.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Critical.h"
#include "Baechi/Report/DotGraph.h"
#include "Baechi/Report/Draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

/// An operator, or several on one device that are drawn as one.
struct Box {
  int32_t device = 0;
  int32_t longest = -1; ///< the operator that gives it its name
  int32_t operators = 0;
  int64_t timeNs = 0;
  int64_t residentBytes = 0;
  bool critical = false;
};

/// All that leads from one box to another.
struct Arc {
  bool data = false;
  bool critical = false;
  std::vector<size_t> transfers; ///< of the placement, sorted, each once
};

class DotWriter {
public:
  DotWriter(const Problem &problem, const Placement &placement,
            const DotOptions &options)
      : problem(problem), placement(placement), options(options),
        critical(criticalParts(problem, placement)) {}

  std::string run();
  std::string note;

private:
  void makeBoxes();
  void groupOperators();
  void fillBoxes(int32_t count);
  void makeArcs();
  void addArc(const Edge &edge);
  void writeDevice(int32_t d, const DeviceUsage &use);
  void writeBox(int32_t id);
  void writeArc(int32_t from, int32_t to, const Arc &arc);

  int32_t numOperators() const {
    return static_cast<int32_t>(problem.graph.ops.size());
  }
  int32_t numDevices() const {
    return static_cast<int32_t>(problem.machine.devices.size());
  }
  /// Where it is placed.
  int64_t timeOf(int32_t i) const {
    const std::string &kind = problem.machine.devices[placement.device[i]].kind;
    return timeOn(problem.graph.ops[i], kind).value_or(-1);
  }
  int64_t end(int32_t i) const { return placement.startNs[i] + timeOf(i); }

  const Problem &problem;
  const Placement &placement;
  const DotOptions &options;
  Critical critical;
  std::vector<int32_t> boxOf; ///< per operator
  std::vector<Box> boxes;
  std::map<std::pair<int32_t, int32_t>, Arc> arcs;
  /// (operator, output, target device) -> transfer
  std::map<std::tuple<int32_t, int32_t, int32_t>, size_t> transferOf;
  DotGraph dot{"placement", {}};
};

void DotWriter::makeBoxes() {
  boxOf.resize(numOperators());
  std::iota(boxOf.begin(), boxOf.end(), 0);
  int32_t count = numOperators();
  if (count > options.maxNodes) {
    groupOperators();
    count =
        boxOf.empty() ? 0 : 1 + *std::max_element(boxOf.begin(), boxOf.end());
    note = fmt::format("{} operators are drawn as {} boxes: the parts of "
                       "co-placed groups that are on one device",
                       numOperators(), count);
  }
  fillBoxes(count);
}

/// A box per co-placed group and device. Where these are too many, the boxes
/// with the least work are drawn as one on each device.
void DotWriter::groupOperators() {
  std::string error;
  std::vector<int32_t> group = coplacedGroups(problem, error);
  if (group.empty()) // the caller's problem does not pass `check`
    group.assign(numOperators(), 0);
  std::map<std::pair<int32_t, int32_t>, int32_t> ids;
  std::vector<std::pair<int64_t, int32_t>> work;
  for (int32_t i = 0; i < numOperators(); ++i) {
    int32_t d = placement.device[i];
    auto [it, isNew] =
        ids.try_emplace({group[i], d}, static_cast<int32_t>(ids.size()));
    if (isNew)
      work.emplace_back(0, it->second);
    boxOf[i] = it->second;
    work[it->second].first -= timeOf(i);
  }
  auto most = static_cast<size_t>(std::max(options.maxNodes - numDevices(), 0));
  if (work.size() <= most)
    return;
  std::sort(work.begin(), work.end());
  std::vector<int32_t> rank(work.size());
  for (size_t k = 0; k < work.size(); ++k)
    rank[work[k].second] = static_cast<int32_t>(k);
  // Numbered again without gaps.
  std::map<int32_t, int32_t> number;
  for (int32_t i = 0; i < numOperators(); ++i) {
    int32_t key = rank[boxOf[i]];
    if (static_cast<size_t>(key) >= most)
      key = static_cast<int32_t>(most) + placement.device[i];
    boxOf[i] = number.try_emplace(key, static_cast<int32_t>(number.size()))
                   .first->second;
  }
}

void DotWriter::fillBoxes(int32_t count) {
  boxes.resize(count);
  for (int32_t i = 0; i < numOperators(); ++i) {
    Box &box = boxes[boxOf[i]];
    box.device = placement.device[i];
    ++box.operators;
    int64_t ns = timeOf(i);
    if (box.longest < 0 || ns > timeOf(box.longest))
      box.longest = i;
    box.timeNs += ns;
    box.residentBytes += problem.graph.ops[i].resident;
    box.critical |= critical.op[i] != 0;
  }
}

void DotWriter::addArc(const Edge &edge) {
  int32_t from = boxOf[edge.from], to = boxOf[edge.to];
  if (from == to)
    return;
  Arc &arc = arcs[{from, to}];
  bool onPath = critical.op[edge.from] && critical.op[edge.to];
  if (placement.device[edge.from] == placement.device[edge.to]) {
    arc.critical |= onPath && end(edge.from) == placement.startNs[edge.to];
  } else if (edge.output >= 0) {
    auto it =
        transferOf.find({edge.from, edge.output, placement.device[edge.to]});
    if (it != transferOf.end()) {
      arc.transfers.push_back(it->second);
      arc.critical |= critical.transfer[it->second] && critical.op[edge.to];
    }
  }
  arc.data |= edge.output >= 0;
}

void DotWriter::makeArcs() {
  for (size_t k = 0; k < placement.transfers.size(); ++k) {
    const Transfer &t = placement.transfers[k];
    transferOf[{t.op, t.output, t.to}] = k;
  }
  for (const Edge &edge : problem.graph.edges)
    addArc(edge);
  for (auto &[ends, arc] : arcs) {
    std::sort(arc.transfers.begin(), arc.transfers.end());
    arc.transfers.erase(std::unique(arc.transfers.begin(), arc.transfers.end()),
                        arc.transfers.end());
  }
}

void DotWriter::writeBox(int32_t id) {
  const Box &box = boxes[id];
  std::string label = problem.graph.ops[box.longest].name;
  if (box.operators > 1)
    label += fmt::format("\nand {} more", box.operators - 1);
  label += "\n" + millisecondsText(box.timeNs);
  if (box.residentBytes > 0)
    label += ", " + bytesText(box.residentBytes);
  DotGraph::Attributes attributes = {
      {"label", label}, {"fillcolor", DotGraph::colourOf(box.device)}};
  if (box.timeNs == 0)
    attributes.emplace_back("shape", "ellipse");
  if (box.critical) {
    attributes.emplace_back("color", "red");
    attributes.emplace_back("penwidth", "3");
  }
  dot.addNode(id, attributes);
}

void DotWriter::writeDevice(int32_t d, const DeviceUsage &use) {
  const Device &device = problem.machine.devices[d];
  double busy = 100.0 * static_cast<double>(use.busyNs) /
                static_cast<double>(std::max<int64_t>(placement.makespanNs, 1));
  dot.beginCluster(
      d, {{"label",
           fmt::format("{}: {} operators, busy {:.1f} %, peak {} of {}",
                       device.name, use.operators, busy,
                       bytesText(use.peakBytes), bytesText(device.memory))},
          {"color", DotGraph::colourOf(d)},
          {"bgcolor", "/greys9/1"},
          {"penwidth", "3"}});
  for (size_t id = 0; id < boxes.size(); ++id)
    if (boxes[id].device == d)
      writeBox(static_cast<int32_t>(id));
  dot.endCluster();
}

/// Transfers are bold, orders without data dotted.
void DotWriter::writeArc(int32_t from, int32_t to, const Arc &arc) {
  DotGraph::Attributes attributes;
  if (!arc.transfers.empty()) {
    int64_t bytes = 0, ns = 0;
    for (size_t k : arc.transfers) {
      const Transfer &t = placement.transfers[k];
      bytes += problem.graph.ops[t.op].outputs[t.output].bytes;
      ns += t.endNs - t.startNs;
    }
    std::string count =
        arc.transfers.size() > 1
            ? fmt::format("{} transfers\n", arc.transfers.size())
            : "";
    attributes.emplace_back("label", count + bytesText(bytes) + "\n" +
                                         millisecondsText(ns));
    if (!arc.critical)
      attributes.emplace_back("penwidth", "2");
  }
  if (!arc.data)
    attributes.emplace_back("style", "dotted");
  if (arc.critical) {
    attributes.emplace_back("color", "red");
    attributes.emplace_back("fontcolor", "red");
    attributes.emplace_back("penwidth", "3");
  }
  dot.addEdge(from, to, attributes);
}

std::string DotWriter::run() {
  makeBoxes();
  makeArcs();
  dot = DotGraph("placement",
                 {{"label", fmt::format("step of {}; red: what it hangs on{}{}",
                                        millisecondsText(placement.makespanNs),
                                        note.empty() ? "" : "\n", note)}});
  std::vector<DeviceUsage> uses = usage(problem, placement);
  for (int32_t d = 0; d < numDevices(); ++d)
    writeDevice(d, uses[d]);
  for (const auto &[ends, arc] : arcs)
    writeArc(ends.first, ends.second, arc);
  return dot.take();
}

} // namespace

std::string baechi::report::formatDot(const Problem &problem,
                                      const Placement &placement,
                                      const DotOptions &options,
                                      std::string *note) {
  DotWriter writer(problem, placement, options);
  std::string text = writer.run();
  if (note)
    *note = writer.note;
  return text;
}
