//===- Stashing.cpp - What a step keeps in a pool -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Recomputation.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;
using placement::Stay;
using placement::TensorName;

/// Which result may be in which operand's room, as plans of the arenas take it.
static void findTakeOvers(const StepGraph &graph,
                          placement::SpillOptions &options) {
  llvm::DenseMap<Value, TensorName> nameOf;
  FunctionOpInterface step = graph.step;
  for (BlockArgument argument : step.getArguments())
    nameOf[argument] = {static_cast<int32_t>(argument.getArgNumber()), 0};
  auto id = static_cast<int32_t>(step.getNumArguments());
  SymbolTableCollection symbols;
  for (Operation *op : graph.operators) {
    for (OpResult result : op->getResults()) {
      int64_t bytes = *tensorBytes(result.getType(), true);
      llvm::SmallDenseSet<Value> seen;
      for (Value operand : op->getOperands()) {
        Value root = rootOf(operand);
        auto name = nameOf.find(root);
        if (name != nameOf.end() && seen.insert(root).second &&
            tensorBytes(root.getType(), true) == bytes &&
            mayWriteInto(op, result.getResultNumber(), root, symbols))
          options.takeOvers.push_back(
              {id, static_cast<int32_t>(result.getResultNumber()),
               name->second});
      }
    }
    for (OpResult result : op->getResults())
      nameOf[result] = {id, static_cast<int32_t>(result.getResultNumber())};
    ++id;
  }
}

void baechi::findMovable(const StepGraph &graph,
                         placement::SpillOptions &options) {
  FunctionOpInterface step = graph.step;
  size_t count = graph.graph.ops.size();
  unsigned arguments = step.getNumArguments();
  options.mayMove.assign(count, 0);
  options.nextValue.assign(count, {});
  options.staysHere.assign(count, 0);
  findTakeOvers(graph, options);
  llvm::DenseMap<Operation *, int32_t> idOf;
  for (auto [position, op] : llvm::enumerate(graph.operators))
    idOf[op] = arguments + position;
  SmallVector<int> updates(arguments, 0);
  for (const InPlaceUpdate &update : inPlaceUpdates(step))
    ++updates[update.argument];
  Operation *terminator = step.getFunctionBody().front().getTerminator();
  llvm::DenseMap<Value, int> wanted;
  auto nextOf = [&](unsigned argument) -> Value {
    auto by =
        step.getArgAttrOfType<IntegerAttr>(argument, BaechiDialect::kUpdatedBy);
    return by ? rootOf(terminator->getOperand(by.getInt())) : Value();
  };
  for (unsigned argument = 0; argument < arguments; ++argument)
    if (Value next = nextOf(argument))
      ++wanted[next];
  for (unsigned argument = 0; argument < arguments; ++argument) {
    bool isPinned = bool(step.getArgAttr(argument, BaechiDialect::kPin));
    Value next = nextOf(argument);
    if (!next) {
      options.mayMove[argument] = !isPinned;
      continue;
    }
    auto made = idOf.find(next.getDefiningOp());
    if (made == idOf.end())
      continue;
    options.staysHere[made->second] = 1;
    if (isPinned || updates[argument] > 1 || wanted[next] > 1)
      continue;
    options.mayMove[argument] = 1;
    options.nextValue[argument] = {
        made->second,
        static_cast<int32_t>(cast<OpResult>(next).getResultNumber())};
  }
}

bool baechi::isStash(Operation *op) {
  func::FuncOp kernel = kernelOf(op);
  return kernel && kernel->hasAttr(BaechiDialect::kStash);
}

namespace {
/// Where a placer is to put what waits, and what comes back from there.
struct Late {
  const placement::Device &pool;
  const placement::Link &in;
};

class Stasher {
public:
  Stasher(ModuleOp module, const StepGraph &graph,
          const placement::SpillPlan &plan, StringRef kind,
          const Late *late = nullptr)
      : table(module), graph(graph), plan(plan), kind(kind), late(late),
        step(graph.step), builder(step->getContext()), names(namesOf(step)) {}

