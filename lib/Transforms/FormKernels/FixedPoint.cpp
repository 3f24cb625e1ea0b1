//===- FixedPoint.cpp - Rewriting until nothing matches -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixedPoint.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// Operations that patterns look through, to the other readers of a result. The
/// readers of a constant have nothing to do with each other.
static bool connectsReaders(Operation *op) {
  return isa<linalg::GenericOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op);
}

namespace {
/// Remembers the operations of a block that changed, and those whose readers
/// did.
class Changes : public RewriterBase::Listener {
public:
  explicit Changes(Block &block) : block(block) {}

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    add(op);
  }
  void notifyOperationModified(Operation *op) override { add(op); }
  void notifyOperationReplaced(Operation *op, ValueRange values) override {
    for (Value value : values)
      if (Operation *producer = value.getDefiningOp())
        add(producer);
    for (Operation *user : op->getUsers())
      add(user);
  }
  void notifyOperationErased(Operation *op) override {
    changed.erase(op);
    if (op->getBlock() == &block)
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          add(producer);
  }

  /// Those that changed, what they read, and what else reads that, first ones
  /// first; forgets them.
  SmallVector<Operation *> takeNearby() {
    llvm::DenseSet<Operation *> near = changed;
    llvm::DenseSet<Operation *> looked;
    auto addReaders = [&](Operation *op) {
      if (op->getBlock() == &block && looked.insert(op).second &&
          connectsReaders(op))
        for (Operation *user : op->getUsers())
          if (user->getBlock() == &block)
            near.insert(user);
    };
    for (Operation *op : changed) {
      addReaders(op);
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp()) {
          near.insert(producer);
          addReaders(producer);
        }
    }
    changed.clear();
    SmallVector<Operation *> ordered = llvm::to_vector(near);
    llvm::sort(ordered, [](Operation *x, Operation *y) {
      return x->isBeforeInBlock(y);
    });
    return ordered;
  }

private:
  void add(Operation *op) {
    if (op->getBlock() == &block)
      changed.insert(op);
  }

  Block &block;
  llvm::DenseSet<Operation *> changed;
};
} // namespace

void formkernels::applyUntilFixedPoint(
    func::FuncOp step, const FrozenRewritePatternSet &patterns) {
  Changes changes(step.front());
  auto config =
      GreedyRewriteConfig()
          .setUseTopDownTraversal()
          .setMaxIterations(1)
          .setScope(&step.getBody())
          .setListener(&changes)
          .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  bool changed = true;
  while (changed) {
    (void)applyPatternsGreedily(step, patterns, config, &changed);
    for (bool nearby = changed; nearby;) {
      SmallVector<Operation *> ops = changes.takeNearby();
      // The driver takes the last one first.
      std::reverse(ops.begin(), ops.end());
      nearby = false;
      if (!ops.empty())
        (void)applyOpPatternsGreedily(ops, patterns, config, &nearby);
    }
  }
}
