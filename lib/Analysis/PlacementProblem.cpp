//===- PlacementProblem.cpp - A step as a placement problem -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Recomputation.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Graph ids of a step's arguments and operators.
struct Ids {
  explicit Ids(FunctionOpInterface step, ArrayRef<Operation *> operators)
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

LogicalResult addOperator(placement::Graph &graph, Operation *op,
                          std::string name) {
  auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
  if (!cost)
    return op->emitOpError()
           << "has no 'baechi.cost'; run --baechi-annotate-costs before "
              "placing";
  constexpr int64_t most = int64_t(1) << 48; // as of tensors (tensorBytes)
  if (cost.getScratch() > most)
    return op->emitOpError()
           << "needs " << cost.getScratch() << " bytes of scratch, at most "
           << most << " can be placed";
  placement::Operator node;
  node.name = std::move(name);
  for (NamedAttribute entry : cost.getTimeNs())
    node.timeNs.emplace_back(entry.getName().str(),
                             cast<IntegerAttr>(entry.getValue()).getInt());
  node.scratch = llvm::alignTo(cost.getScratch(), kAlignment);
  for (Value result : op->getResults()) {
    int64_t held = *tensorBytes(result.getType(), true);
    node.outputs.emplace_back(*tensorBytes(result.getType(), false), held,
                              held);
  }
  graph.ops.push_back(std::move(node));
  return success();
}

void addArgument(placement::Graph &graph, BlockArgument argument,
                 std::string name) {
  placement::Operator node;
  node.name = std::move(name);
  node.timeNs.emplace_back("", 0);
  node.resident = *tensorBytes(argument.getType(), true);
  node.outputs.emplace_back(*tensorBytes(argument.getType(), false), 0,
                            node.resident);
  graph.ops.push_back(std::move(node));
}
} // namespace

SmallVector<int32_t> baechi::requiredGroups(FunctionOpInterface step,
                                            ArrayRef<Operation *> operators) {
  Ids ids(step, operators);
  int32_t n = ids.arguments + operators.size();
  llvm::EquivalenceClasses<int32_t> classes;
  llvm::StringMap<int32_t> named;
  for (int32_t id = 0; id < n; ++id)
    if (StringAttr group =
            stringAttrOf(step, operators, id, BaechiDialect::kGroup)) {
      auto [entry, first] = named.try_emplace(group.getValue(), id);
      classes.insert(id);
      if (!first)
        classes.unionSets(entry->second, id);
    }
  Operation *terminator = step.getFunctionBody().front().getTerminator();
  for (int32_t id = 0; id < ids.arguments; ++id)
    if (auto by =
            step.getArgAttrOfType<IntegerAttr>(id, BaechiDialect::kUpdatedBy)) {
      std::optional<int32_t> updater =
          ids.producer(rootOf(terminator->getOperand(by.getInt())));
      if (updater)
        classes.unionSets(id, *updater);
    }
  // What is computed in an argument's buffer is computed where that is.
  for (const InPlaceUpdate &update : inPlaceUpdates(step))
    classes.unionSets(update.argument, ids.ofOperation.lookup(update.updater));
  // Operators with effects see each other's only where they share a memory.
  std::optional<int32_t> effect;
  for (Operation *op : operatorsWithEffects(step)) {
    int32_t id = ids.ofOperation.lookup(op);
    if (effect)
      classes.unionSets(*effect, id);
    effect = id;
  }
  SmallVector<int32_t> groups(n, -1);
  for (int32_t id = 0; id < n; ++id)
    if (classes.contains(id))
      groups[id] = classes.getLeaderValue(id);
  return groups;
}

llvm::DenseMap<int32_t, std::string>
baechi::groupNames(FunctionOpInterface step, ArrayRef<Operation *> operators,
                   ArrayRef<int32_t> groups, ArrayRef<std::string> names) {
  llvm::DenseMap<int32_t, std::string> called;
  llvm::StringSet<> taken;
  for (auto [id, group] : llvm::enumerate(groups))
    if (StringAttr given =
            stringAttrOf(step, operators, id, BaechiDialect::kGroup)) {
      taken.insert(given.getValue());
      if (group >= 0)
        called.try_emplace(group, given.str());
    }
  for (auto [id, group] : llvm::enumerate(groups)) {
    if (group < 0 || called.contains(group))
      continue;
    std::string name = names[id];
    for (int64_t count = 1; !taken.insert(name).second; ++count)
      name = names[id] + "#" + std::to_string(count);
    called[group] = std::move(name);
  }
  return called;
}

