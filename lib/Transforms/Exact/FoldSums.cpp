//===- FoldSums.cpp - Sums of products as one sum -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "Baechi/Transforms/Exact/Passes.h"
#include "ShowBodies.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace baechi {
#define GEN_PASS_DEF_FOLDSUMS
#include "Baechi/Transforms/Exact/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// Whether a person said something of \p op, which one made of it would lose.
static bool isSpokenOf(Operation *op) {
  return llvm::any_of(op->getDiscardableAttrs(), [](NamedAttribute attr) {
    return isa_and_nonnull<BaechiDialect>(attr.getNameDialect());
  });
}

/// Whether \p addend, which \p op reads, is added up in turns of a loop, and
/// nothing but that is done with it there.
static bool isAddedUpByTurns(Value addend, Operation *op) {
  auto argument = dyn_cast<BlockArgument>(addend);
  return argument && argument.hasOneUse() &&
         argument.getOwner() == op->getBlock() &&
         isa<LoopLikeOpInterface>(op->getParentOp());
}

namespace {
/// A product plus another, or plus what earlier turns of a loop have added up:
/// its terms are added to the other's.
struct FoldSum : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    auto terms = matchAddition(op);
    if (!terms || isSpokenOf(op))
      return failure();
    for (unsigned side : {0, 1}) {
      Value addend = (*terms)[1 - side];
      std::optional<Contraction> product = matchOnlyUse((*terms)[side]);
      if (!product || !isOfBlock(product->op, op))
        continue;
      std::optional<Contraction> other =
          matchContraction(addend.getDefiningOp());
      bool isSum = other && addend.hasOneUse() && isOfBlock(other->op, op);
      if (!isSum && !isAddedUpByTurns(addend, op))
        continue;
      replaceByContraction(rewriter, op, product->op, addend,
                           product->op.getIndexingMapsArray().back());
      return success();
    }
    return failure();
  }

  /// Whether \p product may be computed where \p op is. That with a tensor of
  /// one number is computed once for many elements, from zero.
  static bool isOfBlock(linalg::GenericOp product, linalg::GenericOp op) {
    return product->getBlock() == op->getBlock() && !isSpokenOf(product) &&
           llvm::none_of(product.getDpsInputs(), splatOf);
  }
};

struct FoldSums : public baechi::impl::FoldSumsBase<FoldSums> {
  void runOnOperation() override {
    showBodies(getOperation());
    skipDilationZeros(getOperation(), /*inSumsAlone=*/true);
    RewritePatternSet patterns(&getContext());
    populateTransposedResults(patterns);
    patterns.add<FoldSum>(&getContext());
    (void)applyPatternsGreedily(
        getOperation(), std::move(patterns),
        GreedyRewriteConfig().enableFolding(false).setRegionSimplificationLevel(
            GreedySimplifyRegionLevel::Disabled));
  }
};
} // namespace
