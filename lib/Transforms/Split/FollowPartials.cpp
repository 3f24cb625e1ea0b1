//===- FollowPartials.cpp - What partial results run through --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FollowPartials.h"
#include "Baechi/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// The body of a structured operation that computes each element from those at
/// the same place or, with \p permuted, at another, by one operation at most.
static Block *elementBody(Operation *op, bool permuted) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || op->getNumResults() != 1 || loops.getNumReductionLoops() != 0 ||
      !llvm::all_of(loops.getIndexingMapsArray(), [&](AffineMap map) {
        return permuted ? map.isPermutation() : map.isIdentity();
      }))
    return nullptr;
  return loops.getBlock();
}

/// Whether all elements of \p init leave what \p combiner joins them with as it
/// is.
static bool isNeutral(Value init, Operation *combiner) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.value();
  Attribute value;
  if (!matchPattern(init, m_Constant(&value)))
    return false;
  if (auto all = dyn_cast<SplatElementsAttr>(value))
    value = all.getSplatValue<Attribute>();
  return value == *arith::getNeutralElement(combiner);
}

/// A reduction over dimensions of one element, as JAX has one after the sum of
/// what it has broadcast: \p op makes of each element itself.
static bool isUnitReduction(Operation *op) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || op->getNumOperands() != 2 || op->getNumResults() != 1 ||
      loops.getNumReductionLoops() == 0 ||
      loops.getBlock()->getOperations().size() != 2 ||
      !loops.getMatchingIndexingMap(&op->getOpOperand(0)).isPermutation())
    return false;
  for (auto [size, kind] : llvm::zip_equal(loops.getStaticLoopRanges(),
                                           loops.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && size != 1)
      return false;
  Operation *combiner = associativeCombinerOf(loops, 0);
  return combiner &&
         llvm::is_contained(combiner->getOperands(),
                            loops.getBlock()->getArgument(0)) &&
         isNeutral(op->getOperand(1), combiner);
}

/// A reshape, or a structured operation that only puts elements into another
/// order or shape.
static bool isMove(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) ||
      isUnitReduction(op))
    return true;
  Block *body = elementBody(op, /*permuted=*/true);
  return body && op->getNumOperands() == 2 && llvm::hasSingleElement(*body) &&
         body->getTerminator()->getOperand(0) == body->getArgument(0);
}

/// Whether \p op joins its two operands, element by element, as \p combiner
/// does.
static bool isJoin(Operation *op, Operation *combiner) {
  Operation *found = op;
  if (Block *body = elementBody(op, /*permuted=*/false)) {
    if (op->getNumOperands() != 3 || body->getOperations().size() != 2)
      return false;
    found = &body->front();
    if (found->getNumOperands() != 2 || found->getNumResults() != 1 ||
        body->getTerminator()->getOperand(0) != found->getResult(0))
      return false;
    Value a = found->getOperand(0), b = found->getOperand(1);
    if (a == b || llvm::any_of(ValueRange{a, b}, [&](Value value) {
          return value != body->getArgument(0) && value != body->getArgument(1);
        }))
      return false;
  }
  return found->getName() == combiner->getName() &&
         found->getRawDictionaryAttrs() == combiner->getRawDictionaryAttrs() &&
         found->getPropertiesAsAttribute() ==
             combiner->getPropertiesAsAttribute();
}

/// The combiner of the partial results that \p op can be done with one by one,
/// and which operands they are; none where it cannot. A sum that is added to a
/// maximum is partial there, and the maximum is not.
static std::pair<Operation *, SmallVector<unsigned>>
partialsOf(Operation *op, function_ref<Operation *(Value)> combinerOf) {
  Operation *first = combinerOf(op->getOperand(0));
  if (first && isMove(op))
    return {first, {0}};
  Operation *combiner = nullptr;
  SmallVector<unsigned> operands;
  for (unsigned number : {0u, 1u}) {
    if (number >= op->getNumOperands())
      break;
    Operation *found = combinerOf(op->getOperand(number));
    if (!found || !isJoin(op, found))
      continue;
    combiner = found;
    operands.push_back(number);
  }
  return {combiner, operands};
}

/// Of pieces that follow each other a sum alone needs no partial results: each
/// piece adds to the one before. Only sums of several sums do, and products
/// whose results are transposed, which is free within a product.
static void keepSumsOfSums(Cut &cut, Block &block) {
  llvm::DenseSet<Operation *> kept;
  auto isPartial = [&](Operation *op) {
    auto found = op ? cut.operations.find(op) : cut.operations.end();
    return found != cut.operations.end() &&
           found->second.kind == OperationCut::Kind::Partial;
  };
  // Down to what is read as a whole, and back up.
  for (Operation &op : block.without_terminator())
    if (isPartial(&op) &&
        (cut.operations.find(&op)->second.partialOperands.size() > 1 ||
         (isa<linalg::LinalgOp>(op) && isMove(&op) &&
          matchContraction(op.getOperand(0).getDefiningOp())) ||
         llvm::any_of(op.getOperands(), [&](Value operand) {
           return kept.contains(operand.getDefiningOp());
         })))
      kept.insert(&op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (isPartial(&op) && cut.staysPartial(op.getResult(0)) &&
        kept.contains(*op.getResult(0).user_begin()))
      kept.insert(&op);
  cut.operations.remove_if([&](const auto &entry) {
    return entry.second.kind == OperationCut::Kind::Partial &&
           !kept.contains(entry.first);
  });
}

void split::followPartials(Cut &cut, Block &block, const SplitPlan &taken) {
  DenseMap<Value, Operation *> combiners;
  auto combinerOf = [&](Value value) {
    return value.hasOneUse() ? combiners.lookup(value) : nullptr;
  };
  for (Operation &op : block.without_terminator()) {
    if (auto found = cut.operations.find(&op); found != cut.operations.end()) {
      if (found->second.kind == OperationCut::Kind::Reduction)
        for (auto [result, combiner] :
             llvm::zip_equal(op.getResults(), found->second.combiners))
          combiners[result] = combiner;
      continue;
    }
    if (taken.isTaken(&op) || op.getNumOperands() == 0)
      continue;
    auto [combiner, operands] = partialsOf(&op, combinerOf);
    if (!combiner)
      continue;
    OperationCut partial;
    partial.kind = OperationCut::Kind::Partial;
    partial.extent = cut.extent();
    partial.operands.resize(op.getNumOperands());
    partial.results.resize(1);
    partial.partialOperands = std::move(operands);
    partial.combiners.push_back(combiner);
    cut.operations.insert({&op, std::move(partial)});
    combiners[op.getResult(0)] = combiner;
  }
  if (cut.chained)
    keepSumsOfSums(cut, block);
}