StringAttr baechi::stringAttrOf(FunctionOpInterface step,
                                ArrayRef<Operation *> operators, int32_t id,
                                StringRef name) {
  int32_t arguments = step.getNumArguments();
  return id < arguments
             ? step.getArgAttrOfType<StringAttr>(id, name)
             : operators[id - arguments]->getAttrOfType<StringAttr>(name);
}

StringAttr baechi::stringAttrOf(const StepGraph &graph, int32_t id,
                                StringRef name) {
  return stringAttrOf(graph.step, graph.operators, id, name);
}

FailureOr<StepGraph> baechi::buildStepGraph(ModuleOp module) {
  FailureOr<FunctionOpInterface> step = findStep(module);
  if (failed(step))
    return failure();
  return buildStepGraph(*step);
}

FailureOr<StepGraph> baechi::buildStepGraph(FunctionOpInterface step) {
  if (failed(checkPlaceable(step)))
    return failure();
  StepGraph result;
  result.step = step;
  result.operators = operatorsOf(step);
  Ids ids(step, result.operators);
  placement::Graph &graph = result.graph;
  SmallVector<std::string> names = namesOf(step);

  for (BlockArgument argument : step.getArguments())
    addArgument(graph, argument, names[graph.ops.size()]);
  for (Operation *op : result.operators)
    if (failed(addOperator(graph, op, names[graph.ops.size()])))
      return failure();

  for (auto [position, op] : llvm::enumerate(result.operators)) {
    llvm::SmallDenseSet<Value> seen;
    for (Value value : valuesReadBy(op)) {
      Value root = rootOf(value);
      std::optional<int32_t> from = ids.producer(root);
      if (!from || !seen.insert(root).second)
        continue;
      auto asResult = dyn_cast<OpResult>(root);
      graph.edges.push_back({*from,
                             asResult ? int32_t(asResult.getResultNumber()) : 0,
                             int32_t(ids.arguments + position)});
    }
  }

  for (Value returned :
       step.getFunctionBody().front().getTerminator()->getOperands())
    if (std::optional<int32_t> producer = ids.producer(rootOf(returned)))
      graph.ops[*producer].result = true;

  for (const InPlaceUpdate &update : inPlaceUpdates(step)) {
    int32_t updater = ids.ofOperation.lookup(update.updater);
    graph.ops[updater].outputs[update.result].memory = 0;
    for (Operation *reader : readersOf(update.previous, update.updater))
      graph.edges.push_back({ids.ofOperation.lookup(reader), -1, updater});
  }

  for (const LateClone &late : lateClones(step))
    graph.edges.push_back({ids.ofOperation.lookup(late.before), -1,
                           ids.ofOperation.lookup(late.clone)});

  int32_t before = -1;
  for (Operation *op : operatorsWithEffects(step)) {
    int32_t id = ids.ofOperation.lookup(op);
    if (before >= 0)
      graph.edges.push_back({before, -1, id});
    before = id;
  }

  SmallVector<int32_t> groups = requiredGroups(step, result.operators);
  llvm::DenseMap<int32_t, std::string> called =
      groupNames(step, result.operators, groups, names);
  for (auto [id, node] : llvm::enumerate(graph.ops)) {
    if (groups[id] >= 0)
      node.group = called[groups[id]];
    if (StringAttr pin = stringAttrOf(result, id, BaechiDialect::kPin))
      node.pin = pin.str();
    node.backward = StringRef(node.name).starts_with("backward/");
  }
  return result;
}

void baechi::writePlacement(const StepGraph &graph,
                            const placement::Machine &machine, StringRef placer,
                            const placement::PlaceResult &result) {
  FunctionOpInterface step = graph.step;
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
        step.getContext(), transfer.output, machine.devices[transfer.from].name,
        machine.devices[transfer.to].name, transfer.startNs, transfer.endNs));
  for (int32_t id = 0, n = placement.device.size(); id < n; ++id) {
    set(id, BaechiDialect::kDevice,
        builder.getStringAttr(machine.devices[placement.device[id]].name));
    if (id >= arguments)
      set(id, BaechiDialect::kStart,
          builder.getI64IntegerAttr(placement.startNs[id]));
    auto it = sends.find(id);
    if (it != sends.end())
      set(id, BaechiDialect::kSends, builder.getArrayAttr(it->second));
    else if (id < arguments) // An earlier placement may have left some.
      step.removeArgAttr(id, BaechiDialect::kSends);
    else
      removeAttribute(graph.operation(id), BaechiDialect::kSends);
  }
  SmallVector<int64_t> peaks;
  for (const placement::DeviceUsage &usage : result.usage)
    peaks.push_back(usage.peakBytes);
  step->setAttr(BaechiDialect::kCertificate,
                PlacementCertificateAttr::get(
                    step.getContext(), placer, result.winner,
                    placement.makespanNs,
                    std::min(result.lowerBoundNs, placement.makespanNs),
                    result.lowerBoundName, result.singleDeviceNs.value_or(0),
                    result.operatorsBefore, result.operatorsAfter,
                    builder.getDenseI64ArrayAttr(peaks)));
}

