//===- Page.cpp - A run as a web page -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/Page.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Driver/Report/StepTimes.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Report/Page.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

namespace {

/// The placement that a compiled program carries, and what became of it.
class ProgramReader {
public:
  ProgramReader(const placement::Graph &graph, const runtime::Program &program,
                const runtime::Timeline &timeline)
      : graph(graph), program(program), timeline(timeline) {}

  /// Fails where the graph is another program's.
  LogicalResult read() {
    placement.device.assign(graph.ops.size(), 0);
    placement.startNs.assign(graph.ops.size(), 0);
    placement.makespanNs =
        std::max(program.predicted.makespanNs, program.predicted.stepNs);
    measured.operators.resize(graph.ops.size());
    size_t id = 0;
    for (const runtime::ArgumentInfo &argument : program.arguments)
      for (const runtime::PieceInfo &part : argument.parts()) {
        if (id == graph.ops.size())
          return failure();
        placement.device[id++] = part.device;
      }
    for (size_t d = 0; d < program.devices.size(); ++d)
      if (failed(readDevice(d)))
        return failure();
    for (size_t queue = 0; queue < program.queues.size(); ++queue)
      readQueue(queue);
    llvm::stable_sort(messages, [](const Message &a, const Message &b) {
      return a.planned.startNs < b.planned.startNs;
    });
    for (const Message &message : messages) {
      placement.transfers.push_back(message.planned);
      measured.transfers.push_back(message.happened);
    }
    return success();
  }

  placement::Placement placement;
  report::PageMeasurement measured;

private:
  struct Message {
    placement::Transfer planned;
    report::PageSpan happened;
  };

  static report::PageSpan spanOf(const runtime::Interval &interval) {
    return interval.happened()
               ? report::PageSpan{interval.beginNs, interval.endNs}
               : report::PageSpan{};
  }

  LogicalResult readDevice(size_t d) {
    const runtime::DeviceRecord &record = timeline.devices[d];
    for (auto [op, happened] :
         llvm::zip(program.devices[d].operators, record.operators)) {
      if (op.id < 0) // memory planning's copies
        continue;
      if (static_cast<size_t>(op.id) >= graph.ops.size())
        return failure();
      placement.device[op.id] = static_cast<int32_t>(d);
      placement.startNs[op.id] = op.startNs;
      measured.operators[op.id] = spanOf(happened);
    }
    measured.busyNs.push_back(record.busyNs);
    measured.arenaBytes.push_back(program.devices[d].arenaBytes);
    return success();
  }

  void readQueue(size_t queue) {
    const runtime::QueueInfo &info = program.queues[queue];
    for (auto [message, happened] :
         llvm::zip(info.messages, timeline.queues[queue]))
      messages.push_back({{message.producer, message.output, info.from, info.to,
                           message.startNs, message.endNs},
                          spanOf(happened)});
  }

  const placement::Graph &graph;
  const runtime::Program &program;
  const runtime::Timeline &timeline;
  std::vector<Message> messages;
};

/// What the report says of the run in words (Report.cpp).
void addNotes(const RunReport &report, std::vector<std::string> &notes) {
  if (const std::optional<GivenUp> &worse = report.compiled.givenUp)
    notes.push_back("Instead of '" + worse->winner +
                    "', whose step would take " +
                    placement::millisecondsText(worse->stepNs) +
                    " with the copies between devices.");
  if (report.othersWork)
    notes.push_back(llvm::formatv("Disturbed: the machine did the work of "
                                  "{0:f1} processors for others.",
                                  *report.othersWork));
  for (const std::string &link : simulatedLinks(report.program))
    notes.push_back("Times are of a " + link + ".");
  if (size_t disturbed = report.kernelCosts.disturbed)
    notes.push_back(std::to_string(disturbed) +
                    " rows of the profile were disturbed by other work.");
  if (report.pieces)
    for (auto [number, line] : llvm::enumerate(report.pieces->lines()))
      notes.push_back((number == 0 ? "Pieces: " : "… ") + line);
  for (auto [key, title] :
       {std::pair("unrolled_loops", "Loops: "),
        std::pair("cut_to_fit", "Cut: "), std::pair("memory_fit", "Memory: "),
        std::pair("checkpoints", "Again: ")})
    if (const llvm::json::Object *told =
            report.compiled.manifest.getObject(key))
      for (auto [number, line] : llvm::enumerate(*told->getArray("text")))
        notes.push_back((number == 0 ? title : "… ") +
                        line.getAsString()->str());
}

/// Of the step that was placed.
FailureOr<placement::Graph> graphOf(ModuleOp module,
                                    const CompiledProgram &program) {
  if (program.rewritten)
    return *program.rewritten;
  FailureOr<StepGraph> graph = buildStepGraph(module);
  if (failed(graph))
    return failure();
  return std::move(graph->graph);
}

} // namespace

FailureOr<std::string>
baechi::formatRunPage(ModuleOp module, const placement::Machine &machine,
                      const RunReport &report,
                      const runtime::Timeline &timeline) {
  FailureOr<placement::Graph> graph = graphOf(module, report.compiled);
  if (failed(graph))
    return failure();
  placement::Problem problem{std::move(*graph), machine};
  ProgramReader reader(problem.graph, report.program, timeline);
  if (failed(reader.read()))
    return failure();
  report::PageMeasurement &measured = reader.measured;
  measured.steps = static_cast<int64_t>(report.measured.wallNs.size());
  measured.stepNs = report.measured.medianNs();
  measured.shownStepNs = timeline.wallNs;
  measured.planned =
      arenaLevels(report.compiled.held, predictedTimes(report.program));
  measured.happened =
      arenaLevels(report.compiled.held, measuredTimes(timeline));
  if (report.single)
    measured.singleDeviceNs = report.single->medianNs();
  report::PageSummary summary;
  summary.model = report.model;
  summary.machine = report.machine + ", code for " + report.target;
  summary.placer = report.placer;
  summary.winner = report.program.predicted.winner;
  summary.plannedNs = report.program.predicted.makespanNs;
  summary.lowerBoundNs = report.program.predicted.lowerBoundNs;
  addNotes(report, summary.notes);
  return report::formatPage(problem, reader.placement, summary, &measured);
}
