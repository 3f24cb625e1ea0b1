//===- LaunchLinalg.cpp - Launches of one linalg operation -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mapping.h"
#include "Selection.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"
#include <vector>

using namespace mlir;
using namespace baechi;

namespace {
/// Blocks that keep a large device busy.
constexpr int64_t kManyBlocks = 264;
/// Lanes and blocks share a sum when each still adds up so many terms.
constexpr int64_t kTermsOfLane = 4, kTermsOfBlock = 16;
constexpr int64_t kVector = 4;

int64_t threadsFor(int64_t work) {
  return std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(work), 32, kBlockThreads);
}

SumShares shareSums(const LoopOrder &order, bool canSplit) {
  SumShares shares;
  shares.lanesAreNeighbours = order.rowsAreSums;
  if (canSplit) {
    // Neighbouring outputs of one lane each would read whole rows apart.
    int64_t most = order.rowsAreSums || order.outputs < 32 ? kBlockThreads
                                                           : kBlockThreads / 32;
    int64_t wanted = llvm::divideCeil(order.terms, kTermsOfLane);
    // Many outputs keep the device busy by themselves.
    if (order.outputs >= kManyBlocks * kBlockThreads)
      wanted = order.rowsAreSums ? std::min<int64_t>(wanted, 32) : 1;
    shares.lanes =
        std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(wanted), 1, most);
  }
  shares.outputs = kBlockThreads / shares.lanes;
  shares.termsOfLane = llvm::divideCeil(order.terms, shares.lanes);
  return shares;
}

SmallVector<Value> zeros(LaunchCode &code, const LoopOrder &order) {
  return SmallVector<Value>(order.sums.size(), code.index(0));
}

/// A block for a part of the terms, and sums of its own for each; then the
/// parts are added up in their order.
void launchSplitSums(OpBuilder &builder, linalg::GenericOp op,
                     const LoopOrder &order, SumShares shares, int64_t parts,
                     const StartValues &starts, Executor executor) {
  Location loc = op.getLoc();
  SmallVector<Operation *> combiner = combiners(op);
  SmallVector<Value> partial;
  for (Value init : op.getDpsInits()) {
    Type type = cast<MemRefType>(init.getType()).getElementType();
    partial.push_back(memref::AllocOp::create(
        builder, loc, MemRefType::get({parts, order.outputs}, type),
        builder.getI64IntegerAttr(64)));
  }
  int64_t groups = llvm::divideCeil(order.outputs, shares.outputs);
  int64_t termsOfPart = llvm::divideCeil(order.terms, parts);
  shares.termsOfLane = llvm::divideCeil(termsOfPart, shares.lanes);
  LaunchCode first(builder, loc, executor, groups * parts, kBlockThreads);
  Value part = first.div(first.block, groups);
  Value from = first.mul(part, termsOfPart);
  Value to = first.minimum(first.add(from, first.index(termsOfPart)),
                           first.index(order.terms));
  sumOutputs(
      first, op, order, shares,
      first.mul(first.rem(first.block, groups), shares.outputs), from, to,
      [&](ValueRange) {
        return llvm::map_to_vector(combiner, [&](Operation *op) -> Value {
          return arith::ConstantOp::create(builder, loc,
                                           *arith::getNeutralElement(op));
        });
      },
      [&](Value output, ValueRange, ValueRange sums) {
        for (auto [buffer, sum] : llvm::zip_equal(partial, sums))
          memref::StoreOp::create(builder, loc, sum, first.value(buffer),
                                  ValueRange{part, output});
      });
  first.finish();

  bool isLong = isLongSum(op, order);
  int64_t threads = threadsFor(order.outputs);
  LaunchCode last(builder, loc, executor,
                  llvm::divideCeil(order.outputs, threads), threads);
  last.section([&](Value thread) {
    Value output = last.add(last.mul(last.block, threads), thread);
    last.when(last.less(output, last.index(order.outputs)), [&] {
      SmallVector<Value> at =
          joinIndices(order, last.delinearize(output, order.parallelSizes),
                      zeros(last, order));
      SmallVector<Value> start = startValues(last, op, at, starts);
      if (isLong)
        start = inPrecision(last, builder.getF64Type(), start);
      auto loop = scf::ForOp::create(builder, loc, last.index(0),
                                     last.index(parts), last.index(1), start);
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(loop.getBody());
        SmallVector<Value> sums;
        for (auto [buffer, held, op] :
             llvm::zip_equal(partial, loop.getRegionIterArgs(), combiner)) {
          Value term = memref::LoadOp::create(
              builder, loc, last.value(buffer),
              ValueRange{loop.getInductionVar(), output});
          if (isLong)
            sums.push_back(arith::AddFOp::create(
                builder, loc, held,
                inPrecision(last, builder.getF64Type(), term)));
          else
            sums.push_back(combine(last, op, held, term));
        }
        scf::YieldOp::create(builder, loc, sums);
      }
      storeResults(
          last, op, at,
          isLong ? inPrecision(last, builder.getF32Type(), loop.getResults())
                 : SmallVector<Value>(loop.getResults()));
    });
  });
  last.finish();
}
} // namespace

