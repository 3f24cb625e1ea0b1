//===- Normalize.cpp - Bufferized kernels before mapping -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mapping.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace baechi;

Value baechi::rootBuffer(Value view) {
  while (auto op = view.getDefiningOp<ViewLikeOpInterface>())
    view = op.getViewSource();
  return view;
}

//===----------------------------------------------------------------------===//
// Start values of sums
//===----------------------------------------------------------------------===//

/// Whether `op` or what is in it may read or write the buffer `root`.
static bool touches(Operation *op, Value root) {
  return op
      ->walk([&](Operation *inner) {
        if (isa<ViewLikeOpInterface>(inner))
          return WalkResult::advance();
        return llvm::any_of(inner->getOperands(),
                            [&](Value operand) {
                              return isa<MemRefType>(operand.getType()) &&
                                     rootBuffer(operand) == root;
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The number of the result by which `op` adds up all of `buffer`, which
/// nothing else of it touches.
static std::optional<unsigned> summedInto(linalg::GenericOp op, Value buffer) {
  std::optional<unsigned> found;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()) ||
        rootBuffer(operand.get()) != rootBuffer(buffer))
      continue;
    if (found || !op.isDpsInit(&operand) || operand.get() != buffer ||
        !op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return std::nullopt;
    found = operand.getOperandNumber() - op.getNumDpsInputs();
  }
  bool inBody = llvm::any_of(op.getBody()->getOperations(), [&](Operation &op) {
    return touches(&op, rootBuffer(buffer));
  });
  if (inBody || op.getNumReductionLoops() == 0)
    return std::nullopt;
  return found;
}

/// Makes sums start from the value that a buffer is filled with just before.
static void foldFill(linalg::FillOp fill, StartValues &starts) {
  Value buffer = fill.output();
  for (Operation *next = fill->getNextNode(); next;
       next = next->getNextNode()) {
    if (!touches(next, rootBuffer(buffer)))
      continue;
    auto sums = dyn_cast<linalg::GenericOp>(next);
    if (!sums)
      return;
    if (std::optional<unsigned> result = summedInto(sums, buffer)) {
      starts[{sums, *result}] = fill.value();
      fill.erase();
    }
    return;
  }
}

//===----------------------------------------------------------------------===//
// Normal form
//===----------------------------------------------------------------------===//

LogicalResult baechi::normalize(func::FuncOp kernel, StartValues &starts) {
  IRRewriter rewriter(kernel.getContext());
  SmallVector<memref::CopyOp> copies;
  SmallVector<linalg::LinalgOp> named;
  SmallVector<linalg::FillOp> fills;
  kernel.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    rewriter.setInsertionPoint(copy);
    linalg::makeMemRefCopyOp(rewriter, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    rewriter.eraseOp(copy);
  }
  kernel.walk([&](linalg::LinalgOp op) {
    if (auto fill = dyn_cast<linalg::FillOp>(*op))
      fills.push_back(fill);
    else if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  auto generalize = [&](linalg::LinalgOp op) -> LogicalResult {
    rewriter.setInsertionPoint(op);
    return linalg::generalizeNamedOp(rewriter, op);
  };
  for (linalg::LinalgOp op : named)
    if (failed(generalize(op)))
      return failure();
  for (linalg::FillOp fill : fills)
    foldFill(fill, starts);
  fills.clear();
  kernel.walk([&](linalg::FillOp fill) { fills.push_back(fill); });
  for (linalg::FillOp fill : fills)
    if (failed(generalize(fill)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Parallel loops
//===----------------------------------------------------------------------===//

namespace {
/// Where a loop's counter chooses a part of a buffer: along one dimension of
/// one view of it that is older than the loop.
struct Choice {
  Value of;
  int64_t dimension = -1;
  bool operator==(const Choice &) const = default;
};
} // namespace

/// The dimension in which `offsets` follow the loop counter, in parts no larger
/// than its steps.
static int64_t chosenDimension(scf::ForOp loop, ArrayRef<OpFoldResult> offsets,
                               ArrayRef<int64_t> sizes) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  for (auto [dimension, offset] : llvm::enumerate(offsets))
    if (dyn_cast<Value>(offset) == loop.getInductionVar() && step &&
        sizes[dimension] >= 0 && sizes[dimension] <= *step)
      return dimension;
  return -1;
}

/// What part of its root buffer an access to `buffer`, at `indices` if any, is
/// confined to by the loop's counter.
static Choice choiceOf(scf::ForOp loop, Value buffer, ValueRange indices) {
  auto isOlder = [&](Value value) {
    return loop.isDefinedOutsideOfLoop(value);
  };
  if (isOlder(buffer)) {
    SmallVector<OpFoldResult> at(indices.begin(), indices.end());
    SmallVector<int64_t> ones(at.size(), 1);
    return {buffer, chosenDimension(loop, at, ones)};
  }
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (!isOlder(view.getViewSource())) {
      buffer = view.getViewSource();
      continue;
    }
    auto part = dyn_cast<memref::SubViewOp>(view.getOperation());
    if (!part || !llvm::all_of(part.getStaticStrides(),
                               [](int64_t stride) { return stride == 1; }))
      return {};
    return {part.getSource(), chosenDimension(loop, part.getMixedOffsets(),
                                              part.getStaticSizes())};
  }
  return {};
}

bool baechi::isParallel(scf::ForOp loop) {
  if (!loop.getInitArgs().empty())
    return false;
  struct Access {
    Value root;
    Choice choice;
    bool writes;
  };
  SmallVector<Access> accesses;
  WalkResult unknown = loop.getBody()->walk([&](Operation *op) {
    if (isa<memref::AllocOp, ViewLikeOpInterface>(op))
      return WalkResult::advance();
    auto add = [&](Value buffer, ValueRange indices, bool writes) {
      Value root = rootBuffer(buffer);
      if (loop.isDefinedOutsideOfLoop(root))
        accesses.push_back({root, choiceOf(loop, buffer, indices), writes});
    };
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      add(load.getMemRef(), load.getIndices(), false);
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      add(store.getMemRef(), store.getIndices(), true);
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpOperand &operand : generic->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          add(operand.get(), {}, generic.isDpsInit(&operand));
    } else if (!isMemoryEffectFree(op) &&
               !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (unknown.wasInterrupted())
    return false;
  for (const Access &written : accesses)
    for (const Access &other : accesses)
      if (written.writes && written.root == other.root &&
          (written.choice.dimension < 0 || written.choice != other.choice))
        return false;
  return true;
}
