//===- BlockSums.cpp - Long sums in blocks --------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/BlockSums.h"
#include "Baechi/Analysis/ExactSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Terms of a block that is added in lanes, of one that is added one after the
/// other, and of one of a product's: no more than some hundred roundings each,
/// and what a register tile reads at a time lies in the first-level cache.
constexpr int64_t kInLanes = 4096, kInTurn = 512, kInChain = 256;

/// How often the result so far is a term of \p value.
int timesIn(Value value, BlockArgument sum) {
  if (value == sum)
    return 1;
  auto add = value.getDefiningOp<arith::AddFOp>();
  return add && add->getBlock() == sum.getOwner()
             ? timesIn(add.getLhs(), sum) + timesIn(add.getRhs(), sum)
             : 0;
}

class BlockSums {
public:
  BlockSums(RewriterBase &builder, linalg::GenericOp op, bool isChain)
      : builder(builder), op(op), isChain(isChain), loc(op.getLoc()),
        ranges(op.getStaticLoopRanges()), kinds(op.getIteratorTypesArray()),
        sizes(ranges), offsets(ranges.size()) {}

  bool plan();
  SmallVector<linalg::GenericOp> emit();

private:
  bool isReduction(size_t loop) const {
    return kinds[loop] == utils::IteratorType::reduction;
  }
  bool isCut(size_t loop) const { return sizes[loop] != ranges[loop]; }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value partOf(OpOperand &operand);
  Value allocate(MemRefType like, Type element);
  void convert(Value from, Value to, bool adds);
  void addBlock();
  /// The loops over the blocks, from the outermost on.
  void emitLoops(size_t loop);

  RewriterBase &builder;
  linalg::GenericOp op;
  bool isChain;
  Location loc;
  SmallVector<int64_t> ranges;
  SmallVector<utils::IteratorType> kinds;
  SmallVector<int64_t> sizes; ///< of a block
  SmallVector<Value> offsets; ///< of a block; null: from the beginning
  SmallVector<Value> results, blocks, sums;
  SmallVector<linalg::GenericOp> emitted;
};
} // namespace

bool baechi::addsUp(linalg::GenericOp op) {
  Operation *end = op.getBody()->getTerminator();
  for (auto [sum, yielded] :
       llvm::zip_equal(op.getRegionOutputArgs(), end->getOperands()))
    if (!sum.getType().isF32() || !sum.hasOneUse() ||
        timesIn(yielded, sum) != 1)
      return false;
  return true;
}

/// How far \p expr moves with each iteration of \p loop, where that is always
/// as far.
static std::optional<int64_t> stepOf(AffineExpr expr, unsigned loop) {
  if (!expr.isFunctionOfDim(loop))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> left = stepOf(binary.getLHS(), loop),
                         right = stepOf(binary.getRHS(), loop);
  if (!left || !right)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return *left + *right;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expr.getKind() == AffineExprKind::Mul && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

/// Whether a part of \p loop reads parts of the operands. Of windows, those of
/// a product's sum alone.
static bool canBeCut(linalg::GenericOp op, unsigned loop, bool isChain) {
  for (OpOperand &operand : op->getOpOperands())
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
      if (!expr.isFunctionOfDim(loop) || isa<AffineDimExpr>(expr))
        continue;
      std::optional<int64_t> step = stepOf(expr, loop);
      if (!isChain || !step || *step <= 0)
        return false;
    }
  return true;
}

SmallVector<int64_t> baechi::blockOf(linalg::GenericOp op, bool isChain) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  if (op.getNumReductionLoops() == 0 ||
      llvm::is_contained(ranges, ShapedType::kDynamic) ||
      llvm::is_contained(ranges, 0) || !addsUp(op))
    return {};
  int64_t most = isChain                  ? kInChain
                 : laneSumsOf(op).empty() ? kInTurn
                                          : kInLanes;
  SmallVector<int64_t> sizes(ranges);
  int64_t terms = 1, inAll = 1; // of a block
  for (size_t loop = ranges.size(); loop-- > 0;) {
    if (kinds[loop] != utils::IteratorType::reduction)
      continue;
    if (terms * ranges[loop] > most && canBeCut(op, loop, isChain))
      sizes[loop] = std::max<int64_t>(1, most / terms);
    terms *= sizes[loop];
    inAll *= ranges[loop];
  }
  if (inAll <= kShortSum || terms == inAll)
    return {};
  return sizes;
}

bool BlockSums::plan() {
  SmallVector<int64_t> block = blockOf(op, isChain);
  if (block.empty() || !op.hasPureBufferSemantics())
    return false;
  sizes = std::move(block);
  // So that what is kept of the sums is small.
  for (size_t loop = 0; loop < ranges.size() && !isReduction(loop); ++loop)
    if (canBeCut(op, loop, /*isChain=*/false))
      sizes[loop] = 1;
  return true;
}

