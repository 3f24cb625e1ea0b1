//===- LostByFolds.cpp - What folding would change silently ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Valid operations whose meaning MLIR's own folds and patterns lose. They are
/// refused before any of these runs.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace baechi;

/// Whether each element of a result of shape \p shape is written through
/// \p map.
static bool coversAll(AffineMap map, ArrayRef<int64_t> shape) {
  llvm::SmallDenseSet<unsigned> loops;
  return llvm::all_of(llvm::zip_equal(map.getResults(), shape), [&](auto pair) {
    auto [at, size] = pair;
    auto dim = dyn_cast<AffineDimExpr>(at);
    return dim ? loops.insert(dim.getPosition()).second : size == 1;
  });
}

/// What an operation does not write has the init's value. Patterns that look
/// for inits in bodies alone lose it.
static LogicalResult checkWrites(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return success();
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (auto type = dyn_cast<RankedTensorType>(init.get().getType());
        type && !init.get().getDefiningOp<tensor::EmptyOp>() &&
        !coversAll(generic.getMatchingIndexingMap(&init), type.getShape()))
      return op->emitOpError("writes elements of its result through ")
             << AffineMapAttr::get(generic.getMatchingIndexingMap(&init))
             << ", which is not known to reach all of them, and others keep "
                "their values of the init; compute what is new for all "
                "elements, and select";
  return success();
}

/// Folding takes widths that add up to none for no padding at all.
static LogicalResult checkPadding(Operation *op) {
  auto pad = dyn_cast<tensor::PadOp>(op);
  if (!pad)
    return success();
  auto isNegative = [](OpFoldResult width) {
    return getConstantIntValue(width).value_or(0) < 0;
  };
  if (llvm::any_of(pad.getMixedLowPad(), isNegative) ||
      llvm::any_of(pad.getMixedHighPad(), isNegative))
    return op->emitOpError("has a negative width; take a slice of its source "
                           "(tensor.extract_slice) and pad that");
  return success();
}

LogicalResult baechi::checkNotLostByFolds(ModuleOp module) {
  WalkResult walked = module.walk([](Operation *op) {
    return failed(checkWrites(op)) || failed(checkPadding(op))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}
