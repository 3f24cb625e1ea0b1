//===- PlacementRemarks.cpp - Reasons of a placement as remarks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlacementRemarks.h"
#include "Baechi/Placement/Study/Explain.h"

using namespace mlir;
using namespace baechi;
using mlir::remark::metric;

remark::RemarkOpts baechi::remarkOn(StringRef remark, StringRef category,
                                    FunctionOpInterface step) {
  return remark::RemarkOpts::name(remark).category(category).function(
      SymbolTable::getSymbolName(step).getValue());
}

Location baechi::locationOf(const StepGraph &graph, int32_t id) {
  if (Operation *op = graph.operation(id))
    return op->getLoc();
  return FunctionOpInterface(graph.step).getArgument(id).getLoc();
}

namespace {
class PlacementRemarks {
public:
  PlacementRemarks(const StepGraph &graph, const placement::Machine &machine,
                   const placement::PlaceResult &result)
      : graph(graph), problem{graph.graph, machine}, result(result),
        placed(*result.placement) {}

  void run(const placement::PlaceOptions &options) {
    remarkSearch(options);
    remarkPlaced();
    remarkRefused();
  }

private:
  const std::string &deviceName(int32_t device) const {
    return problem.machine.devices[device].name;
  }

  remark::RemarkOpts about(StringRef what) const {
    return remarkOn(what, "baechi-place", graph.step);
  }

  /// What improvement did, as a whole and to each operator.
  void remarkSearch(const placement::PlaceOptions &options) {
    Location loc = FunctionOpInterface(graph.step).getLoc();
    for (const placement::GroupingStep &step : result.grouping)
      if (auto remark = remark::analysis(loc, about("grouping")))
        remark << metric("Step", step.name)
               << metric("OperatorsBefore", step.operatorsBefore)
               << metric("OperatorsAfter", step.operatorsAfter);
    auto summary = remark::passed(loc, about("search"));
    if (!summary)
      return;
    placement::PlaceOptions pure = options;
    pure.budget = placement::Budget::none();
    pure.progress = {};
    placement::PlaceResult own = placement::place(problem, pure);
    int32_t moved = 0;
    for (int32_t id = 0, n = placed.device.size(); own.placement && id < n;
         ++id) {
      int32_t from = own.placement->device[id], to = placed.device[id];
      if (from == to)
        continue;
      ++moved;
      remark::passed(locationOf(graph, id), about("moved"))
          << metric("Operator", graph.graph.ops[id].name)
          << metric("From", deviceName(from)) << metric("To", deviceName(to))
          << metric("By", result.winner);
    }
    summary << metric("Placer", options.placer)
            << metric("Winner", result.winner)
            << metric("MakespanNs", placed.makespanNs);
    if (own.placement)
      summary << metric("PlacerMakespanNs", own.placement->makespanNs)
              << metric("Moved", moved);
    else
      summary << metric("PlacerFailed", own.error);
  }

  placement::Explanation explain(int32_t id) {
    if (!explainer) {
      // Whole steps with an operator elsewhere are what --baechi-explain shows.
      placement::ExplainOptions options;
      options.reschedule = false;
      explainer.emplace(problem, placed, options);
    }
    return explainer->explain(id);
  }

  void remarkPlaced() {
    for (int32_t id = 0, n = placed.device.size(); id < n; ++id) {
      auto remark = remark::passed(locationOf(graph, id), about("placed"));
      if (!remark)
        return;
      placement::Explanation explanation = explain(id);
      remark << metric("Operator", graph.graph.ops[id].name)
             << metric("Device", deviceName(placed.device[id]))
             << metric("StartNs", placed.startNs[id])
             << metric("TimeNs", explanation.timeNs)
             << metric("Why", explanation.why);
    }
  }

  /// One remark for all devices that cannot take an operator.
  void remarkRefused() {
    auto summary = remark::missed(FunctionOpInterface(graph.step).getLoc(),
                                  about("refusals"));
    if (!summary)
      return;
    int32_t refused = 0;
    for (int32_t id = 0, n = placed.device.size(); id < n; ++id) {
      placement::Explanation explanation = explain(id);
      if (llvm::all_of(explanation.devices,
                       [](const placement::DeviceChoice &choice) {
                         return choice.limit == placement::Limit::None;
                       }))
        continue;
      ++refused;
      auto remark = remark::missed(locationOf(graph, id), about("refused"));
      remark << metric("Operator", graph.graph.ops[id].name);
      for (const placement::DeviceChoice &choice : explanation.devices)
        if (choice.limit != placement::Limit::None)
          remark << metric("Device", deviceName(choice.device))
                 << metric("Reason", choice.reason);
    }
    summary << metric("Operators", refused);
  }

  const StepGraph &graph;
  placement::Problem problem;
  const placement::PlaceResult &result;
  const placement::Placement &placed;
  std::optional<placement::Explainer> explainer;
};
} // namespace

void baechi::remarkPlacement(const StepGraph &graph,
                             const placement::Machine &machine,
                             const placement::PlaceOptions &options,
                             const placement::PlaceResult &result) {
  if (FunctionOpInterface(graph.step).getContext()->getRemarkEngine())
    PlacementRemarks(graph, machine, result).run(options);
}
