//===- FixedPlacement.cpp - Placements that need no placer ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixedPlacement.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Schedule/Verify.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace baechi;

static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

/// Of all that is computed.
static int64_t workNs(const placement::Problem &problem,
                      const placement::Placement &placement) {
  int64_t ns = 0;
  for (auto [op, id] : llvm::zip_equal(problem.graph.ops, placement.device)) {
    const placement::Device &device = problem.machine.devices[id];
    if (!placement::isPool(device))
      ns += placement::timeOn(op, device.kind).value_or(0);
  }
  return ns;
}

void baechi::writeFixedPlacement(const StepGraph &graph,
                                 const placement::Machine &machine,
                                 placement::Placement placement,
                                 StringRef winner) {
  placement::Problem problem{graph.graph, machine};
  for (placement::Device &each : problem.machine.devices)
    each.memory = unlimited;
  placement::PlaceResult result;
  std::vector<std::string> wrong =
      placement::verify(problem, placement, &result.usage);
  for (const std::string &what : wrong)
    emitError(FunctionOpInterface(graph.step).getLoc())
        << "a placement that no placer made is wrong, which is a defect: "
        << what;
  if (placement::numComputing(machine) == 1)
    result.lowerBoundNs = workNs(problem, placement);
  result.lowerBoundName = "work";
  result.placement = std::move(placement);
  result.winner = winner.str();
  result.operatorsBefore = result.operatorsAfter = graph.graph.ops.size();
  writePlacement(graph, machine, winner, result);
}

void baechi::writeInProgramOrder(const StepGraph &graph,
                                 const placement::Machine &machine,
                                 int32_t device) {
  placement::Placement placement;
  placement.device.assign(graph.graph.ops.size(), device);
  for (const placement::Operator &op : graph.graph.ops) {
    placement.startNs.push_back(placement.makespanNs);
    placement.makespanNs +=
        placement::timeOn(op, machine.devices[device].kind).value_or(0);
  }
  writeFixedPlacement(graph, machine, std::move(placement), "single");
}
