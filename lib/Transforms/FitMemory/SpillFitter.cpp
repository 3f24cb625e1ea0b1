//===- SpillFitter.cpp - Plans that keep tensors in a pool ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpillFitter.h"
#include "FixedPlacement.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;
using namespace baechi;
using placement::SpillPlan;
using placement::Stay;

/// Limits that are tried, evenly between the floor and the peak, and from the
/// smallest of them ever closer to the floor. Not of what a person asks for, so
/// that less memory never finds what more has not seen.
static constexpr int limitsTried = 24, limitsBelow = 3;

SpillFitter::SpillFitter(ModuleOp module, StepGraph graph,
                         const placement::Machine &target, int32_t device,
                         int32_t pool)
    : module(module), graph(std::move(graph)), target(target), device(device),
      pool(pool) {
  options.kind = target.devices[device].kind;
  options.out = *target.link(device, pool);
  options.in = *target.link(pool, device);
  options.isShared = target.linkModel == placement::LinkModel::Sequential;
  options.poolBytes = poolBytes();
  findMovable(this->graph, options);
  bases = placement::leanOrdersOf(this->graph.graph, {options.kind, {}});
  least = placement::spillFloor(this->graph.graph, options);
}

std::optional<SpillFitter> SpillFitter::create(ModuleOp module,
                                               const placement::Machine &target,
                                               int32_t pool) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (failed(step))
    return std::nullopt;
  FailureOr<StepGraph> graph = buildStepGraph(*step);
  if (failed(graph) || graph->graph.ops.empty())
    return std::nullopt;
  int32_t best = -1;
  for (auto [number, device] : llvm::enumerate(target.devices)) {
    int32_t d = number;
    bool runsAll = llvm::all_of(graph->graph.ops, [&](const auto &op) {
      return placement::timeOn(op, device.kind) &&
             (!op.pin || *op.pin == device.name);
    });
    if (!placement::isPool(device) && runsAll && target.link(d, pool) &&
        target.link(pool, d) &&
        (best < 0 || device.memory > target.devices[best].memory))
      best = d;
  }
  if (best < 0)
    return std::nullopt;
  return SpillFitter(module, std::move(*graph), target, best, pool);
}

std::optional<int64_t> SpillFitter::leanestBytes() const {
  for (int64_t limit : llvm::reverse(limits()))
    if (auto found = placement::spillWithin(graph.graph, options, bases, limit))
      return found->peakBytes;
  return std::nullopt;
}

SmallVector<int64_t> SpillFitter::limits() const {
  int64_t room = bases.front().peakBytes - least.bytes;
  SmallVector<int64_t> all;
  for (int number = limitsTried; number > 0; --number)
    all.push_back(least.bytes + room * number / limitsTried);
  for (int below = 1; below <= limitsBelow; ++below)
    all.push_back(least.bytes + (room / limitsTried >> below));
  all.push_back(least.bytes);
  return all;
}

static bool areAlike(const SpillPlan &a, const SpillPlan &b) {
  return a.order == b.order && a.inPool == b.inPool &&
         llvm::equal(a.stays, b.stays, [](const Stay &x, const Stay &y) {
           return x.tensor == y.tensor && x.gone == y.gone &&
                  x.fetch == y.fetch && x.use == y.use;
         });
}

std::vector<SpillPlan>
SpillFitter::proposals(int64_t most,
                       function_ref<bool(size_t, size_t)> goesOn) const {
  std::vector<SpillPlan> all;
  SmallVector<int64_t> tried = limits();
  for (auto [number, limit] : llvm::enumerate(tried)) {
    if (!goesOn(number, tried.size()))
      break;
    if (limit > most)
      continue;
    std::optional<SpillPlan> found =
        placement::spillWithin(graph.graph, options, bases, limit);
    if (found)
      all.push_back(std::move(*found));
  }
  llvm::stable_sort(all, [](const SpillPlan &a, const SpillPlan &b) {
    return a.makespanNs < b.makespanNs;
  });
  all.erase(llvm::unique(all, areAlike), all.end());
  return all;
}

