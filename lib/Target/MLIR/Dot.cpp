//===- Dot.cpp - Steps as Graphviz graphs ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Text.h"
#include "Baechi/Target/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GraphWriter.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Colours of Graphviz's scheme set312; devices beyond them share.
constexpr size_t colours = 12;

class DotWriter {
public:
  DotWriter(const StepGraph &step, raw_ostream &os) : step(step), os(os) {
    // Devices in the machine's order, where there is one.
    auto module = FunctionOpInterface(step.step)->getParentOfType<ModuleOp>();
    if (auto machine =
            module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine))
      for (DeviceSpecAttr device : machine.getDevices())
        devices.insert(device.getName());
    for (int32_t id = 0, n = step.graph.ops.size(); id < n; ++id)
      if (StringAttr device = deviceOf(id))
        devices.insert(device.getValue());
  }

  void write() {
    os << "digraph step {\n"
          "  rankdir=TB\n"
          "  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
          "colorscheme=set312, fontname=\"Helvetica\"]\n"
          "  edge [fontname=\"Helvetica\", fontsize=10]\n";
    for (int32_t id = 0, n = step.graph.ops.size(); id < n; ++id)
      writeOperator(id);
    for (const placement::Edge &edge : step.graph.edges)
      writeEdge(edge);
    writeLegend();
    os << "}\n";
  }

private:
  StringAttr deviceOf(int32_t id) const {
    return stringAttrOf(step, id, BaechiDialect::kDevice);
  }

  size_t colourOf(StringRef device) const {
    return 1 + (llvm::find(devices, device) - devices.begin()) % colours;
  }

  void writeOperator(int32_t id) {
    const placement::Operator &op = step.graph.ops[id];
    os << "  n" << id << " [label=\"" << llvm::DOT::EscapeString(op.name);
    if (step.operation(id))
      for (const auto &[kind, ns] : op.timeNs)
        os << "\\n" << llvm::DOT::EscapeString(kind) << " " << ns << " ns";
    else
      os << "\\n" << placement::bytesText(op.resident, 2);
    os << '"';
    if (!step.operation(id))
      os << ", shape=ellipse";
    if (StringAttr device = deviceOf(id))
      os << ", fillcolor=" << colourOf(device.getValue());
    os << "]\n";
  }

  /// Tensors that cross devices are bold, orders without data dotted.
  void writeEdge(const placement::Edge &edge) {
    os << "  n" << edge.from << " -> n" << edge.to;
    if (edge.output < 0) {
      os << " [style=dotted]\n";
      return;
    }
    os << " [label=\""
       << placement::bytesText(
              step.graph.ops[edge.from].outputs[edge.output].bytes, 2)
       << '"';
    if (deviceOf(edge.from) != deviceOf(edge.to))
      os << ", style=bold";
    os << "]\n";
  }

  void writeLegend() {
    for (StringRef device : devices)
      os << "  \"device " << llvm::DOT::EscapeString(device.str())
         << "\" [shape=plain, style=filled, fillcolor=" << colourOf(device)
         << "]\n";
  }

  const StepGraph &step;
  raw_ostream &os;
  llvm::SetVector<StringRef> devices;
};
} // namespace

LogicalResult baechi::exportDot(ModuleOp module, raw_ostream &os) {
  FailureOr<FunctionOpInterface> step = findStep(module);
  if (failed(step))
    return failure();
  FailureOr<StepGraph> graph = buildStepGraph(*step);
  if (failed(graph))
    return failure();
  DotWriter(*graph, os).write();
  return success();
}
