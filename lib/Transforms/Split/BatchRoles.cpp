//===- BatchRoles.cpp - What of a step is of a part of the batch ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchRoles.h"
#include "Estimate.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

Value BatchRoles::valueOf(int32_t id, int32_t output) const {
  if (Operation *op = whole.operation(id))
    return op->getResult(output);
  return FunctionOpInterface(whole.step).getArgument(id);
}

const OperationCut *BatchRoles::cutOf(int32_t id) const {
  Operation *op = whole.operation(id);
  auto cut = plan.cutOf.find(op);
  return op && cut != plan.cutOf.end()
             ? &plan.cuts[cut->second].operations.find(op)->second
             : nullptr;
}

std::optional<CutPosition> BatchRoles::positionOf(int32_t id,
                                                  int32_t output) const {
  if (const OperationCut *how = cutOf(id))
    return how->results[output];
  Value value = valueOf(id, output);
  for (const Cut &cut : plan.cuts)
    if (auto at = cut.values.find(value);
        isa<BlockArgument>(value) && at != cut.values.end())
      return at->second;
  return std::nullopt;
}

Location BatchRoles::locOf(int32_t id) const {
  Operation *op = whole.operation(id);
  return op ? op->getLoc() : valueOf(id, 0).getLoc();
}

bool BatchRoles::readsOwn(const placement::Edge &edge) const {
  Operation *op = whole.operation(edge.to);
  const OperationCut *how = cutOf(edge.to);
  const Cut &cut = plan.cuts[plan.cutOf.lookup(op)];
  Value root = valueOf(edge.from, edge.output);
  bool isOwn = llvm::all_of(op->getOpOperands(), [&](OpOperand &use) {
    if (rootOf(use.get()) != root)
      return true;
    auto at = cut.values.find(use.get());
    return at != cut.values.end() &&
           how->operands[use.getOperandNumber()] == at->second;
  });
  // What its body reads where it likes.
  for (Value value : valuesReadBy(op))
    if (rootOf(value) == root && !llvm::is_contained(op->getOperands(), value))
      isOwn &= how->captures.contains(value);
  return isOwn;
}

namespace {
class Sorter {
public:
  explicit Sorter(BatchRoles &batch)
      : batch(batch), graph(batch.whole.graph), roles(batch.roles) {}

  void run() {
    sort();
    findObstacles();
    join();
    if (batch.parts == 1)
      return;
    for (auto [loc, why] : obstacles)
      say(loc, "not-parted", why);
    if (!obstacles.empty()) {
      batch.parts = 1;
      return;
    }
    llvm::SmallDenseSet<int32_t> said;
    for (const placement::Edge &edge : graph.edges)
      if (edge.output >= 0 && roles[edge.from] == Role::OfPart &&
          roles[edge.to] == Role::OfAll && said.insert(edge.to).second &&
          batch.positionOf(edge.from, edge.output))
        say(batch.locOf(edge.to), "gathered",
            "it reads the whole batch, which replicas exchange for it");
  }

private:
  void say(Location loc, StringRef name, StringRef why) {
    remark::missed(loc, remark::RemarkOpts::name(name)
                            .category("baechi-export-nodes")
                            .function(batch.whole.step.getName()))
        << remark::metric("Reason", why);
  }

  /// Edges between operators go from earlier ones to later ones. What takes
  /// neither time nor memory carries on what it reads, such as a tensor that is
  /// filled with a sum.
  void sort() {
    llvm::DenseMap<int32_t, SmallVector<int32_t>> reads;
    for (const placement::Edge &edge : graph.edges)
      if (edge.output >= 0)
        reads[edge.to].push_back(edge.from);
    for (int32_t id = 0, n = graph.ops.size(); id < n; ++id) {
      Operation *op = batch.whole.operation(id);
      const OperationCut *how = batch.cutOf(id);
      bool isCut = how ? how->kind != OperationCut::Kind::Partial
                       : !op && batch.positionOf(id, 0);
      bool isFree =
          op && !isComputed(op) && llvm::all_of(reads[id], [&](int32_t from) {
            return roles[from] == Role::Free;
          });
      bool isOfAll = llvm::any_of(reads[id], [&](int32_t from) {
        return roles[from] == Role::OfPart || roles[from] == Role::OfAll;
      });
      roles.push_back(isFree    ? Role::Free
                      : isCut   ? Role::OfPart
                      : isOfAll ? Role::OfAll
                                : Role::Shared);
    }
  }

