//===- MemoryFitter.cpp - Rewrites that take less memory ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryFitter.h"
#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/Recomputation.h"
#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Placement/Model/Pool.h"
#include "FixedPlacement.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;
using namespace baechi;

/// Limits that are tried, evenly between the floor and the peak. Not of what a
/// person asks for, so that less memory never finds what more has not seen.
static constexpr int limitsTried = 24;

MemoryFitter::MemoryFitter(ModuleOp module, StepGraph graph,
                           const placement::Machine &target)
    : module(module), graph(std::move(graph)) {
  options.kind = target.devices.front().kind;
  options.mayRepeat = operatorsToRepeat(this->graph);
  lean = placement::leanOrdersOf(this->graph.graph, options);
  leastOfOrders = placement::memoryFloor(this->graph.graph);
  least = leastMemory(this->graph);
  placement::SpillOptions elsewhere;
  elsewhere.kind = options.kind;
  findMovable(this->graph, elsewhere);
  leastAlone = placement::spillFloor(this->graph.graph, elsewhere);
  chains.emplace(this->graph.graph, options, lean);
}

FailureOr<MemoryFitter> MemoryFitter::create(ModuleOp module,
                                             const placement::Machine &target) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (failed(step))
    return failure();
  FailureOr<StepGraph> graph = buildStepGraph(*step);
  if (failed(graph))
    return failure();
  if (graph->graph.ops.empty())
    return emitError(step->getLoc()) << "the step has no operators";
  return MemoryFitter(module, std::move(*graph), target);
}

int64_t MemoryFitter::residentBytes() const {
  int64_t bytes = 0;
  for (const placement::Operator &op : graph.graph.ops)
    bytes += op.resident;
  return bytes;
}

int64_t MemoryFitter::workNs() const {
  int64_t ns = 0;
  for (const placement::Operator &op : graph.graph.ops)
    ns += placement::timeOn(op, options.kind).value_or(0);
  return ns;
}

std::optional<FitProposal> MemoryFitter::within(int64_t bytes) const {
  auto found =
      placement::recomputeWithin(graph.graph, options, lean, bytes, *chains);
  if (!found)
    return std::nullopt;
  return FitProposal{std::move(*found)};
}

std::vector<FitProposal>
MemoryFitter::proposals(int64_t most,
                        function_ref<bool(size_t, size_t)> goesOn) const {
  std::vector<FitProposal> all;
  int64_t room = peakBytes() - leastOfOrders.bytes;
  for (int number = limitsTried; number-- > 0;) {
    int64_t limit = leastOfOrders.bytes + room * number / limitsTried;
    if (!goesOn(limitsTried - 1 - number, limitsTried))
      break;
    if (limit > most)
      continue;
    std::optional<FitProposal> found = within(limit);
    if (!found)
      break;
    all.push_back(std::move(*found));
  }
  llvm::stable_sort(all, [](const FitProposal &a, const FitProposal &b) {
    return a.order.againNs < b.order.againNs;
  });
  all.erase(llvm::unique(all,
                         [](const FitProposal &a, const FitProposal &b) {
                           return a.order.runs == b.order.runs;
                         }),
            all.end());
  return all;
}

OwningOpRef<ModuleOp> MemoryFitter::rewrite(const FitProposal &proposal) const {
  OwningOpRef<ModuleOp> fresh = ModuleOp(module).clone();
  StepGraph same = *buildStepGraph(*findFuncStep(*fresh));
  repeatOperators(same, proposal.order.runs);
  return fresh;
}

OwningOpRef<ModuleOp>
MemoryFitter::placeAlone(const FitProposal &proposal,
                         const placement::Machine &machine) const {
  OwningOpRef<ModuleOp> fresh = rewrite(proposal);
  FailureOr<StepGraph> placed = buildStepGraph(*findFuncStep(*fresh));
  if (failed(placed))
    return nullptr;
  auto alone = llvm::find_if_not(machine.devices, placement::isPool);
  writeInProgramOrder(*placed, machine, alone - machine.devices.begin());
  return fresh;
}

MemoryFit MemoryFitter::describe(const FitProposal &proposal) const {
  MemoryFit fit;
  fit.peakBefore = peakBytes();
  fit.peakAfter = *placement::peakOfRuns(graph.graph, proposal.order.runs);
  fit.floorBytes = least.bytes;
  fit.floorOperator = nameOf(least.op).str();
  fit.againNs = proposal.order.againNs;
  std::map<int32_t, int64_t> runs;
  for (int32_t op : proposal.order.runs)
    ++runs[op];
  for (auto [id, times] : runs) {
    const placement::Operator &op = graph.graph.ops[id];
    int64_t ns = placement::timeOn(op, options.kind).value_or(0);
    fit.workNs += ns;
    if (times == 1)
      continue;
    int64_t bytes = 0;
    for (const placement::Output &output : op.outputs)
      bytes += output.memory;
    fit.again.push_back({op.name, times - 1, ns * (times - 1), bytes});
  }
  llvm::stable_sort(fit.again,
                    [](const auto &a, const auto &b) { return a.ns > b.ns; });
  return fit;
}