namespace {
/// An operation without sums, shared out to threads.
struct ElementwiseShares {
  explicit ElementwiseShares(linalg::GenericOp op) : op(op), order(op) {
    // Neighbours in a row, as one access of 16 bytes where all are in rows.
    bool inRows = !order.parallelSizes.empty() &&
                  order.parallelSizes.back() % kVector == 0 &&
                  order.outputs >= kManyBlocks * kBlockThreads;
    width = inRows ? kVector : 1;
    work = order.outputs / width;
  }

  /// Thread `thread` of block `block` of those that share it.
  void compute(LaunchCode &code, Value block, Value thread) const {
    Value item = code.add(code.mul(block, code.threads), thread);
    auto points = [&] {
      SmallVector<int64_t> sizes = order.parallelSizes;
      if (width > 1)
        sizes.back() /= width;
      SmallVector<Value> first = code.delinearize(item, sizes);
      SmallVector<SmallVector<Value>> at, results;
      for (int64_t i = 0; i < width; ++i) {
        SmallVector<Value> point = first;
        if (width > 1)
          point.back() = code.add(code.mul(first.back(), width), code.index(i));
        at.push_back(joinIndices(order, point, {}));
        results.push_back(evaluate(code, op, at.back()));
      }
      for (auto [point, values] : llvm::zip_equal(at, results))
        storeResults(code, op, point, values);
    };
    if (work % code.threads == 0)
      points();
    else
      code.when(code.less(item, code.index(work)), points);
  }

  mutable linalg::GenericOp op;
  LoopOrder order;
  int64_t width = 1, work = 0;
};
} // namespace

void baechi::launchElementwise(OpBuilder &builder, linalg::GenericOp op,
                               Executor executor) {
  ElementwiseShares shares(op);
  if (shares.work == 0)
    return;
  int64_t threads = threadsFor(shares.work);
  LaunchCode code(builder, op.getLoc(), executor,
                  llvm::divideCeil(shares.work, threads), threads);
  code.section([&](Value thread) { shares.compute(code, code.block, thread); });
  code.finish();
}

void baechi::launchTogether(OpBuilder &builder, ArrayRef<linalg::GenericOp> ops,
                            Executor executor) {
  std::vector<ElementwiseShares> all;
  int64_t most = 0;
  for (linalg::GenericOp op : ops) {
    all.emplace_back(op);
    most = std::max(most, all.back().work);
  }
  if (most == 0)
    return;
  int64_t threads = threadsFor(most), blocks = 0;
  for (const ElementwiseShares &shares : all)
    blocks += llvm::divideCeil(shares.work, threads);
  linalg::GenericOp front = ops.front();
  LaunchCode code(builder, front.getLoc(), executor, blocks, threads);
  code.section([&](Value thread) {
    int64_t first = 0;
    for (const ElementwiseShares &shares : all) {
      int64_t own = llvm::divideCeil(shares.work, threads);
      // A block before the first wraps around to a large number.
      Value block = arith::SubIOp::create(builder, code.loc, code.block,
                                          code.index(first));
      Value isOwn = arith::CmpIOp::create(
          builder, code.loc, arith::CmpIPredicate::ult, block, code.index(own));
      code.when(isOwn, [&] { shares.compute(code, block, thread); });
      first += own;
    }
  });
  code.finish();
}