  SmallVector<func::CallOp> run() {
    createStashes();
    for (auto [position, id] : llvm::enumerate(plan.order))
      if (Operation *op = graph.operation(id))
        readCurrent(op, position);
    returnFromPool();
    for (int32_t argument : plan.inPool) {
      step.removeArgAttr(argument,
                         builder.getStringAttr(BaechiDialect::kGroup));
      if (late)
        step.setArgAttr(argument, BaechiDialect::kPin,
                        builder.getStringAttr(late->pool.name));
    }
    return std::move(stashes);
  }

private:
  Value valueOf(TensorName name) {
    Operation *op = graph.operation(name.op);
    return op ? Value(op->getResult(name.output))
              : Value(step.getArgument(name.op));
  }

  /// The kernel that keeps a tensor, in the place of an argument or not.
  func::FuncOp kernelFor(Type type, unsigned operands) {
    func::FuncOp &kernel = kernels[{type, operands}];
    if (kernel)
      return kernel;
    SmallVector<Type> inputs(operands, type);
    SmallVector<int64_t> places{0, 1};
    OpBuilder detached(builder.getContext());
    kernel =
        func::FuncOp::create(detached, step.getLoc(), "baechi_stash",
                             detached.getFunctionType(inputs, TypeRange(type)));
    kernel.setPrivate();
    kernel->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
    kernel->setAttr(BaechiDialect::kStash, builder.getUnitAttr());
    kernel.setResultAttr(
        0, BaechiDialect::kMayAlias,
        builder.getDenseI64ArrayAttr(ArrayRef(places).take_front(operands)));
    table.insert(kernel);
    return kernel;
  }

  func::CallOp create(const Stay &stay, ValueRange operands, Type type,
                      int64_t ns) {
    auto stash =
        func::CallOp::create(builder, operands[0].getLoc(),
                             kernelFor(type, operands.size()), operands);
    NamedAttrList times;
    times.set(kind, builder.getI64IntegerAttr(ns));
    stash->setAttr(BaechiDialect::kCost,
                   CostAttr::get(builder.getContext(),
                                 times.getDictionary(builder.getContext()),
                                 /*scratch=*/0, ArrayAttr()));
    stash->setAttr(BaechiDialect::kName,
                   builder.getStringAttr(names[stay.tensor.op] + "/stash"));
    if (late)
      stash->setAttr(BaechiDialect::kPin,
                     builder.getStringAttr(late->pool.name));
    return stash;
  }

  /// What comes back for an operator at a position, made when the one before
  /// has run.
  func::CallOp createLate(const Stay &stay, Value latest) {
    Operation *next = terminator();
    for (auto position = static_cast<size_t>(stay.fetch);
         position < plan.order.size(); ++position)
      if (Operation *op = graph.operation(plan.order[position])) {
        next = op;
        break;
      }
    builder.setInsertionPoint(next);
    // An argument stays where it is, other tensors are made in their place.
    int64_t ns = 0;
    if (isa<BlockArgument>(latest))
      ns = late->in.copyNs(*tensorBytes(latest.getType(), false));
    func::CallOp stash = create(stay, {latest}, latest.getType(), ns);
    stash->setAttr(BaechiDialect::kRecompute, builder.getUnitAttr());
    return stash;
  }

  void createStashes() {
    TensorName before;
    Value latest;
    for (const Stay &stay : plan.stays) {
      bool isFirst = !(stay.tensor == before);
      before = stay.tensor;
      Value root = valueOf(stay.tensor);
      func::CallOp stash;
      if (isFirst) {
        latest = root;
        if (Operation *op = root.getDefiningOp())
          builder.setInsertionPointAfter(op);
        else
          builder.setInsertionPointToStart(&step.getFunctionBody().front());
      }
      // Of the others, what comes back late is made of what came before.
      bool isKept = !late || (isFirst && root.getDefiningOp());
      if (stay.stashStartNs >= 0 && isKept) {
        if (Operation *op = latest.getDefiningOp())
          builder.setInsertionPointAfter(op);
        stash = isUpdate(stay.tensor)
                    ? createUpdate(stay)
                    : create(stay, {latest}, root.getType(), stay.stashNs);
        latest = stash.getResult(0);
      }
      if (late && stay.use >= 0)
        latest = createLate(stay, latest).getResult(0);
      stashes.push_back(stash);
      if (stay.use >= 0)
        versions[root].push_back({stay.use, latest});
      if (root.getDefiningOp())
        inPool[root] = latest;
    }
  }

