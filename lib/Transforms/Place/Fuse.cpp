//===- Fuse.cpp - Group what should be on one device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Grouping/Coplaced.h"
#include "Baechi/Transforms/Passes.h"
#include "PlacementRemarks.h"

namespace baechi {
#define GEN_PASS_DEF_FUSE
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct Fuse : public baechi::impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<placement::Machine> target = machineOf(module, machine);
    FailureOr<FunctionOpInterface> step = findStep(module);
    if (!target || failed(step))
      return signalPassFailure();
    FailureOr<StepGraph> graph = buildStepGraph(*step);
    if (failed(graph))
      return signalPassFailure();
    std::string error;
    std::vector<int32_t> groups =
        placement::coplacedGroups({graph->graph, *target}, error);
    if (!error.empty()) {
      emitError(step->getLoc()) << error;
      return signalPassFailure();
    }
    write(*graph, groups);
  }

  /// Names every group of several members.
  void write(const StepGraph &graph, std::vector<int32_t> groups) {
    FunctionOpInterface step = graph.step;
    int32_t arguments = step.getNumArguments();
    llvm::DenseMap<int32_t, int32_t> members;
    for (int32_t group : groups)
      ++members[group];
    for (int32_t &group : groups)
      group = members[group] < 2 ? -1 : group;
    llvm::DenseMap<int32_t, std::string> called =
        groupNames(step, graph.operators, groups, namesOf(step));
    for (auto [id, group] : llvm::enumerate(groups)) {
      if (group < 0)
        continue;
      auto name = StringAttr::get(&getContext(), called[group]);
      if (auto remark = remark::passed(
              locationOf(graph, id), remarkOn("grouped", "baechi-fuse", step)))
        remark << remark::metric("Operator", graph.graph.ops[id].name)
               << remark::metric("Group", name.str())
               << remark::metric("Members", members[group])
               << remark::metric("Reason",
                                 "apart, a transfer would be waited for");
      if (static_cast<int32_t>(id) < arguments)
        step.setArgAttr(id, BaechiDialect::kGroup, name);
      else
        graph.operation(id)->setAttr(BaechiDialect::kGroup, name);
    }
  }
};
} // namespace
