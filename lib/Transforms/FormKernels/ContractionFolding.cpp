//===- ContractionFolding.cpp - Neighbours into contractions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

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
/// A contraction with a tensor of one number, such as an LSTM's first state:
/// the sums do not depend on that tensor's own loops, so they are computed once
/// and repeated.
struct ReduceOnce : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Contraction> contraction = matchContraction(op);
    if (!contraction || !startsFromZero(*contraction))
      return failure();
    for (unsigned side : {0, 1}) {
      auto number =
          dyn_cast_if_present<TypedAttr>(splatOf(op.getDpsInputs()[side]));
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      // A convolution's window loops are known from all operands together.
      if (!number ||
          number.getType() != getElementTypeOrSelf(op.getResultTypes()[0]) ||
          !maps[1 - side].isProjectedPermutation() ||
          !maps.back().isProjectedPermutation())
        continue;
      rewrite(rewriter, op, 1 - side, number);
      return success();
    }
    return failure();
  }

  static void rewrite(PatternRewriter &rewriter, GenericOp op, unsigned side,
                      TypedAttr number) {
    Location loc = op.getLoc();
    Value other = op.getDpsInputs()[side];
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();

    // The loops that the other operand moves through, renumbered.
    unsigned count = 0;
    SmallVector<AffineExpr> renumbered;
    SmallVector<utils::IteratorType> keptKinds;
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
      bool kept = maps[side].isFunctionOfDim(loop);
      renumbered.push_back(rewriter.getAffineDimExpr(kept ? count++ : 0));
      if (kept)
        keptKinds.push_back(kinds[loop]);
    }
    // The dimensions of the result that remain, in its order.
    SmallVector<AffineExpr> sums, repeated;
    SmallVector<int64_t> shape;
    for (auto [dim, expr] : llvm::enumerate(maps.back().getResults())) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      if (!maps[side].isFunctionOfDim(loop))
        continue;
      sums.push_back(renumbered[loop]);
      repeated.push_back(rewriter.getAffineDimExpr(dim));
      shape.push_back(ranges[loop]);
    }
    auto type = cast<RankedTensorType>(op.getResultTypes()[0]);
    MLIRContext *context = rewriter.getContext();
    Value zero = op.getDpsInits()[0].getDefiningOp<FillOp>().value();
    Value start = FillOp::create(rewriter, loc, zero,
                                 tensor::EmptyOp::create(rewriter, loc, shape,
                                                         type.getElementType())
                                     .getResult())
                      .result();
    // The same product and sum, with what exact steps say of how they round.
    Block *given = op.getBody();
    auto once = GenericOp::create(
        rewriter, loc, start.getType(), other, start,
        {maps[side].replaceDimsAndSymbols(renumbered, {}, count, 0),
         AffineMap::get(count, 0, sums, context)},
        keptKinds, [&](OpBuilder &body, Location loc, ValueRange arguments) {
          IRMapping mapping;
          mapping.map(given->getArgument(side), arguments[0]);
          mapping.map(given->getArgument(1 - side),
                      arith::ConstantOp::create(body, loc, number));
          mapping.map(given->getArgument(2), arguments[1]);
          for (Operation &each : given->without_terminator())
            body.clone(each, mapping);
          Value sum = given->getTerminator()->getOperand(0);
          YieldOp::create(body, loc, mapping.lookup(sum));
        });
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    rewriter.replaceOpWithNewOp<GenericOp>(
        op, type, once.getResult(0), empty,
        ArrayRef<AffineMap>{
            AffineMap::get(type.getRank(), 0, repeated, context),
            rewriter.getMultiDimIdentityMap(type.getRank())},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [](OpBuilder &body, Location loc, ValueRange arguments) {
          YieldOp::create(body, loc, arguments[0]);
        });
  }
};

/// A contraction's result plus another tensor: the contraction starts from that
/// tensor, in its buffer where it dies.
struct FoldAddition : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    // A piece that started from another's result would wait for it.
    if (op->hasAttr(BaechiDialect::kPartials))
      return failure();
    auto terms = matchAddition(op);
    if (!terms)
      return failure();
    for (unsigned side : {0, 1}) {
      Value addend = (*terms)[1 - side];
      std::optional<Contraction> contraction = matchOnlyUse((*terms)[side]);
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
  populateTransposedResults(patterns);
  // First: an addition must not make the sums start from elsewhere.
  patterns.add<ReduceOnce>(step.getContext(), /*benefit=*/2);
  // Rounds in another way, and who reads a tensor decides on it.
  if (!isExact(step))
    patterns.add<FoldAddition>(step.getContext());
  (void)applyPatternsGreedily(
      step, std::move(patterns),
      GreedyRewriteConfig().enableFolding(false).setRegionSimplificationLevel(
          GreedySimplifyRegionLevel::Disabled));
}
