//===- EmptyTensors.cpp - What has no elements is not moved -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowering turns pads and concatenations into insertions of slices. One without
// elements may begin where its target ends, which no slice may.
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

namespace {
bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 0;
}

Value emptyLike(PatternRewriter &rewriter, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(rewriter, loc, tensor.getShape(),
                                 tensor.getElementType());
}

/// A pad of nothing is padding alone.
struct FillPadOfNothing : OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::PadOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getSource()) || !op.getResultType().hasStaticShape())
      return failure();
    if (Value padding = op.getConstantPaddingValue()) {
      Value target = emptyLike(rewriter, op.getLoc(), op.getType());
      rewriter.replaceOpWithNewOp<linalg::FillOp>(op, padding, target);
      return success();
    }
    auto generated = tensor::GenerateOp::create(rewriter, op.getLoc(),
                                                op.getType(), ValueRange());
    rewriter.inlineRegionBefore(op.getRegion(), generated.getBody(),
                                generated.getBody().begin());
    rewriter.replaceOp(op, generated);
    return success();
  }
};

struct DropInsertionOfNothing : OpRewritePattern<tensor::InsertSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::InsertSliceOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getSource()))
      return failure();
    rewriter.replaceOp(op, op.getDest());
    return success();
  }
};

struct MakeSliceOfNothing : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op,
                                PatternRewriter &rewriter) const override {
    if (!isEmpty(op.getResult()))
      return failure();
    rewriter.replaceOp(op, emptyLike(rewriter, op.getLoc(), op.getType()));
    return success();
  }
};

struct DropPartsOfNothing : OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ConcatOp op,
                                PatternRewriter &rewriter) const override {
    auto parts = llvm::filter_to_vector(
        op.getInputs(), [](Value part) { return !isEmpty(part); });
    if (parts.size() == op.getInputs().size())
      return failure();
    if (parts.empty())
      rewriter.replaceOp(op, emptyLike(rewriter, op.getLoc(), op.getType()));
    else
      rewriter.replaceOpWithNewOp<tensor::ConcatOp>(op, op.getType(),
                                                    op.getDim(), parts);
    return success();
  }
};
} // namespace

void formkernels::dropEmptyParts(func::FuncOp step) {
  RewritePatternSet patterns(step.getContext());
  patterns.add<FillPadOfNothing, DropInsertionOfNothing, MakeSliceOfNothing,
               DropPartsOfNothing>(step.getContext());
  walkAndApplyPatterns(step, std::move(patterns));
}