  bool isUpdate(TensorName name) {
    for (int32_t argument : plan.inPool)
      if (nextOf(argument) == valueOf(name))
        return true;
    return false;
  }

  Operation *terminator() {
    return step.getFunctionBody().front().getTerminator();
  }
  std::optional<unsigned> nextPosition(int32_t argument) {
    auto by =
        step.getArgAttrOfType<IntegerAttr>(argument, BaechiDialect::kUpdatedBy);
    return by ? std::optional<unsigned>(by.getInt()) : std::nullopt;
  }
  Value nextOf(int32_t argument) {
    auto position = nextPosition(argument);
    return position ? rootOf(terminator()->getOperand(*position)) : Value();
  }

  /// The next value is kept as it is returned, in the argument's place.
  func::CallOp createUpdate(const Stay &stay) {
    Value root = valueOf(stay.tensor);
    for (int32_t argument : plan.inPool) {
      if (nextOf(argument) != root)
        continue;
      unsigned position = *nextPosition(argument);
      Value returned = terminator()->getOperand(position);
      builder.setInsertionPoint(terminator());
      func::CallOp stash = create(stay, {returned, step.getArgument(argument)},
                                  returned.getType(), stay.stashNs);
      terminator()->setOperand(position, stash.getResult(0));
      return stash;
    }
    llvm_unreachable("no argument is updated by it");
  }

  void readCurrent(Operation *op, int32_t position) {
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        if (operand.get().getParentBlock() != op->getBlock())
          continue;
        auto found = versions.find(rootOf(operand.get()));
        if (found == versions.end())
          continue;
        Value current;
        for (auto [use, value] : found->second)
          if (use <= position)
            current = value;
        if (current && current != found->first)
          operand.set(through(operand.get(), current));
      }
    });
  }

  /// \p value, a view of a root or the root, of \p current instead.
  Value through(Value value, Value current) {
    SmallVector<Operation *> views;
    for (Operation *op = value.getDefiningOp(); op && isView(op);
         op = op->getOperand(0).getDefiningOp())
      views.push_back(op);
    builder.setInsertionPointAfter(current.getDefiningOp());
    for (Operation *view : llvm::reverse(views)) {
      Value &known = viewed[{view->getResult(0), current}];
      if (!known) {
        Operation *clone = builder.clone(*view);
        clone->setOperand(0, current);
        known = clone->getResult(0);
      }
      current = known;
      builder.setInsertionPointAfter(current.getDefiningOp());
    }
    return current;
  }

  /// A result that has a copy there is returned from there.
  void returnFromPool() {
    for (OpOperand &operand : terminator()->getOpOperands()) {
      auto found = inPool.find(rootOf(operand.get()));
      if (found != inPool.end())
        operand.set(through(operand.get(), found->second));
    }
  }

  SymbolTable table;
  const StepGraph &graph;
  const placement::SpillPlan &plan;
  StringRef kind; ///< of the pool
  const Late *late;
  FunctionOpInterface step;
  OpBuilder builder;
  SmallVector<std::string> names;
  SmallVector<func::CallOp> stashes;
  /// Of roots: from which position on who reads which tensor.
  llvm::DenseMap<Value, SmallVector<std::pair<int32_t, Value>>> versions;
  llvm::DenseMap<std::pair<Type, unsigned>, func::FuncOp> kernels;
  llvm::DenseMap<Value, Value> inPool; ///< of roots: the latest stash
  llvm::DenseMap<std::pair<Value, Value>, Value> viewed;
};
} // namespace

SmallVector<func::CallOp> baechi::stashTensors(ModuleOp module,
                                               const StepGraph &graph,
                                               const placement::SpillPlan &plan,
                                               StringRef kind) {
  return Stasher(module, graph, plan, kind).run();
}

void baechi::stashTensorsLate(ModuleOp module, const StepGraph &graph,
                              const placement::SpillPlan &plan,
                              const placement::Device &pool,
                              const placement::Link &in) {
  Late late{pool, in};
  Stasher stasher(module, graph, plan, pool.kind, &late);
  repeatOperators(graph, plan.order);
  stasher.run();
}
