//===- Page.cpp - A run as a web page -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Page.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Page.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace baechi;

namespace {

/// The placement that a compiled program carries, and what became of it.
class ProgramReader {
public:
  ProgramReader(const placement::Graph &graph, const runtime::Program &program,
                const runtime::Timeline &timeline)
      : graph(graph), program(program), timeline(timeline) {
    for (auto [id, op] : llvm::enumerate(graph.ops))
      idOf[op.name] = id;
  }

  void read() {
    placement.device.assign(graph.ops.size(), 0);
    placement.startNs.assign(graph.ops.size(), 0);
    placement.makespanNs =
        std::max(program.predicted.makespanNs, program.predicted.stepNs);
    measured.operators.resize(graph.ops.size());
    for (auto [id, argument] : llvm::enumerate(program.arguments))
      placement.device[id] = argument.device;
    for (size_t d = 0; d < program.devices.size(); ++d)
      readDevice(d);
    findNeeds();
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      readQueue(queue);
    llvm::stable_sort(messages, [](const Message &a, const Message &b) {
      return a.planned.startNs < b.planned.startNs;
    });
    for (const Message &message : messages) {
      placement.transfers.push_back(message.planned);
      measured.transfers.push_back(message.happened);
    }
  }

  placement::Placement placement;
  placement::PageMeasurement measured;

private:
  struct Message {
    placement::Transfer planned;
    placement::PageSpan happened;
  };

  static placement::PageSpan spanOf(const runtime::Interval &interval) {
    return interval.happened()
               ? placement::PageSpan{interval.beginNs, interval.endNs}
               : placement::PageSpan{};
  }

  void readDevice(size_t d) {
    const runtime::DeviceRecord &record = timeline.devices[d];
    for (auto [op, happened] :
         llvm::zip(program.devices[d].operators, record.operators))
      if (auto it = idOf.find(op.name); it != idOf.end()) {
        placement.device[it->second] = static_cast<int32_t>(d);
        placement.startNs[it->second] = op.startNs;
        measured.operators[it->second] = spanOf(happened);
      }
    measured.busyNs.push_back(record.busyNs);
    measured.arenaBytes.push_back(program.devices[d].arenaBytes);
  }

  void readQueue(size_t queue) {
    const runtime::QueueInfo &info = program.queues[queue];
    for (auto [message, happened] :
         llvm::zip(info.messages, timeline.queues[queue]))
      if (auto it = idOf.find(message.name); it != idOf.end())
        if (std::optional<int32_t> output =
                takeOutput(it->second, message.bytes, info.to))
          messages.push_back({{it->second, *output, info.from, info.to,
                               message.startNs, message.endNs},
                              spanOf(happened)});
  }

  /// The first start of what reads an output of an operator on a device.
  void findNeeds() {
    for (const placement::Edge &edge : graph.edges)
      if (edge.output >= 0) {
        int64_t start = placement.startNs[edge.to];
        auto [it, isNew] = neededAt.try_emplace(
            {edge.from, edge.output, placement.device[edge.to]}, start);
        it->second = std::min(it->second, start);
      }
  }

  /// The output that a message carries. Messages name the operator alone: of
  /// its outputs of that size the one that is needed first, each once.
  std::optional<int32_t> takeOutput(int32_t op, int64_t bytes, int32_t to) {
    auto best = neededAt.end();
    for (auto [index, output] : llvm::enumerate(graph.ops[op].outputs)) {
      auto it = neededAt.find({op, static_cast<int32_t>(index), to});
      if (output.bytes == bytes && it != neededAt.end() &&
          (best == neededAt.end() || it->second < best->second))
        best = it;
    }
    if (best == neededAt.end())
      return std::nullopt;
    int32_t position = std::get<1>(best->first);
    neededAt.erase(best);
    return position;
  }

  const placement::Graph &graph;
  const runtime::Program &program;
  const runtime::Timeline &timeline;
  llvm::StringMap<int32_t> idOf;
  std::vector<Message> messages;
  /// (operator, output, device) -> time
  std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> neededAt;
};

} // namespace

FailureOr<std::string>
baechi::formatRunPage(ModuleOp module, const placement::Machine &machine,
                      const RunReport &report,
                      const runtime::Timeline &timeline) {
  FailureOr<func::FuncOp> step = findStep(module);
  if (failed(step))
    return failure();
  FailureOr<StepGraph> graph = buildStepGraph(*step);
  if (failed(graph))
    return failure();
  placement::Problem problem{std::move(graph->graph), machine};
  ProgramReader reader(problem.graph, report.program, timeline);
  reader.read();
  placement::PageMeasurement &measured = reader.measured;
  measured.steps = static_cast<int64_t>(report.measured.wallNs.size());
  measured.stepNs = report.measured.medianNs();
  measured.shownStepNs = timeline.wallNs;
  if (report.single)
    measured.singleDeviceNs = report.single->medianNs();
  placement::PageSummary summary;
  summary.model = report.model;
  summary.machine = report.machine + ", code for " + report.target;
  summary.placer = report.placer;
  summary.winner = report.program.predicted.winner;
  summary.plannedNs = report.program.predicted.makespanNs;
  summary.lowerBoundNs = report.program.predicted.lowerBoundNs;
  return placement::formatPage(problem, reader.placement, summary, &measured);
}
