//===- FoldSums.cpp - Sums of products as one sum -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Trips.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "Baechi/Transforms/Exact/Passes.h"
#include "ShowBodies.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MathExtras.h"

namespace baechi {
#define GEN_PASS_DEF_FOLDSUMS
#include "Baechi/Transforms/Exact/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// Whether a person said something of \p op, by an attribute or by one of \p
/// names, which one made of it would lose.
static bool isSpokenOf(Operation *op, ArrayRef<llvm::GlobPattern> names) {
  std::string name = names.empty() ? "" : nameOf(op);
  return llvm::any_of(op->getDiscardableAttrs(),
                      [](NamedAttribute attr) {
                        return isa_and_nonnull<BaechiDialect>(
                            attr.getNameDialect());
                      }) ||
         llvm::any_of(names, [&](const llvm::GlobPattern &pattern) {
           return pattern.match(name);
         });
}

/// Terms of sums that are made one: of more, what is rounded to all before it
/// shows, and what adding tensors up takes does not, beside the products.
static constexpr int64_t kMostTerms = 4096;

/// How many terms \p product, and those that it goes on from, add up.
static int64_t termsOfAll(std::optional<Contraction> product) {
  int64_t terms = 0;
  while (product && terms <= kMostTerms) {
    terms += termsOf(product->op);
    product = matchContraction(product->init().get().getDefiningOp());
  }
  return terms;
}

/// How often \p op runs; nullopt: that is not known.
static std::optional<int64_t> turnsAround(Operation *op) {
  int64_t all = 1;
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp())
    if (auto around = dyn_cast<LoopLikeOpInterface>(loop)) {
      std::optional<Turns> turns = turnsOf(around);
      if (!turns || llvm::MulOverflow(all, turns->count, all))
        return std::nullopt;
    }
  return all;
}

/// Whether \p addend, which \p op reads, comes from the turn before of a loop,
/// and nothing else is done with it there.
static bool isOfTurnBefore(Value addend, Operation *op) {
  auto argument = dyn_cast<BlockArgument>(addend);
  return argument && argument.hasOneUse() &&
         argument.getOwner() == op->getBlock() &&
         isa<LoopLikeOpInterface>(op->getParentOp());
}

namespace {
/// A product plus another, or plus what comes from the turn before of a loop,
/// such as what earlier ones have added up: its terms are added to that.
struct FoldSum : OpRewritePattern<linalg::GenericOp> {
  FoldSum(MLIRContext *context, IsKept isKept)
      : OpRewritePattern(context), isKept(std::move(isKept)) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    auto terms = matchAddition(op);
    if (!terms || isKept(op))
      return failure();
    for (unsigned side : {0, 1}) {
      Value addend = (*terms)[1 - side];
      std::optional<Contraction> product = matchOnlyUse((*terms)[side]);
      if (!product || !isOfBlock(product->op, op))
        continue;
      std::optional<Contraction> other =
          matchContraction(addend.getDefiningOp());
      bool isSum = other && addend.hasOneUse() && isOfBlock(other->op, op);
      std::optional<int64_t> turns = 1;
      if (!isSum)
        turns = isOfTurnBefore(addend, op) ? turnsAround(op) : std::nullopt;
      int64_t terms = termsOfAll(product) + (isSum ? termsOfAll(other) : 0);
      if (!turns || llvm::MulOverflow(terms, *turns, terms) ||
          terms > kMostTerms)
        continue;
      replaceByContraction(rewriter, op, product->op, addend,
                           product->op.getIndexingMapsArray().back());
      return success();
    }
    return failure();
  }

  /// Whether \p product may be computed where \p op is. That with a tensor of
  /// one number is computed once for many elements, from zero.
  bool isOfBlock(linalg::GenericOp product, linalg::GenericOp op) const {
    return product->getBlock() == op->getBlock() && !isKept(product) &&
           llvm::none_of(product.getDpsInputs(), splatOf);
  }

  IsKept isKept;
};

struct FoldSums : public baechi::impl::FoldSumsBase<FoldSums> {
  using FoldSumsBase::FoldSumsBase;

  void runOnOperation() override {
    SmallVector<llvm::GlobPattern> names;
    for (const std::string &pattern : keep)
      // Names in operators' lists may have numbers. What is wrong with a
      // pattern is told where it is taken.
      if (auto glob =
              llvm::GlobPattern::create(StringRef(pattern).split('#').first))
        names.push_back(std::move(*glob));
      else
        llvm::consumeError(glob.takeError());
    IsKept isKept = [&](Operation *op) { return isSpokenOf(op, names); };
    showBodies(getOperation());
    skipDilationZeros(getOperation(), /*inSumsAlone=*/true, isKept);
    RewritePatternSet patterns(&getContext());
    populateTransposedResults(patterns, isKept);
    patterns.add<FoldSum>(&getContext(), isKept);
    (void)applyPatternsGreedily(
        getOperation(), std::move(patterns),
        GreedyRewriteConfig().enableFolding(false).setRegionSimplificationLevel(
            GreedySimplifyRegionLevel::Disabled));
  }
};
} // namespace
