//===- PlacementProblem.cpp - A step as a placement problem, and back -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Graph ids of a step's arguments and operators.
struct Ids {
  explicit Ids(func::FuncOp step, ArrayRef<Operation *> operators)
      : arguments(step.getNumArguments()) {
    for (auto [position, op] : llvm::enumerate(operators))
      ofOperation[op] = arguments + position;
  }
  /// The graph operator that produces \p root; nullopt for constants.
  std::optional<int32_t> producer(Value root) const {
    if (auto argument = dyn_cast<BlockArgument>(root))
      return argument.getArgNumber();
    auto it = ofOperation.find(root.getDefiningOp());
    if (it == ofOperation.end())
      return std::nullopt;
    return it->second;
  }
  int32_t arguments;
  llvm::DenseMap<Operation *, int32_t> ofOperation;
};

StringAttr attrOf(func::FuncOp step, ArrayRef<Operation *> operators,
                  int32_t id, StringRef name) {
  int32_t arguments = step.getNumArguments();
  return id < arguments ? step.getArgAttrOfType<StringAttr>(id, name)
                        : operators[id - arguments]->getAttrOfType<StringAttr>(
                              name);
}

LogicalResult addOperator(placement::Graph &graph, Operation *op,
                          std::string name) {
  auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
  if (!cost)
    return op->emitOpError()
           << "has no 'baechi.cost'; run --baechi-annotate-costs before "
              "placing";
  placement::Operator node;
  node.name = std::move(name);
  for (NamedAttribute entry : cost.getTimeNs())
    node.timeNs.emplace_back(entry.getName().str(),
                             cast<IntegerAttr>(entry.getValue()).getInt());
  node.scratch = llvm::alignTo(cost.getScratch(), kAlignment);
  for (Value result : op->getResults()) {
    std::optional<int64_t> moved = tensorBytes(result.getType(), false);
    std::optional<int64_t> held = tensorBytes(result.getType(), true);
    if (!moved || !held)
      return op->emitOpError() << "has a result of type " << result.getType()
                               << "; only tensors of static shape can be "
                                  "placed";
    node.outputs.emplace_back(*moved, *held, *held);
  }
  graph.ops.push_back(std::move(node));
  return success();
}

LogicalResult addArgument(placement::Graph &graph, BlockArgument argument,
                          std::string name) {
  std::optional<int64_t> moved = tensorBytes(argument.getType(), false);
  std::optional<int64_t> held = tensorBytes(argument.getType(), true);
  if (!moved || !held)
    return emitError(argument.getLoc())
           << "argument " << argument.getArgNumber() << " of the step has type "
           << argument.getType()
           << "; only tensors of static shape can be placed";
  placement::Operator node;
  node.name = std::move(name);
  node.timeNs.emplace_back("", 0);
  node.resident = *held;
  node.outputs.emplace_back(*moved, 0, *held);
  graph.ops.push_back(std::move(node));
  return success();
}
} // namespace

SmallVector<int32_t>
baechi::requiredGroups(func::FuncOp step, ArrayRef<Operation *> operators) {
  Ids ids(step, operators);
  int32_t n = ids.arguments + operators.size();
  llvm::EquivalenceClasses<int32_t> classes;
  llvm::StringMap<int32_t> named;
  for (int32_t id = 0; id < n; ++id)
    if (StringAttr group =
            attrOf(step, operators, id, BaechiDialect::kGroup)) {
      auto [entry, first] = named.try_emplace(group.getValue(), id);
      classes.insert(id);
      if (!first)
        classes.unionSets(entry->second, id);
    }
  Operation *terminator = step.getBody().front().getTerminator();
  for (int32_t id = 0; id < ids.arguments; ++id)
    if (auto by = step.getArgAttrOfType<IntegerAttr>(
            id, BaechiDialect::kUpdatedBy)) {
      std::optional<int32_t> updater =
          ids.producer(rootOf(terminator->getOperand(by.getInt())));
      if (updater)
        classes.unionSets(id, *updater);
    }
  SmallVector<int32_t> groups(n, -1);
  for (int32_t id = 0; id < n; ++id)
    if (classes.contains(id))
      groups[id] = classes.getLeaderValue(id);
  return groups;
}

