//===- MakePieces.cpp - Pieces of operations ------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// \p op's location, under a name of its own where it has one.
static Location named(Operation *op, const Twine &suffix) {
  std::string name = nameOf(op);
  if (name.empty())
    return op->getLoc();
  return NameLoc::get(StringAttr::get(op->getContext(), name + suffix),
                      op->getLoc());
}

/// Sizes that stand in attributes beside the types.
static void resizeAttributes(Operation *piece, const OperationCut &cut,
                             int64_t size) {
  auto resize = [&](ArrayRef<int64_t> sizes, CutPosition at) {
    SmallVector<int64_t> resized(sizes);
    resized[at.dim] = at.outer * size * at.inner;
    return resized;
  };
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(piece))
    slice.setStaticSizes(resize(slice.getStaticSizes(), *cut.operands[0]));
  else if (auto insert = dyn_cast<tensor::InsertSliceOp>(piece))
    insert.setStaticSizes(resize(insert.getStaticSizes(), *cut.results[0]));
  else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(piece))
    expand.setStaticOutputShape(
        resize(expand.getStaticOutputShape(), *cut.results[0]));
}

/// Positions in the whole: the body's index of the loop that was cut grows by
/// \p offset, but not where it reads its own piece of a tensor.
static void shiftIndices(Operation *piece, unsigned loop, int64_t offset,
                         const llvm::MapVector<Value, CutPosition> &own) {
  if (offset == 0)
    return;
  SmallVector<linalg::IndexOp> indices;
  piece->walk([&](linalg::IndexOp index) {
    if (index.getDim() == loop)
      indices.push_back(index);
  });
  for (linalg::IndexOp index : indices) {
    OpBuilder builder(index);
    builder.setInsertionPointAfter(index);
    Value start =
        arith::ConstantIndexOp::create(builder, index.getLoc(), offset);
    Value shifted =
        arith::AddIOp::create(builder, index.getLoc(), index, start);
    index.getResult().replaceUsesWithIf(shifted, [&](OpOperand &use) {
      if (use.getOwner() == shifted.getDefiningOp())
        return false;
      auto read = dyn_cast<tensor::ExtractOp>(use.getOwner());
      auto found = read ? own.find(read.getTensor()) : own.end();
      return found == own.end() ||
             use.getOperandNumber() != 1 + found->second.dim;
    });
  }
}

/// What a partial result starts from.
static Value neutralTensor(OpBuilder &builder, Location loc, Type type,
                           Operation *combiner) {
  auto tensor = cast<RankedTensorType>(type);
  Value empty = tensor::EmptyOp::create(builder, loc, tensor.getShape(),
                                        tensor.getElementType());
  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(combiner));
  return linalg::FillOp::create(builder, loc, neutral, empty).result();
}

/// `a` joined with `b`, which comes behind.
static Value combine(OpBuilder &builder, Location loc, Value a, Value b,
                     Operation *combiner) {
  auto type = cast<RankedTensorType>(a.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<AffineMap> maps(3,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto joined = linalg::GenericOp::create(
      builder, loc, type, ValueRange{a, b}, empty, maps, loops,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        Operation *join = body.clone(*combiner);
        join->setOperands(arguments.take_front(2));
        linalg::YieldOp::create(body, loc, join->getResults());
      });
  joined->setAttr(BaechiDialect::kPartials, builder.getUnitAttr());
  return joined.getResult(0);
}

/// Neighbours in pairs, then the pairs: one order for any number of devices.
static Value combineAll(OpBuilder &builder, Location loc,
                        SmallVector<Value> partials, Operation *combiner) {
  while (partials.size() > 1) {
    SmallVector<Value> joined;
    for (size_t at = 0; at + 1 < partials.size(); at += 2)
      joined.push_back(
          combine(builder, loc, partials[at], partials[at + 1], combiner));
    if (partials.size() % 2)
      joined.push_back(partials.back());
    partials = std::move(joined);
  }
  return partials.front();
}

/// A reshape, or a structured operation that only puts elements into another
/// order.
static bool isMove(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return true;
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops || loops.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      loops.getNumReductionLoops() != 0)
    return false;
  Operation *yield = loops.getBlock()->getTerminator();
  return llvm::hasSingleElement(*loops.getBlock()) &&
         yield->getOperand(0) == loops.getBlock()->getArgument(0) &&
         llvm::all_of(loops.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isPermutation(); });
}

