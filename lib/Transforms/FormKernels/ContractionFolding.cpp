//===- ContractionFolding.cpp - Neighbours into contractions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

/// The contraction that computes `value` for one user, from zero.
static std::optional<Contraction> matchOnlyUse(Value value) {
  std::optional<Contraction> contraction =
      matchContraction(value.getDefiningOp());
  if (!contraction || !value.hasOneUse() || !startsFromZero(*contraction))
    return std::nullopt;
  return contraction;
}

/// Replaces `op` by the contraction with another init and result map.
static void replaceByContraction(PatternRewriter &rewriter, GenericOp op,
                                 GenericOp contraction, Value init,
                                 AffineMap resultMap) {
  SmallVector<AffineMap> maps = contraction.getIndexingMapsArray();
  maps.back() = resultMap;
  Location loc = rewriter.getFusedLoc({contraction.getLoc(), op.getLoc()});
  auto folded = GenericOp::create(rewriter, loc, init.getType(),
                                  contraction.getDpsInputs(), init, maps,
                                  contraction.getIteratorTypesArray());
  IRMapping mapping;
  contraction.getRegion().cloneInto(&folded.getRegion(), mapping);
  rewriter.replaceOp(op, folded.getResults());
}

/// True for an addend that an elementwise addition can compute or read as it
/// lies, while a buffer to add to would have to be written first: elementwise
/// results for this one user, broadcasts, slices.
static bool isFreeToAdd(Value addend) {
  Operation *producer = addend.getDefiningOp();
  if (auto generic = dyn_cast_or_null<GenericOp>(producer))
    return generic.getNumReductionLoops() == 0 &&
           (generic->hasOneUse() ||
            llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
              return !generic.getMatchingIndexingMap(input).isPermutation();
            }));
  return isa_and_nonnull<tensor::ExtractSliceOp, FillOp, arith::ConstantOp>(
      producer);
}

namespace {
/// A transposition of a contraction's result: the contraction writes there.
struct FoldTransposedResult : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    if (op.getNumReductionLoops() != 0 || maps.size() != 2 ||
        !maps[0].isPermutation() || !maps[1].isPermutation() ||
        !llvm::hasSingleElement(*op.getBody()) ||
        op.getBody()->getTerminator()->getOperand(0) !=
            op.getBody()->getArgument(0))
      return failure();
    std::optional<Contraction> contraction = matchOnlyUse(op.getDpsInputs()[0]);
    if (!contraction)
      return failure();
    // Element i of the result is element toSource(i) of the contraction's.
    AffineMap toSource = maps[0].compose(inversePermutation(maps[1]));
    GenericOp producer = contraction->op;
    auto fill = producer.getDpsInits()[0].getDefiningOp<FillOp>();
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    Value init = tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                         type.getElementType());
    init =
        FillOp::create(rewriter, op.getLoc(), fill.getInputs(), init).result();
    replaceByContraction(rewriter, op, producer, init,
                         inversePermutation(toSource).compose(
                             producer.getIndexingMapsArray().back()));
    return success();
  }
};

/// A contraction's result plus another tensor: the contraction starts from that
/// tensor, in its buffer where it dies.
struct FoldAddition : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    Block *body = op.getBody();
    Operation *add = body->getTerminator()->getOperand(0).getDefiningOp();
    if (op.getNumReductionLoops() != 0 || op.getNumDpsInputs() != 2 ||
        op->getNumResults() != 1 || body->getOperations().size() != 2 ||
        !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) ||
        !llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }))
      return failure();
    auto isInput = [&](Value value) {
      return value == body->getArgument(0) || value == body->getArgument(1);
    };
    Value left = add->getOperand(0), right = add->getOperand(1);
    if (!isInput(left) || !isInput(right) || left == right)
      return failure();
    for (unsigned side : {0, 1}) {
      Value addend = op.getDpsInputs()[1 - side];
      std::optional<Contraction> contraction =
          matchOnlyUse(op.getDpsInputs()[side]);
      if (!contraction || isFreeToAdd(addend))
        continue;
      replaceByContraction(rewriter, op, contraction->op, addend,
                           contraction->op.getIndexingMapsArray().back());
      return success();
    }
    return failure();
  }
};
} // namespace

void formkernels::foldIntoContractions(func::FuncOp step) {
  RewritePatternSet patterns(step.getContext());
  patterns.add<FoldTransposedResult, FoldAddition>(step.getContext());
  (void)applyPatternsGreedily(
      step, std::move(patterns),
      GreedyRewriteConfig().enableFolding(false).setRegionSimplificationLevel(
          GreedySimplifyRegionLevel::Disabled));
}
