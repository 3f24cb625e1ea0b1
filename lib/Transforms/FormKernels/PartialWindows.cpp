//===- PartialWindows.cpp - Operands as far as they are read ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window of two columns at stride two reads two of three columns. With one
// window only, upstream drops its loop; what is left reads the operand by the
// window's loop alone, which then has to be as long as the operand, and is not.
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// The elements of a dimension that `expr`, one result of an indexing map,
/// reads if it is a single loop once those of extent 1 are dropped.
static std::optional<int64_t> elementsRead(AffineExpr expr,
                                           ArrayRef<int64_t> extents) {
  MLIRContext *context = expr.getContext();
  SmallVector<AffineExpr> loops;
  for (auto [loop, extent] : llvm::enumerate(extents))
    loops.push_back(extent == 1 ? getAffineConstantExpr(0, context)
                                : getAffineDimExpr(loop, context));
  auto only = dyn_cast<AffineDimExpr>(expr.replaceDims(loops));
  if (!only || only == expr)
    return std::nullopt;
  return extents[only.getPosition()];
}

void formkernels::cutOperandsToWindows(func::FuncOp step) {
  IRRewriter rewriter(step.getContext());
  step.walk([&](linalg::GenericOp op) {
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand->get().getType());
      if (!type)
        continue;
      SmallVector<int64_t> sizes(type.getShape());
      AffineMap map = op.getMatchingIndexingMap(operand);
      for (auto [size, expr] : llvm::zip_equal(sizes, map.getResults()))
        size = std::min(size, elementsRead(expr, extents).value_or(size));
      if (ArrayRef(sizes) == type.getShape())
        continue;
      rewriter.setInsertionPoint(op);
      SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0)),
          strides(sizes.size(), rewriter.getIndexAttr(1)), lengths;
      for (int64_t size : sizes)
        lengths.push_back(rewriter.getIndexAttr(size));
      operand->set(tensor::ExtractSliceOp::create(
          rewriter, op.getLoc(), operand->get(), offsets, lengths, strides));
    }
  });
}
