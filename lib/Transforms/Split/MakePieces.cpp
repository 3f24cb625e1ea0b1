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

/// Not where it only writes to it.
static bool isRead(Operation *op, Value operand) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  return !loops || llvm::is_contained(loops.getDpsInputs(), operand);
}

/// An operation on partial results, of each. What is joined with a whole joins
/// the first.
static void makePartials(OpBuilder &builder, Operation *op,
                         const OperationCut &cut, const Cut &all,
                         PieceTable &table) {
  size_t count = all.sizes.size();
  SmallVector<Value> results;
  for (size_t number = 0; number < count; ++number) {
    SmallVector<Value> operands;
    Value only;
    bool isJoined = true;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      if (llvm::is_contained(cut.partialOperands, index)) {
        only = table.partials(operand)[number];
        operands.push_back(only);
        continue;
      }
      if (number > 0 && isRead(op, operand))
        isJoined = false;
      operands.push_back(table.whole(operand));
    }
    if (isJoined) {
      Operation *piece = builder.clone(*op);
      piece->setLoc(namedAfter(op, ".piece" + Twine(number)));
      piece->setOperands(operands);
      only = piece->getResult(0);
    }
    results.push_back(only);
  }
  table.setPartials(op->getResult(0), results, cut.combiners.front(),
                    all.chained);
}

static bool isChained(const Cut &cut, Value result) {
  return cut.chained && !cut.staysPartial(result);
}

/// The pieces of \p op where the builder stands: of each result, those.
static SmallVector<SmallVector<Value>>
clonePieces(OpBuilder &builder, Operation *op, const OperationCut &cut,
            const Cut &all, PieceTable &table) {
  ArrayRef<int64_t> sizes = all.sizes;
  size_t count = sizes.size();
  auto piecesOf = [&](Value value, std::optional<CutPosition> at) {
    return at ? table.pieces(value, sizes, *at)
              : table.wholeForEach(value, count);
  };
  auto windowsOf = [&](Value value, const CutWindow &window) {
    SmallVector<PieceTable::Range> ranges;
    int64_t start = 0;
    for (int64_t size : sizes) {
      ranges.push_back({window.first(start), window.length(size)});
      start += size;
    }
    return table.parts(value, window.dim, ranges);
  };
  SmallVector<SmallVector<Value>> operands;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    const CutWindow *window = cut.windowOf(number);
    operands.push_back(window ? windowsOf(operand, *window)
                              : piecesOf(operand, cut.operands[number]));
  }
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
    Location loc = namedAfter(op, ".piece" + Twine(number));
    Operation *piece = builder.clone(*op, mapping);
    piece->setLoc(loc);
    for (auto [index, pieces] : llvm::enumerate(operands))
      piece->setOperand(index, pieces[number]);
    if (reduces && number > 0) {
      OpBuilder before(piece);
      auto loops = cast<linalg::LinalgOp>(piece);
      for (auto [index, init] : llvm::enumerate(loops.getDpsInitsMutable()))
        init.set(isChained(all, op->getResult(index))
                     ? results[index].back()
                     : neutralTensor(before, loc, init.get().getType(),
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
  return results;
}

void split::makePieces(OpBuilder &builder, Operation *op, const Cut &all,
                       PieceTable &table) {
  const OperationCut &cut = all.operations.find(op)->second;
  if (cut.kind == OperationCut::Kind::Partial)
    return makePartials(builder, op, cut, all, table);
  bool reduces = cut.kind == OperationCut::Kind::Reduction;
  SmallVector<SmallVector<Value>> results =
      clonePieces(builder, op, cut, all, table);
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    if (reduces && isChained(all, result))
      table.setWhole(result, results[index].back());
    else if (reduces)
      table.setPartials(result, results[index], cut.combiners[index],
                        all.chained);
    else
      table.setPieces(result, all.sizes, *cut.results[index], results[index]);
}

SmallVector<Value> split::computePieces(OpBuilder &builder, OpResult value,
                                        ArrayRef<int64_t> sizes,
                                        CutPosition position,
                                        PieceTable &table) {
  Cut cut;
  cut.sizes.assign(sizes.begin(), sizes.end());
  std::string why;
  std::optional<OperationCut> how =
      cutAlongResult(value, position, cut.extent(), why);
  if (!how || how->kind != OperationCut::Kind::Parallel)
    return {};
  return clonePieces(builder, value.getOwner(), *how, cut,
                     table)[value.getResultNumber()];
}