  void findObstacles() {
    for (Operation *op : operatorsWithEffects(batch.whole.step))
      against(op->getLoc(), "it has effects, which would be of each part");
    for (const placement::Edge &edge : graph.edges)
      if (edge.output >= 0 && roles[edge.to] == Role::OfPart)
        checkRead(edge);
    llvm::StringMap<bool> isGroupOfParts;
    for (auto [id, op] : llvm::enumerate(graph.ops)) {
      if (!op.group || roles[id] == Role::Free)
        continue;
      bool isOfPart = roles[id] == Role::OfPart;
      auto [known, isNew] = isGroupOfParts.try_emplace(*op.group, isOfPart);
      if (!isNew && known->second != isOfPart)
        against(batch.locOf(id), "it is in one group with what is not of the "
                                 "same part of the batch");
    }
  }

  /// A part reads its own share of what parts make, and nothing else of it.
  void checkRead(const placement::Edge &edge) {
    Role from = roles[edge.from];
    if (from == Role::OfAll ||
        (from == Role::OfPart && !batch.positionOf(edge.from, edge.output)))
      against(batch.locOf(edge.from),
              "it is made of the whole batch, and parts read it");
    if (from != Role::OfPart)
      return;
    if (!batch.readsOwn(edge))
      against(batch.locOf(edge.to),
              "it reads other parts of the batch than its own");
  }

  void against(Location loc, StringRef why) {
    if (llvm::none_of(obstacles,
                      [&](const auto &known) { return known.first == loc; }))
      obstacles.emplace_back(loc, why);
  }

  /// Nobody reads what replicas exchange in the same step: what follows is one
  /// operator with it.
  void join() {
    llvm::EquivalenceClasses<int32_t> classes;
    for (const placement::Edge &edge : graph.edges)
      if (roles[edge.from] == Role::OfAll && roles[edge.to] == Role::OfAll &&
          edge.output >= 0)
        classes.unionSets(edge.from, edge.to);
    // In one group they are on one device, one after the other, anyway.
    llvm::StringMap<int32_t> firstOfGroup;
    for (auto [id, op] : llvm::enumerate(graph.ops))
      if (op.group && roles[id] == Role::OfAll)
        classes.unionSets(firstOfGroup.try_emplace(*op.group, id).first->second,
                          id);
    for (int32_t id = 0, n = graph.ops.size(); id < n; ++id)
      batch.joined.push_back(classes.contains(id) ? classes.getLeaderValue(id)
                                                  : id);
    for (const placement::Edge &edge : graph.edges)
      if (roles[edge.from] == Role::OfAll && edge.output < 0 &&
          batch.joined[edge.from] != batch.joined[edge.to])
        against(batch.locOf(edge.from),
                "what parameters become is computed before others that are not "
                "one operator with it");
  }

  BatchRoles &batch;
  const placement::Graph &graph;
  SmallVectorImpl<Role> &roles;
  SmallVector<std::pair<Location, StringRef>> obstacles;
};
} // namespace

FailureOr<BatchRoles> split::findBatchRoles(func::FuncOp step, int64_t parts) {
  BatchRoles batch;
  batch.parts = parts;
  FailureOr<StepGraph> graph = buildStepGraph(step);
  if (failed(graph))
    return failure();
  batch.whole = std::move(*graph);
  PlanOptions options;
  options.pieces = std::max<int64_t>(parts, 2);
  options.reductions = options.batch = options.inParts = true;
  options.even = parts > 1;
  options.batchIsOptional = parts == 1;
  FailureOr<SplitPlan> plan = planSplits(step, options);
  if (failed(plan))
    return failure();
  batch.plan = std::move(*plan);
  batch.extent = batch.plan.cuts.empty() ? 1 : batch.plan.cuts.front().extent();
  Sorter(batch).run();
  return batch;
}
