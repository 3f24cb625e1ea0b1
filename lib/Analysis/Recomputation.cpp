//===- Recomputation.cpp - What a step computes again ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Recomputation.h"
#include "Baechi/Analysis/InPlace.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

SmallVector<LateClone> baechi::lateClones(FunctionOpInterface step) {
  SmallVector<LateClone> late;
  Operation *before = nullptr;
  for (Operation *op : operatorsOf(step)) {
    if (before && op->hasAttr(BaechiDialect::kRecompute))
      late.push_back({before, op});
    before = op;
  }
  return late;
}

std::vector<uint8_t> baechi::operatorsToRepeat(const StepGraph &graph) {
  FunctionOpInterface step = graph.step;
  llvm::DenseSet<Operation *> never;
  for (Operation *op : operatorsWithEffects(step))
    never.insert(op);
  for (const InPlaceUpdate &update : inPlaceUpdates(step))
    never.insert(update.updater);
  std::vector<uint8_t> repeat(graph.graph.ops.size(), 0);
  SymbolTableCollection symbols;
  for (auto [position, op] : llvm::enumerate(graph.operators)) {
    func::FuncOp kernel = kernelOf(op, symbols);
    repeat[step.getNumArguments() + position] =
        kernel && !isHostCall(kernel) && !never.contains(op);
  }
  return repeat;
}

namespace {
/// Puts a step's operators into the order of their runs.
class Repeater {
public:
  explicit Repeater(const StepGraph &graph)
      : graph(graph), step(graph.step),
        end(step.getFunctionBody().front().getTerminator()), builder(end) {}

  void run(ArrayRef<int32_t> runs) {
    placeConstantsAndViews();
    for (int32_t id : runs)
      if (Operation *op = graph.operation(id))
        runOnce(op);
    readCurrent(end);
    for (Operation *view : llvm::reverse(replaced))
      if (view->use_empty())
        view->erase();
  }

private:
  /// They do nothing: what they need is known at once, or when an operator has
  /// run.
  void placeConstantsAndViews() {
    Block &block = step.getFunctionBody().front();
    SmallVector<Operation *> constants;
    for (Operation &op : block)
      if (isView(&op)) {
        viewsOf[rootOf(op.getResult(0))].push_back(&op);
        replaced.push_back(&op);
      } else if (matchPattern(&op, m_Constant())) {
        constants.push_back(&op);
      }
    for (Operation *constant : constants)
      constant->moveBefore(end);
    for (Operation *constant : constants)
      for (Value result : constant->getResults())
        placeViewsOf(result);
    for (Value argument : step.getArguments())
      placeViewsOf(argument);
  }

  void placeViewsOf(Value root) {
    auto found = viewsOf.find(root);
    if (found == viewsOf.end())
      return;
    for (Operation *view : found->second)
      view->moveBefore(end);
  }

  void runOnce(Operation *op) {
    if (hasRun.insert(op).second) {
      readCurrent(op);
      op->moveBefore(end);
      for (Value result : op->getResults())
        placeViewsOf(result);
      return;
    }
    // What it reads now may have been made again since it ran first.
    SmallVector<Value> operands =
        llvm::map_to_vector(originals.lookup(op),
                            [&](Value operand) { return currentOf(operand); });
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    clone->setAttr(BaechiDialect::kRecompute, builder.getUnitAttr());
    for (auto [before, now] : llvm::zip(op->getResults(), clone->getResults()))
      current[before] = now;
  }

  /// Makes an operator read what the latest runs made.
  void readCurrent(Operation *op) {
    SmallVector<Value> &own = originals[op];
    llvm::append_range(own, op->getOperands());
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (operand.get().getParentBlock() == &step.getFunctionBody().front())
          operand.set(currentOf(operand.get()));
    });
  }

  Value currentOf(Value value) {
    Value root = rootOf(value);
    auto latest = current.find(root);
    if (latest == current.end())
      return value;
    if (value == root)
      return latest->second;
    auto [known, isNew] = views.try_emplace({value, latest->second});
    if (isNew) {
      Operation *view = value.getDefiningOp();
      Value source = currentOf(view->getOperand(0));
      Operation *clone = builder.clone(*view);
      clone->setOperand(0, source);
      views[{value, latest->second}] = clone->getResult(0);
      return clone->getResult(0);
    }
    return known->second;
  }

  const StepGraph &graph;
  FunctionOpInterface step;
  Operation *end;
  OpBuilder builder;
  llvm::DenseSet<Operation *> hasRun;
  llvm::DenseMap<Value, Value> current; ///< of roots that were made again
  llvm::DenseMap<std::pair<Value, Value>, Value> views;      ///< of these
  llvm::DenseMap<Value, SmallVector<Operation *>> viewsOf;   ///< root: in order
  llvm::DenseMap<Operation *, SmallVector<Value>> originals; ///< operands
  SmallVector<Operation *> replaced; ///< views that may be of no more use
};
} // namespace

void baechi::repeatOperators(const StepGraph &graph, ArrayRef<int32_t> runs) {
  Repeater(graph).run(runs);
}
