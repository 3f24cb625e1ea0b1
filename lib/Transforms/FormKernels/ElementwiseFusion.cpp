//===- ElementwiseFusion.cpp - Fusion of elementwise operations -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Splits.h"
#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "FixedPoint.h"
#include "Phases.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;
using namespace baechi::formkernels;

/// Operations that overwrite another's result without reading it would keep
/// that result alive, and look like its users.
static void writeToOwnTensors(RewriterBase &rewriter, GenericOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto type = dyn_cast<RankedTensorType>(init.get().getType());
    if (!type || !type.hasStaticShape() ||
        op.payloadUsesValueFromOperand(&init) ||
        init.get().getDefiningOp<tensor::EmptyOp>())
      continue;
    rewriter.setInsertionPoint(op);
    init.set(tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                     type.getElementType()));
  }
}

/// Packed layouts as pads, reshapes and transposes.
static void unfoldPacks(func::FuncOp step, IRRewriter &rewriter) {
  SmallVector<Operation *> packs;
  step.walk([&](Operation *op) {
    if (isa<PackOp, UnPackOp>(op))
      packs.push_back(op);
  });
  for (Operation *op : packs) {
    rewriter.setInsertionPoint(op);
    // Neither fails for static shapes.
    if (auto pack = dyn_cast<PackOp>(op))
      (void)lowerPack(rewriter, pack, /*lowerPadLikeWithInsertSlice=*/false);
    else
      (void)lowerUnPack(rewriter, cast<UnPackOp>(op),
                        /*lowerUnpadLikeWithExtractSlice=*/false);
  }
}

void formkernels::generalize(func::FuncOp step) {
  MLIRContext *context = step.getContext();
  RewritePatternSet patterns(context);
  populateElementwiseToLinalgConversionPatterns(patterns);
  tensor::populateDecomposeTensorConcatPatterns(patterns);
  walkAndApplyPatterns(step, std::move(patterns));

  IRRewriter rewriter(context);
  unfoldPacks(step, rewriter);
  // A softmax is the operations that it stands for.
  SmallVector<AggregatedOpInterface> aggregates;
  step.walk([&](AggregatedOpInterface op) { aggregates.push_back(op); });
  for (AggregatedOpInterface op : aggregates) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter);
    if (succeeded(parts))
      rewriter.replaceOp(op, *parts);
  }

  SmallVector<LinalgOp> named;
  step.walk([&](LinalgOp op) {
    if (!isa<GenericOp, FillOp>(op.getOperation()))
      named.push_back(op);
  });
  for (LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    // What has no body of scalars stays as it is; it is a kernel of its own.
    (void)generalizeNamedOp(rewriter, op);
  }
  step.walk([&](GenericOp op) { writeToOwnTensors(rewriter, op); });
}

//===----------------------------------------------------------------------===//
// What to fuse
//===----------------------------------------------------------------------===//

/// Fused bodies stay below this many operations, so that fusing a long chain
/// takes linear time and registers suffice.
static constexpr size_t kMaxBody = 200;
/// A producer with several users is computed again in each of them up to this
/// many operations...
static constexpr size_t kMaxRecomputedBody = 30;
/// ... and this many users.
static constexpr unsigned kMaxRecomputingUsers = 8;

static bool isTranspose(GenericOp op) {
  return isShuffle(op) &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isPermutation(); });
}

static bool readsTensors(GenericOp op) {
  return llvm::any_of(op.getDpsInputs(), [](Value input) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    return type && type.getRank() > 0;
  });
}

static bool hasOneUser(Operation *op) {
  auto users = op->getUsers();
  return !users.empty() && llvm::all_equal(users);
}

/// True when computing `producer` again costs less than reading it: it reads no
/// more than one tensor of its result's size, and its body is short.
static bool isCheap(GenericOp producer) {
  int64_t resultBytes = tensorBytes(producer.getResult(0).getType());
  auto large = llvm::count_if(producer.getDpsInputs(), [&](Value input) {
    return 2 * tensorBytes(input.getType()) >= resultBytes;
  });
  return large <= 1 &&
         producer.getBody()->getOperations().size() <= kMaxRecomputedBody &&
         !llvm::any_of(*producer.getBody(), llvm::IsaPred<tensor::ExtractOp>);
}

/// True when the operand is read element by element as it was written, by an
/// operation that a producer may be fused into.
static bool readsElementwise(OpOperand &use) {
  auto consumer = dyn_cast<GenericOp>(use.getOwner());
  return consumer && consumer.isDpsInput(&use) &&
         consumer.getMatchingIndexingMap(&use).isPermutation() &&
         !matchContraction(consumer);
}

