//===- Dot.cpp - Steps as Graphviz graphs ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Report/DotGraph.h"
#include "Baechi/Target/Export.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;
using report::DotGraph;

namespace {
class DotWriter {
public:
  explicit DotWriter(const StepGraph &step) : step(step) {
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

  std::string write() {
    for (int32_t id = 0, n = step.graph.ops.size(); id < n; ++id)
      writeOperator(id);
    for (const placement::Edge &edge : step.graph.edges)
      writeEdge(edge);
    writeLegend();
    return dot.take();
  }

private:
  StringAttr deviceOf(int32_t id) const {
    return stringAttrOf(step, id, BaechiDialect::kDevice);
  }

  std::string colourOf(StringRef device) const {
    return DotGraph::colourOf(llvm::find(devices, device) - devices.begin());
  }

  void writeOperator(int32_t id) {
    const placement::Operator &op = step.graph.ops[id];
    std::string label = op.name;
    if (step.operation(id))
      for (const auto &[kind, ns] : op.timeNs)
        label += "\n" + kind + " " + std::to_string(ns) + " ns";
    else
      label += "\n" + placement::bytesText(op.resident, 2);
    DotGraph::Attributes attributes = {{"label", label}};
    if (!step.operation(id))
      attributes.emplace_back("shape", "ellipse");
    if (StringAttr device = deviceOf(id))
      attributes.emplace_back("fillcolor", colourOf(device.getValue()));
    dot.addNode(id, attributes);
  }

  /// Tensors that cross devices are bold, orders without data dotted.
  void writeEdge(const placement::Edge &edge) {
    DotGraph::Attributes attributes;
    if (edge.output < 0) {
      attributes.emplace_back("style", "dotted");
    } else {
      int64_t bytes = step.graph.ops[edge.from].outputs[edge.output].bytes;
      attributes.emplace_back("label", placement::bytesText(bytes, 2));
      if (deviceOf(edge.from) != deviceOf(edge.to))
        attributes.emplace_back("style", "bold");
    }
    dot.addEdge(edge.from, edge.to, attributes);
  }

  void writeLegend() {
    for (StringRef device : devices)
      dot.addNode("device " + device.str(), {{"shape", "plain"},
                                             {"style", "filled"},
                                             {"fillcolor", colourOf(device)}});
  }

  const StepGraph &step;
  DotGraph dot{"step", {}};
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
  os << DotWriter(*graph).write();
  return success();
}