/// Where a copy goes: a box of a buffer, of one element after the other.
static memref::SubViewOp targetOfCopy(Operation *op) {
  auto copy = dyn_cast<linalg::GenericOp>(op);
  if (!copy || copy.getNumDpsInputs() != 1 || copy.getNumDpsInits() != 1 ||
      copy.getNumReductionLoops() != 0 ||
      !llvm::all_of(copy.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return {};
  auto yield = cast<linalg::YieldOp>(copy.getBody()->getTerminator());
  auto box = copy.getDpsInits()[0].getDefiningOp<memref::SubViewOp>();
  bool isStatic = box && box.getOffsets().empty() && box.getSizes().empty() &&
                  box.getStrides().empty() &&
                  llvm::all_of(box.getStaticStrides(),
                               [](int64_t stride) { return stride == 1; });
  return isStatic && yield.getOperand(0) == copy.getBody()->getArgument(0)
             ? box
             : memref::SubViewOp();
}

static bool areApart(memref::SubViewOp a, memref::SubViewOp b) {
  for (auto [from, size, other, otherSize] :
       llvm::zip_equal(a.getStaticOffsets(), a.getStaticSizes(),
                       b.getStaticOffsets(), b.getStaticSizes()))
    if (from + size <= other || other + otherSize <= from)
      return true;
  return false;
}

size_t baechi::countJoinedCopies(ArrayRef<Operation *> work) {
  SmallVector<memref::SubViewOp> boxes;
  for (Operation *op : work) {
    memref::SubViewOp box = targetOfCopy(op);
    if (!box || op->getParentOp() != work[0]->getParentOp() ||
        (!boxes.empty() && box.getSource() != boxes[0].getSource()) ||
        !llvm::all_of(boxes, [&](auto other) { return areApart(box, other); }))
      break;
    // The result may lie in an argument's memory, but in no smaller one's.
    auto from = cast<MemRefType>(
        rootBuffer(cast<linalg::GenericOp>(op).getDpsInputs()[0]).getType());
    auto into = cast<MemRefType>(rootBuffer(box.getSource()).getType());
    if (bytesOf(from).value_or(INT64_MAX) >= bytesOf(into).value_or(0))
      break;
    boxes.push_back(box);
  }
  return boxes.size();
}

size_t baechi::countTogether(ArrayRef<Operation *> work) {
  llvm::DenseSet<Value> read, written;
  size_t count = 0;
  for (Operation *op : work) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || generic.getNumReductionLoops() != 0 ||
        op->getParentOp() != work[0]->getParentOp())
      break;
    SmallVector<Value> from, into;
    for (Value input : generic.getDpsInputs())
      from.push_back(rootBuffer(input));
    for (Value init : generic.getDpsInits())
      into.push_back(rootBuffer(init));
    auto isWritten = [&](Value buffer) { return written.contains(buffer); };
    auto isUsed = [&](Value buffer) {
      return read.contains(buffer) || written.contains(buffer);
    };
    if (llvm::any_of(from, isWritten) || llvm::any_of(into, isUsed))
      break;
    read.insert_range(from);
    written.insert_range(into);
    ++count;
  }
  return count;
}

void baechi::launchSums(OpBuilder &builder, linalg::GenericOp op,
                        const StartValues &starts, Executor executor) {
  LoopOrder order(op);
  if (order.outputs == 0)
    return;
  bool isLong = order.terms > kTermsOfLane;
  bool canSplit = isLong && !combiners(op).empty();
  std::optional<Selection> selection =
      isLong ? matchSelection(op, starts) : std::nullopt;
  SumShares shares = shareSums(order, canSplit || selection);
  int64_t blocks = llvm::divideCeil(order.outputs, shares.outputs);
  int64_t parts = std::min(order.terms / (shares.lanes * kTermsOfBlock),
                           kManyBlocks / blocks);
  if (canSplit && parts > 1)
    return launchSplitSums(builder, op, order, shares, parts, starts, executor);

  LaunchCode code(builder, op.getLoc(), executor, blocks, kBlockThreads);
  auto pointOf = [&](ValueRange output) {
    return joinIndices(order, output, zeros(code, order));
  };
  auto start = [&](ValueRange output) {
    return startValues(code, op, pointOf(output), starts);
  };
  auto finish = [&](Value, ValueRange output, ValueRange sums) {
    storeResults(code, op, pointOf(output), sums);
  };
  Value first = code.mul(code.block, shares.outputs);
  if (selection && shares.lanes > 1)
    selectOutputs(code, op, order, *selection, shares, first, start, finish);
  else
    sumOutputs(code, op, order, shares, first, code.index(0),
               code.index(order.terms), start, finish);
  code.finish();
}