/// Every user would compute `producer` itself, so that it vanishes.
static bool allUsersCanRecompute(GenericOp producer) {
  unsigned users = 0;
  for (OpOperand &use : producer->getUses())
    if (++users > kMaxRecomputingUsers || !readsElementwise(use))
      return false;
  return true;
}

/// A reader looks for elements that are equal to others, as the gradient of a
/// maximum does. Code of GPUs that computes them in one place may round
/// otherwise than such code in another: products are contracted there.
static bool isComparedForEquality(GenericOp producer) {
  auto compares = [](Operation &op) {
    auto compare = dyn_cast<arith::CmpFOp>(op);
    return compare &&
           llvm::is_contained(
               {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UEQ,
                arith::CmpFPredicate::ONE, arith::CmpFPredicate::UNE},
               compare.getPredicate());
  };
  return llvm::any_of(producer->getUsers(), [&](Operation *user) {
    auto consumer = dyn_cast<GenericOp>(user);
    return consumer && llvm::any_of(*consumer.getBody(), compares);
  });
}

/// Why a structured operation is not computed where its result is read; empty
/// when it is to be.
static StringRef whyNotFused(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<GenericOp>();
  auto consumer = dyn_cast<GenericOp>(operand->getOwner());
  if (!producer || !consumer)
    return "is no loop nest";
  if (matchContraction(producer))
    return "a contraction stays what libraries know";
  // It may read its operands in another order, and that is all.
  if (matchContraction(consumer))
    return isTranspose(producer) && consumer.isDpsInput(operand)
               ? ""
               : "the reader is a contraction, which stays what libraries know";
  if (producer.getBody()->getOperations().size() +
          consumer.getBody()->getOperations().size() >
      kMaxBody)
    return "the body would be too long";
  if (isShuffle(producer) || !readsTensors(producer))
    return "";
  if (!consumer.getMatchingIndexingMap(operand).isPermutation())
    return "a broadcast element would be computed wherever it is read";
  if (hasOneUser(producer))
    return "";
  if (!isCheap(producer))
    return "several operators read it, and computing it again costs more than "
           "reading it";
  if (!allUsersCanRecompute(producer))
    return "several operators read it, and not all can compute it again";
  // Last, as it looks at all of them: now they are few.
  return isComparedForEquality(producer)
             ? "several operators read it, and one compares it for equality: "
               "computed again, it might differ in its last bit"
             : "";
}

static bool shouldFuse(OpOperand *operand) {
  return whyNotFused(operand).empty();
}

namespace {
/// One value everywhere: a fill, which kernels clone and which a contraction
/// can start from.
struct FillWithOneValue : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() != 0 || op->getNumResults() != 1 ||
        !op.getIndexingMapsArray().back().isPermutation() ||
        !llvm::hasSingleElement(*op.getBody()))
      return failure();
    Value value = op.getBody()->getTerminator()->getOperand(0);
    if (value.getParentBlock() == op.getBody())
      return failure();
    rewriter.replaceOpWithNewOp<FillOp>(op, value, op.getDpsInits().front());
    return success();
  }
};

/// True when upstream's tiles of an operand that is read by `map` are right:
/// not where an index falls while its loop rises, nor from a constant.
bool canReadTiles(AffineMap map) {
  auto rises = [](auto &&self, AffineExpr expr) -> bool {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() == 0;
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return isa<AffineDimExpr>(expr);
    if (expr.getKind() == AffineExprKind::Add)
      return self(self, binary.getLHS()) && self(self, binary.getRHS());
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return expr.getKind() == AffineExprKind::Mul && factor &&
           factor.getValue() > 0 && self(self, binary.getLHS());
  };
  return llvm::all_of(map.getResults(),
                      [&](AffineExpr expr) { return rises(rises, expr); });
}

/// An elementwise result that is only read in slices is computed slice by
/// slice, so that each slice's reader can take it in: the gates of an LSTM are
/// slices of one sum.
struct ComputeSlices : OpRewritePattern<GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() != 0 || op->getNumResults() != 1 ||
        op->use_empty() || !op.getIndexingMapsArray().back().isPermutation() ||
        !llvm::all_of(op.getIndexingMapsArray(), canReadTiles))
      return failure();
    SmallVector<tensor::ExtractSliceOp> slices;
    int64_t elements = 0;
    for (Operation *user : op->getUsers()) {
      auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
      if (!slice || slice->hasAttr(kCopied) ||
          slice->getBlock() != op->getBlock() ||
          slice.getType().getRank() != slice.getSourceType().getRank() ||
          !slice.hasUnitStride() || !slice.getType().hasStaticShape())
        return failure();
      elements += slice.getType().getNumElements();
      slices.push_back(slice);
    }
    if (elements >
        cast<RankedTensorType>(op.getResult(0).getType()).getNumElements())
      return failure();
    for (tensor::ExtractSliceOp slice : slices) {
      rewriter.setInsertionPoint(slice);
      FailureOr<TilingResult> computed =
          cast<TilingInterface>(op.getOperation())
              .generateResultTileValue(rewriter, 0, slice.getMixedOffsets(),
                                       slice.getMixedSizes());
      // The slice of a permutation is always a tile of the loops.
      assert(succeeded(computed) && "a slice is no tile");
      rewriter.replaceOp(slice, computed->tiledValues);
    }
    return success();
  }
};
} // namespace