namespace {
/// Writes down where and when a plan runs.
class Placer {
public:
  Placer(const StepGraph &graph, const placement::Machine &machine,
         int32_t device, int32_t pool)
      : graph(graph), machine(machine), device(device), pool(pool) {
    int32_t arguments = FunctionOpInterface(graph.step).getNumArguments();
    for (auto [position, op] : llvm::enumerate(graph.operators))
      idOf[op] = arguments + position;
    placement.device.assign(graph.graph.ops.size(), device);
    placement.startNs.assign(graph.graph.ops.size(), 0);
  }

  /// \p before: the graph that \p plan is of.
  void run(const StepGraph &before, const SpillPlan &plan,
           ArrayRef<func::CallOp> stashes) {
    for (int32_t id : plan.order)
      placement.startNs[idNow(before, id)] = plan.startNs[id];
    for (int32_t argument : plan.inPool)
      placement.device[argument] = pool;
    for (auto [stay, made] : llvm::zip(plan.stays, stashes)) {
      if (made) {
        placement.device[idOf[made]] = pool;
        placement.startNs[idOf[made]] = stay.stashStartNs;
      }
      int32_t source = made ? idOf[made] : stay.tensor.op;
      if (stay.outStartNs >= 0)
        placement.transfers.push_back({idNow(before, stay.tensor.op),
                                       stay.tensor.output, device, pool,
                                       stay.outStartNs, stay.outEndNs});
      if (stay.inStartNs >= 0)
        placement.transfers.push_back(
            {source, 0, pool, device, stay.inStartNs, stay.inEndNs});
    }
    llvm::stable_sort(placement.transfers,
                      [](auto &a, auto &b) { return a.startNs < b.startNs; });
    placement.makespanNs = plan.makespanNs;
    writeFixedPlacement(graph, machine, std::move(placement), "spill");
  }

private:
  /// Operators have moved on by the stashes between them.
  int32_t idNow(const StepGraph &before, int32_t id) {
    Operation *op = before.operation(id);
    return op ? idOf[op] : id;
  }

  const StepGraph &graph;
  const placement::Machine &machine;
  int32_t device, pool;
  llvm::DenseMap<Operation *, int32_t> idOf;
  placement::Placement placement;
};
} // namespace

OwningOpRef<ModuleOp> SpillFitter::place(const SpillPlan &plan) const {
  OwningOpRef<ModuleOp> fresh = ModuleOp(module).clone();
  StepGraph before = *buildStepGraph(*findFuncStep(*fresh));
  SmallVector<func::CallOp> stashes =
      stashTensors(*fresh, before, plan, target.devices[pool].kind);
  FailureOr<StepGraph> after = buildStepGraph(*findFuncStep(*fresh));
  if (failed(after))
    return nullptr;
  Placer(*after, target, device, pool).run(before, plan, stashes);
  return fresh;
}

OwningOpRef<ModuleOp> SpillFitter::rewrite(const SpillPlan &plan) const {
  OwningOpRef<ModuleOp> fresh = ModuleOp(module).clone();
  StepGraph same = *buildStepGraph(*findFuncStep(*fresh));
  stashTensorsLate(*fresh, same, plan, target.devices[pool], options.in);
  return fresh;
}

SpillFit SpillFitter::describe(const SpillPlan &plan) const {
  SpillFit fit;
  std::map<std::pair<int32_t, int32_t>, int64_t> fetches;
  for (const Stay &stay : plan.stays)
    fetches[{stay.tensor.op, stay.tensor.output}] += stay.use >= 0;
  for (auto [tensor, times] : fetches) {
    const placement::Operator &op = graph.graph.ops[tensor.first];
    fit.spilled.push_back({op.name, times, op.outputs[tensor.second].copy});
  }
  for (int32_t argument : plan.inPool)
    fit.argumentBytes += graph.graph.ops[argument].resident;
  fit.peakBefore = peakBytes();
  fit.peakAfter = plan.peakBytes;
  fit.floorBytes = least.bytes;
  fit.floorOperator = floorOperator();
  fit.pool = poolName();
  fit.stepNs = plan.makespanNs;
  fit.outBytes = plan.outBytes;
  fit.inBytes = plan.inBytes;
  return fit;
}
