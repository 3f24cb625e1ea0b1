//===- SplitLoops.cpp - Cuts of structured operations ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitLoops.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace baechi;

std::optional<unsigned> baechi::loopOfOperand(linalg::LinalgOp op,
                                              OpOperand &operand, unsigned dim,
                                              std::string &why) {
  AffineExpr expr = op.getMatchingIndexingMap(&operand).getResult(dim);
  if (auto loop = dyn_cast<AffineDimExpr>(expr))
    return loop.getPosition();
  why = isa<AffineConstantExpr>(expr) ? "it reads one place of the dimension"
                                      : "it reads windows along the dimension";
  return std::nullopt;
}

/// The reads of a tensor from outside by an operation's body; nothing when the
/// body does more with it.
static std::optional<SmallVector<tensor::ExtractOp>>
readsOf(linalg::LinalgOp op, Value tensor) {
  SmallVector<tensor::ExtractOp> reads;
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (user == op.getOperation() || !op->isProperAncestor(user))
      continue;
    auto read = dyn_cast<tensor::ExtractOp>(user);
    if (!read || use.getOperandNumber() != 0)
      return std::nullopt;
    reads.push_back(read);
  }
  return reads;
}

/// The loop whose index is the read's along a dimension.
static std::optional<unsigned> loopOfRead(tensor::ExtractOp read,
                                          unsigned dim) {
  if (auto index = read.getIndices()[dim].getDefiningOp<linalg::IndexOp>())
    return index.getDim();
  return std::nullopt;
}

std::optional<unsigned> baechi::loopOfCapture(linalg::LinalgOp op, Value tensor,
                                              CutPosition position,
                                              std::string &why) {
  why = "its body reads the tensor at computed positions";
  auto reads = readsOf(op, tensor);
  if (!reads || reads->empty() || position.outer != 1 || position.inner != 1)
    return std::nullopt;
  std::optional<unsigned> loop = loopOfRead(reads->front(), position.dim);
  if (!loop || !llvm::all_of(*reads, [&](tensor::ExtractOp read) {
        return loopOfRead(read, position.dim) == loop;
      }))
    return std::nullopt;
  return loop;
}

/// Where the tensors that the body reads from outside are read by \p loop's
/// index alone.
static void findCaptures(linalg::LinalgOp op, unsigned loop,
                         OperationCut &cut) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value tensor : captured) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type)
      continue;
    std::string why;
    for (unsigned dim = 0, n = type.getRank(); dim < n; ++dim)
      if (type.getDimSize(dim) == cut.extent &&
          loopOfCapture(op, tensor, {dim}, why) == loop) {
        cut.captures[tensor] = {dim};
        break;
      }
  }
}

Operation *baechi::associativeCombinerOf(linalg::LinalgOp op, unsigned result) {
  SmallVector<Operation *, 4> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), result, combiners) ||
      combiners.size() != 1)
    return nullptr;
  Operation *combiner = combiners.front();
  bool isAssociative =
      isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp,
          arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
          arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
          arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(combiner);
  return isAssociative && arith::getNeutralElement(combiner) ? combiner
                                                             : nullptr;
}

static bool findCombiners(linalg::LinalgOp op, OperationCut &cut) {
  for (unsigned result = 0; result < op->getNumResults(); ++result) {
    Operation *combiner = associativeCombinerOf(op, result);
    if (!combiner)
      return false;
    cut.combiners.push_back(combiner);
  }
  return true;
}

/// Adds how often each loop counts in \p expr, and its constant; false where
/// that is no sum, or one with negative factors.
static bool addFactors(AffineExpr expr, int64_t factor,
                       SmallVectorImpl<int64_t> &loops, int64_t &constant) {
  if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
    loops[loop.getPosition()] += factor;
    return factor >= 0;
  }
  if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * number.getValue();
    return factor * number.getValue() >= 0;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add)
    return addFactors(binary.getLHS(), factor, loops, constant) &&
           addFactors(binary.getRHS(), factor, loops, constant);
  if (binary && binary.getKind() == AffineExprKind::Mul)
    if (auto by = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return addFactors(binary.getLHS(), factor * by.getValue(), loops,
                        constant);
  return false;
}

/// The windows that \p loop reads along an operand's dimension by \p expr.
static std::optional<CutWindow> windowAlong(linalg::LinalgOp op, unsigned loop,
                                            unsigned dim, AffineExpr expr) {
  SmallVector<int64_t> factors(op.getNumLoops(), 0);
  int64_t constant = 0;
  if (!addFactors(expr, 1, factors, constant) || factors[loop] == 0)
    return std::nullopt;
  CutWindow window{dim, factors[loop], 1 + constant};
  for (auto [other, range] : llvm::enumerate(op.getStaticLoopRanges()))
    if (other != loop)
      window.reach += factors[other] * (range - 1);
  return window;
}

std::optional<OperationCut> baechi::cutLoop(linalg::LinalgOp op, unsigned loop,
                                            CutPosition position,
                                            int64_t extent, std::string &why) {
  OperationCut cut;
  cut.extent = extent;
  cut.loop = loop;
  if (op.getStaticLoopRanges()[loop] !=
      position.outer * extent * position.inner) {
    why = "its loop is not over the whole dimension";
    return std::nullopt;
  }
  AffineExpr walks = getAffineDimExpr(loop, op.getContext());
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<CutPosition> &at = cut.operands.emplace_back();
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    for (auto [dim, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      if (!expr.isFunctionOfDim(loop))
        continue;
      if (at || cut.windowOf(operand.getOperandNumber())) {
        why = "it reads a diagonal along the dimension";
        return std::nullopt;
      }
      if (expr == walks) {
        at = {unsigned(dim), position.outer, position.inner};
        continue;
      }
      std::optional<CutWindow> window;
      if (position.outer == 1 && position.inner == 1 && op.isDpsInput(&operand))
        window = windowAlong(op, loop, dim, expr);
      if (!window) {
        why = "it reads windows along the dimension";
        return std::nullopt;
      }
      cut.windows.push_back({operand.getOperandNumber(), *window});
    }
  }

  findCaptures(op, loop, cut);
  bool usesIndex = false;
  op->walk([&](linalg::IndexOp index) { usesIndex |= index.getDim() == loop; });
  if (usesIndex && position.outer != 1) {
    why = "its body computes with positions in a dimension that was reshaped";
    return std::nullopt;
  }

  for (OpOperand &init : op.getDpsInitsMutable())
    cut.results.push_back(cut.operands[init.getOperandNumber()]);
  if (op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel) {
    if (llvm::all_of(cut.results, [](auto &at) { return at.has_value(); }))
      return cut;
    why = "not all its results have the dimension";
    return std::nullopt;
  }
  cut.kind = OperationCut::Kind::Reduction;
  if (llvm::any_of(cut.results, [](auto &at) { return at.has_value(); }) ||
      !findCombiners(op, cut)) {
    why = "it reduces the dimension by more than one associative operation";
    return std::nullopt;
  }
  return cut;
}