/// \p move of another tensor. What it writes to stands behind the builder.
static Value moveTo(OpBuilder &builder, Operation *move, Value source) {
  IRMapping mapping;
  mapping.map(move->getOperand(0), source);
  auto type = cast<RankedTensorType>(move->getResult(0).getType());
  if (isa<linalg::LinalgOp>(move))
    mapping.map(move->getOperand(1),
                tensor::EmptyOp::create(builder, move->getLoc(),
                                        type.getShape(), type.getElementType())
                    .getResult());
  return builder.clone(*move, mapping)->getResult(0);
}

/// The only reader of \p value, where it moves elements and is not cut.
static Operation *moveOf(Value value, const SplitPlan &plan) {
  if (!value.hasOneUse() || value.use_begin()->getOperandNumber() != 0)
    return nullptr;
  Operation *user = *value.user_begin();
  return isMove(user) && !plan.cutOf.contains(user) ? user : nullptr;
}

SmallVector<Operation *> split::makePieces(OpBuilder &builder, Operation *op,
                                           const OperationCut &cut,
                                           ArrayRef<int64_t> sizes,
                                           const SplitPlan &plan,
                                           PieceTable &table) {
  size_t count = sizes.size();
  auto piecesOf = [&](Value value, std::optional<CutPosition> at) {
    return at ? table.pieces(value, sizes, *at)
              : SmallVector<Value>(count, table.whole(value));
  };
  SmallVector<SmallVector<Value>> operands;
  for (auto [operand, at] : llvm::zip(op->getOperands(), cut.operands))
    operands.push_back(piecesOf(operand, at));
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  SmallVector<SmallVector<Value>> captures;
  for (Value value : captured) {
    auto at = cut.captures.find(value);
    captures.push_back(piecesOf(value, at == cut.captures.end()
                                           ? std::nullopt
                                           : std::optional(at->second)));
  }

  bool reduces = cut.kind == OperationCut::Kind::Reduction;
  SmallVector<SmallVector<Value>> results(op->getNumResults());
  int64_t start = 0;
  for (size_t number = 0; number < count; ++number) {
    IRMapping mapping;
    llvm::MapVector<Value, CutPosition> own;
    for (auto [value, pieces] : llvm::zip_equal(captured, captures)) {
      mapping.map(value, pieces[number]);
      if (auto at = cut.captures.find(value); at != cut.captures.end())
        own[pieces[number]] = at->second;
    }
    Location loc = named(op, ".piece" + Twine(number));
    Operation *piece = builder.clone(*op, mapping);
    piece->setLoc(loc);
    for (auto [index, pieces] : llvm::enumerate(operands))
      piece->setOperand(index, pieces[number]);
    if (reduces && number > 0) {
      OpBuilder before(piece);
      auto loops = cast<linalg::LinalgOp>(piece);
      for (auto [index, init] : llvm::enumerate(loops.getDpsInitsMutable()))
        init.set(neutralTensor(before, loc, init.get().getType(),
                               cut.combiners[index]));
    }
    for (auto [result, at] : llvm::zip(piece->getResults(), cut.results))
      if (at)
        result.setType(pieceType(result.getType(), *at, sizes[number]));
    resizeAttributes(piece, cut, sizes[number]);
    if (cut.loop) {
      // Where the extent is not the outermost part, no body uses the index.
      int64_t inner = 1;
      for (const auto &at : cut.operands)
        if (at)
          inner = at->inner;
      shiftIndices(piece, *cut.loop, start * inner, own);
    }
    for (auto [index, result] : llvm::enumerate(piece->getResults()))
      results[index].push_back(result);
    start += sizes[number];
  }

  SmallVector<Operation *> moved;
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    if (!reduces) {
      table.setPieces(result, sizes, *cut.results[index], results[index]);
      continue;
    }
    Value whole = result;
    while (Operation *move = moveOf(whole, plan)) {
      for (Value &partial : results[index]) {
        partial = moveTo(builder, move, partial);
      }
      moved.push_back(move);
      whole = move->getResult(0);
    }
    table.setWhole(whole, combineAll(builder, named(op, ".sum"), results[index],
                                     cut.combiners[index]));
  }
  return moved;
}
