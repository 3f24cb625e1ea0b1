//===- ContractionPatterns.cpp - Neighbours into contractions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/ContractionPatterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;

std::optional<Contraction> baechi::matchOnlyUse(Value value) {
  std::optional<Contraction> contraction =
      matchContraction(value.getDefiningOp());
  if (!contraction || !value.hasOneUse() || !startsFromZero(*contraction))
    return std::nullopt;
  return contraction;
}

std::optional<std::array<Value, 2>> baechi::matchAddition(GenericOp op) {
  Block *body = op.getBody();
  Operation *add = body->getTerminator()->getOperand(0).getDefiningOp();
  if (op.getNumReductionLoops() != 0 || op.getNumDpsInputs() != 2 ||
      op->getNumResults() != 1 || body->getOperations().size() != 2 ||
      !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return std::nullopt;
  auto isInput = [&](Value value) {
    return value == body->getArgument(0) || value == body->getArgument(1);
  };
  Value left = add->getOperand(0), right = add->getOperand(1);
  if (!isInput(left) || !isInput(right) || left == right)
    return std::nullopt;
  return std::array<Value, 2>{op.getDpsInputs()[0], op.getDpsInputs()[1]};
}

void baechi::replaceByContraction(PatternRewriter &rewriter, GenericOp op,
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

bool baechi::isShuffle(GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInputs() == 1 &&
         op->getNumResults() == 1 && llvm::hasSingleElement(*op.getBody()) &&
         op.getBody()->getTerminator()->getOperand(0) ==
             op.getBody()->getArgument(0);
}

Attribute baechi::splatOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (DenseElementsAttr elements; matchPattern(op, m_Constant(&elements)))
      return elements.isSplat() ? elements.getSplatValue<Attribute>()
                                : Attribute();
    if (auto fill = dyn_cast<FillOp>(op)) {
      Attribute value;
      matchPattern(fill.value(), m_Constant(&value));
      return value;
    }
    // Whatever they do to positions, all elements are of the operand's.
    auto generic = dyn_cast<GenericOp>(op);
    bool moves = generic && isShuffle(generic);
    if (!moves && !isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
                       tensor::CollapseShapeOp>(op))
      return {};
    tensor = op->getOperand(0);
  }
  return {};
}

namespace {
/// See populateTransposedResults().
struct FoldTransposedResult : OpRewritePattern<GenericOp> {
  FoldTransposedResult(MLIRContext *context, IsKept isKept)
      : OpRewritePattern(context), isKept(std::move(isKept)) {}

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
    // Moved into a loop, it would be computed in each turn.
    if (!contraction || contraction->op->getBlock() != op->getBlock() ||
        (isKept && (isKept(op) || isKept(contraction->op))))
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

  IsKept isKept;
};
} // namespace

void baechi::populateTransposedResults(RewritePatternSet &patterns,
                                       IsKept isKept) {
  patterns.add<FoldTransposedResult>(patterns.getContext(), std::move(isKept));
}