Value BlockSums::partOf(OpOperand &operand) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return operand.get();
  SmallVector<OpFoldResult> from, extents,
      steps(type.getRank(), builder.getIndexAttr(1));
  bool whole = true;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [extent, expr] :
       llvm::zip_equal(type.getShape(), map.getResults())) {
    // From the first that the part's iterations read to the last.
    OpFoldResult start = builder.getIndexAttr(0);
    int64_t read = extent;
    for (size_t loop = 0; loop < ranges.size(); ++loop) {
      if (!offsets[loop] || !expr.isFunctionOfDim(loop))
        continue;
      int64_t step = *stepOf(expr, loop);
      Value moved = offsets[loop];
      if (step != 1)
        moved = arith::MulIOp::create(builder, loc, moved, index(step));
      if (auto before = dyn_cast<Value>(start))
        moved = arith::AddIOp::create(builder, loc, before, moved);
      start = moved;
      read -= step * (ranges[loop] - sizes[loop]);
      whole = false;
    }
    from.push_back(start);
    extents.push_back(builder.getIndexAttr(read));
  }
  return whole ? operand.get()
               : memref::SubViewOp::create(builder, loc, operand.get(), from,
                                           extents, steps)
                     .getResult();
}

Value BlockSums::allocate(MemRefType like, Type element) {
  OpBuilder::InsertionGuard guard(builder);
  auto kernel = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&kernel.getFunctionBody().front());
  // The stack will hold it, or the kernel's scratch (placeAllocations).
  return memref::AllocOp::create(builder, loc,
                                 MemRefType::get(like.getShape(), element),
                                 builder.getI64IntegerAttr(64));
}

/// Sets `to` to `from` in its type, or adds it.
void BlockSums::convert(Value from, Value to, bool adds) {
  unsigned rank = cast<MemRefType>(to.getType()).getRank();
  AffineMap same = builder.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, loc, TypeRange(), ValueRange(from), ValueRange(to),
      ArrayRef<AffineMap>{same, same}, parallel,
      [&](OpBuilder &body, Location at, ValueRange args) {
        Type wanted = args[1].getType();
        Value value = args[0];
        if (value.getType() != wanted)
          value =
              wanted.isF64()
                  ? arith::ExtFOp::create(body, at, wanted, args[0]).getResult()
                  : arith::TruncFOp::create(body, at, wanted, args[0])
                        .getResult();
        if (adds)
          value = arith::AddFOp::create(body, at, args[1], value);
        linalg::YieldOp::create(body, at, value);
      });
}

void BlockSums::addBlock() {
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  for (Value block : blocks)
    linalg::FillOp::create(builder, loc, zero, block);
  SmallVector<Value> operands;
  for (OpOperand *input : op.getDpsInputOperands())
    operands.push_back(partOf(*input));
  llvm::append_range(operands, blocks);
  auto inner = cast<linalg::GenericOp>(builder.clone(*op));
  inner->setOperands(operands);
  OpBuilder::InsertionGuard guard(builder);
  for (auto at :
       llvm::make_early_inc_range(inner.getBody()->getOps<linalg::IndexOp>()))
    if (Value offset = offsets[at.getDim()]) {
      builder.setInsertionPointAfter(at);
      auto moved = arith::AddIOp::create(builder, loc, at, offset);
      at.getResult().replaceAllUsesExcept(moved, moved);
    }
  builder.setInsertionPointAfter(inner);
  for (auto [block, sum] : llvm::zip_equal(blocks, sums))
    convert(block, sum, /*adds=*/true);
  emitted.push_back(inner);
}

void BlockSums::emitLoops(size_t loop) {
  while (loop < ranges.size() && (!isReduction(loop) || !isCut(loop)))
    ++loop;
  if (loop == ranges.size())
    return addBlock();
  int64_t size = sizes[loop], left = ranges[loop] % size;
  {
    OpBuilder::InsertionGuard guard(builder);
    auto each = scf::ForOp::create(builder, loc, index(0),
                                   index(ranges[loop] - left), index(size));
    builder.setInsertionPointToStart(each.getBody());
    offsets[loop] = each.getInductionVar();
    emitLoops(loop + 1);
  }
  if (left > 0) {
    sizes[loop] = left;
    offsets[loop] = index(ranges[loop] - left);
    emitLoops(loop + 1);
    sizes[loop] = size;
  }
  offsets[loop] = nullptr;
}

SmallVector<linalg::GenericOp> BlockSums::emit() {
  builder.setInsertionPoint(op);
  for (size_t loop = 0; loop < ranges.size() && !isReduction(loop); ++loop)
    if (isCut(loop)) {
      auto each = scf::ForOp::create(builder, loc, index(0),
                                     index(ranges[loop]), index(1));
      builder.setInsertionPointToStart(each.getBody());
      offsets[loop] = each.getInductionVar();
    }
  for (OpOperand &result : op.getDpsInitsMutable()) {
    results.push_back(partOf(result));
    auto type = cast<MemRefType>(results.back().getType());
    blocks.push_back(allocate(type, builder.getF32Type()));
    sums.push_back(isChain ? results.back()
                           : allocate(type, builder.getF64Type()));
    if (!isChain)
      convert(results.back(), sums.back(), /*adds=*/false);
  }
  emitLoops(0);
  for (auto [sum, result] : llvm::zip_equal(sums, results))
    if (!isChain)
      convert(sum, result, /*adds=*/false);
  builder.eraseOp(op);
  return std::move(emitted);
}

SmallVector<linalg::GenericOp> baechi::sumInBlocks(RewriterBase &rewriter,
                                                   linalg::GenericOp op,
                                                   bool isChain) {
  BlockSums sums(rewriter, op, isChain);
  if (!sums.plan())
    return {op};
  return sums.emit();
}
