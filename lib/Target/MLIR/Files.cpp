//===- Files.cpp - Graph, machine and placement files ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Target/Export.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Writes \p text unless there was an error.
LogicalResult finish(ModuleOp module, const std::string &error,
                     const std::string &text, raw_ostream &os) {
  if (!error.empty())
    return emitError(module.getLoc()) << error;
  os << text;
  return success();
}
} // namespace

LogicalResult baechi::exportGraph(ModuleOp module, raw_ostream &os) {
  FailureOr<StepGraph> graph = buildStepGraph(module);
  if (failed(graph))
    return failure();
  std::string text;
  return finish(module, placement::formatGraph(graph->graph, text), text, os);
}

LogicalResult baechi::exportMachine(ModuleOp module, raw_ostream &os) {
  std::optional<placement::Machine> machine = machineOf(module, "");
  if (!machine)
    return failure();
  std::string text;
  return finish(module, placement::formatMachine(*machine, text), text, os);
}

LogicalResult baechi::exportPlacement(ModuleOp module, raw_ostream &os) {
  std::optional<placement::Machine> machine = machineOf(module, "");
  FailureOr<StepGraph> graph = buildStepGraph(module);
  if (!machine || failed(graph))
    return failure();
  FailureOr<placement::Placement> placement = readPlacement(*graph, *machine);
  if (failed(placement))
    return failure();
  placement::PlacementInfo info;
  if (auto certificate = graph->step->getAttrOfType<PlacementCertificateAttr>(
          BaechiDialect::kCertificate)) {
    info.algorithm = certificate.getWinner().str();
    info.lowerBoundNs = certificate.getLowerBound();
  }
  std::string text;
  std::string error = placement::formatPlacement({graph->graph, *machine},
                                                 *placement, info, text);
  return finish(module, error, text, os);
}