/// True when the two become an operation of more tensors than there may be.
static bool tooManyBuffers(OpOperand *operand, unsigned maxBuffers) {
  Operation *producer = operand->get().getDefiningOp();
  if (maxBuffers == 0 || !producer)
    return false;
  llvm::SmallDenseSet<Value> buffers;
  for (Operation *op : {producer, operand->getOwner()})
    for (Value input : cast<GenericOp>(op).getDpsInputs())
      if (input != operand->get() && isa<RankedTensorType>(input.getType()))
        buffers.insert(input);
  return buffers.size() + operand->getOwner()->getNumResults() > maxBuffers;
}

void formkernels::fuseElementwise(func::FuncOp step, unsigned maxBuffers) {
  MLIRContext *context = step.getContext();
  RewritePatternSet patterns(context);
  populateElementwiseOpsFusionPatterns(
      patterns, [maxBuffers](OpOperand *operand) {
        return shouldFuse(operand) && !tooManyBuffers(operand, maxBuffers);
      });
  patterns.add<FillWithOneValue, ComputeSlices>(context);
  GenericOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  // Producers first: each operation is looked at less than half as often as
  // when consumers are.
  applyUntilFixedPoint(step, std::move(patterns));
}

void formkernels::remarkNotFused(func::FuncOp step, unsigned maxBuffers) {
  // Reductions end a loop nest, and may be grouped with it (RowGroups).
  step.walk([&](GenericOp consumer) {
    for (OpOperand *operand : consumer.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<GenericOp>();
      if (!producer)
        continue;
      StringRef reason = whyNotFused(operand);
      if (reason.empty())
        reason = producer.getNumReductionLoops() > 0 ? "it is a reduction"
                 : tooManyBuffers(operand, maxBuffers)
                     ? "the kernel would read and write too many tensors"
                     : "its loops do not match the reader's";
      auto remark = remark::missed(consumer.getLoc(),
                                   remark::RemarkOpts::name("not-fused")
                                       .category("baechi-form-kernels")
                                       .function(step.getName()));
      if (!remark)
        return WalkResult::interrupt(); // nobody listens
      std::string name = nameOf(producer);
      remark << remark::metric("Producer", name.empty() ? "an operation" : name)
             << remark::metric("Reason", reason);
    }
    return WalkResult::advance();
  });
}

//===----------------------------------------------------------------------===//
// Order of loops
//===----------------------------------------------------------------------===//

/// The loops in the order of the dimensions of the largest input that covers
/// them all, so that a reduction over columns walks along rows.
static SmallVector<unsigned> loopsOfLargestInput(GenericOp op) {
  SmallVector<unsigned> order;
  int64_t bytes = -1;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isPermutation() || tensorBytes(input->get().getType()) <= bytes)
      continue;
    bytes = tensorBytes(input->get().getType());
    order.clear();
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
      order.push_back(map.getDimPosition(dim));
  }
  return order;
}

/// Whether terms in another order give another result, not only another
/// rounding.
static bool dependsOnOrder(GenericOp op) {
  return llvm::any_of(llvm::seq(op->getNumResults()), [&](unsigned result) {
    return !associativeCombinerOf(op, result);
  });
}

void formkernels::reorderReductions(func::FuncOp step) {
  SmallVector<GenericOp> reductions;
  step.walk([&](GenericOp op) {
    if (op.getNumReductionLoops() > 0 && !matchContraction(op))
      reductions.push_back(op);
  });
  IRRewriter rewriter(step.getContext());
  for (GenericOp op : reductions) {
    SmallVector<unsigned> order = loopsOfLargestInput(op);
    if (isExact(step) || dependsOnOrder(op))
      keepReductionOrder(op, order);
    if (llvm::is_sorted(order))
      continue;
    noteOrder(op, order);
    rewriter.setInsertionPoint(op);
    (void)interchangeGenericOp(rewriter, op, order);
  }
}