namespace {
/// Reads devices, starts and transfers off a step.
class PlacementReader {
public:
  PlacementReader(const StepGraph &graph, const placement::Machine &machine)
      : graph(graph), machine(machine) {
    for (auto [index, device] : llvm::enumerate(machine.devices))
      indexOf[device.name] = index;
  }

  FailureOr<placement::Placement> run() {
    for (int32_t id = 0, n = graph.graph.ops.size(); id < n; ++id)
      if (failed(readOperator(id)))
        return failure();
    llvm::sort(placement.transfers,
               [](const placement::Transfer &a, const placement::Transfer &b) {
                 return std::tie(a.startNs, a.endNs, a.op, a.output, a.to) <
                        std::tie(b.startNs, b.endNs, b.op, b.output, b.to);
               });
    return std::move(placement);
  }

private:
  InFlightDiagnostic error(int32_t id) {
    Operation *op = graph.operation(id);
    Location loc =
        op ? op->getLoc()
           : FunctionOpInterface(graph.step).getArgument(id).getLoc();
    return emitError(loc) << "'" << graph.graph.ops[id].name << "' ";
  }

  /// The position of \p device; nullopt with an error for an unknown one.
  std::optional<int32_t> deviceNamed(int32_t id, StringRef device,
                                     StringRef what) {
    auto it = indexOf.find(device);
    if (it != indexOf.end())
      return it->second;
    error(id) << what << " '" << device << "', which the machine does not have";
    return std::nullopt;
  }

  LogicalResult readOperator(int32_t id) {
    StringAttr name = stringAttrOf(graph, id, BaechiDialect::kDevice);
    if (!name)
      return error(id) << "is on no device; run --baechi-place";
    std::optional<int32_t> device = deviceNamed(id, name.getValue(), "is on");
    if (!device)
      return failure();
    int64_t start = 0;
    if (Operation *op = graph.operation(id)) {
      auto attr = op->getAttrOfType<IntegerAttr>(BaechiDialect::kStart);
      if (!attr)
        return error(id) << "has no 'baechi.start'; run --baechi-place";
      start = attr.getInt();
    }
    const std::string &kind = machine.devices[*device].kind;
    auto time = llvm::find_if(graph.graph.ops[id].timeNs, [&](auto &entry) {
      return entry.first == kind || entry.first.empty();
    });
    if (time == graph.graph.ops[id].timeNs.end())
      return error(id) << "cannot run on '" << name.getValue()
                       << "': no time for kind '" << kind << "'";
    placement.device.push_back(*device);
    placement.startNs.push_back(start);
    endBy(start + time->second);
    return readTransfers(id);
  }

  LogicalResult readTransfers(int32_t id) {
    Operation *op = graph.operation(id);
    auto sends =
        op ? op->getAttrOfType<ArrayAttr>(BaechiDialect::kSends)
           : FunctionOpInterface(graph.step)
                 .getArgAttrOfType<ArrayAttr>(id, BaechiDialect::kSends);
    if (!sends)
      return success();
    for (auto transfer : sends.getAsRange<TransferAttr>()) {
      if (transfer.getResult() >=
          static_cast<int64_t>(graph.graph.ops[id].outputs.size()))
        return error(id) << "has a transfer of result " << transfer.getResult()
                         << ", which it does not have";
      auto from = deviceNamed(id, transfer.getFrom(), "has a transfer from");
      auto to = deviceNamed(id, transfer.getTo(), "has a transfer to");
      if (!from || !to)
        return failure();
      placement.transfers.push_back(
          {id, static_cast<int32_t>(transfer.getResult()), *from, *to,
           transfer.getStart(), transfer.getEnd()});
      endBy(transfer.getEnd());
    }
    return success();
  }

  void endBy(int64_t end) {
    placement.makespanNs = std::max(placement.makespanNs, end);
  }

  const StepGraph &graph;
  const placement::Machine &machine;
  llvm::StringMap<int32_t> indexOf;
  placement::Placement placement;
};
} // namespace

FailureOr<placement::Placement>
baechi::readPlacement(const StepGraph &graph,
                      const placement::Machine &machine) {
  return PlacementReader(graph, machine).run();
}