StringAttr baechi::stringAttrOf(const StepGraph &graph, int32_t id,
                                StringRef name) {
  return attrOf(graph.step, graph.operators, id, name);
}

FailureOr<StepGraph> baechi::buildStepGraph(func::FuncOp step) {
  StepGraph result;
  result.step = step;
  result.operators = operatorsOf(step);
  Ids ids(step, result.operators);
  placement::Graph &graph = result.graph;
  SmallVector<std::string> names = namesOf(step);

  for (BlockArgument argument : step.getArguments())
    if (failed(addArgument(graph, argument, names[graph.ops.size()])))
      return failure();
  for (Operation *op : result.operators)
    if (failed(addOperator(graph, op, names[graph.ops.size()])))
      return failure();

  for (auto [position, op] : llvm::enumerate(result.operators)) {
    llvm::SmallDenseSet<Value> seen;
    // Values that regions capture are operands too.
    llvm::SmallVector<Value> operands(op->getOperands());
    op->walk([&](Operation *inner) {
      if (inner != op)
        for (Value operand : inner->getOperands())
          if (operand.getParentBlock() == op->getBlock())
            operands.push_back(operand);
    });
    for (Value operand : operands) {
      Value root = rootOf(operand);
      std::optional<int32_t> from = ids.producer(root);
      if (!from || !seen.insert(root).second)
        continue;
      auto asResult = dyn_cast<OpResult>(root);
      graph.edges.push_back(
          {*from, asResult ? int32_t(asResult.getResultNumber()) : 0,
           int32_t(ids.arguments + position)});
    }
  }

  for (Value returned : step.getBody().front().getTerminator()->getOperands())
    if (std::optional<int32_t> producer = ids.producer(rootOf(returned)))
      graph.ops[*producer].result = true;

  for (const InPlaceUpdate &update : inPlaceUpdates(step)) {
    int32_t updater = ids.ofOperation.lookup(update.updater);
    graph.ops[updater].outputs[update.result].memory = 0;
    for (Operation *reader :
         readersOf(step.getArgument(update.argument), update.updater))
      graph.edges.push_back({ids.ofOperation.lookup(reader), -1, updater});
  }

  SmallVector<int32_t> groups = requiredGroups(step, result.operators);
  for (auto [id, node] : llvm::enumerate(graph.ops)) {
    if (groups[id] >= 0)
      node.group = names[groups[id]];
    if (StringAttr pin = stringAttrOf(result, id, BaechiDialect::kPin))
      node.pin = pin.str();
    node.backward = StringRef(node.name).contains("transpose(");
  }
  return result;
}

void baechi::writePlacement(const StepGraph &graph,
                            const placement::Machine &machine,
                            StringRef placer,
                            const placement::PlaceResult &result) {
  func::FuncOp step = graph.step;
  Builder builder(step.getContext());
  const placement::Placement &placement = *result.placement;
  int32_t arguments = step.getNumArguments();
  auto set = [&](int32_t id, StringRef name, Attribute value) {
    if (id < arguments)
      step.setArgAttr(id, name, value);
    else
      graph.operation(id)->setAttr(name, value);
  };
  llvm::DenseMap<int32_t, SmallVector<Attribute>> sends;
  for (const placement::Transfer &transfer : placement.transfers)
    sends[transfer.op].push_back(TransferAttr::get(
        step.getContext(), transfer.output,
        machine.devices[transfer.from].name, machine.devices[transfer.to].name,
        transfer.startNs, transfer.endNs));
  for (int32_t id = 0, n = placement.device.size(); id < n; ++id) {
    set(id, BaechiDialect::kDevice,
        builder.getStringAttr(machine.devices[placement.device[id]].name));
    if (id >= arguments)
      set(id, BaechiDialect::kStart,
          builder.getI64IntegerAttr(placement.startNs[id]));
    auto it = sends.find(id);
    if (it != sends.end())
      set(id, BaechiDialect::kSends, builder.getArrayAttr(it->second));
  }
  step->setAttr(
      BaechiDialect::kCertificate,
      PlacementCertificateAttr::get(
          step.getContext(), placer, result.winner, placement.makespanNs,
          std::min(result.lowerBoundNs, placement.makespanNs),
          result.lowerBoundName, result.singleDeviceNs.value_or(0),
          result.operatorsBefore, result.operatorsAfter));
}
