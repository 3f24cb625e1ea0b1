//===- MapKernel.cpp - Bufferized kernels to launches -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/CudaBlocks.h"
#include "Mapping.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// What buffers may take of a block's shared memory; the rest is for sums.
constexpr int64_t kMostShared = 32 << 10;
/// Rows that are one warp's share a block, when there are enough to keep the
/// device busy all the same.
constexpr int64_t kWarpsOfBlock = 4, kLeastRowsOfWarps = 528;
/// Blocks with buffers of their own in the scratch.
constexpr int64_t kMostLargeBlocks = 264;

/// Work that threads share out; all else is computed alike by all of them.
bool isShared(Operation *op) {
  return isa<linalg::GenericOp, memref::StoreOp, memref::AllocOp>(op);
}
bool containsShared(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isShared(inner) ? WalkResult::interrupt()
                               : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t pointsOf(linalg::GenericOp op) {
  int64_t points = 1;
  for (int64_t size : op.getStaticLoopRanges())
    points *= size;
  return points;
}

/// A nest of parallel loops that only the innermost one of has work in.
struct RowLoops {
  SmallVector<scf::ForOp> loops;
  SmallVector<int64_t> lower, step, trips;
  int64_t rows = 1;
};

/// The parallel loops from `outermost` inwards, as far as they have constant
/// bounds.
RowLoops rowLoopsFrom(scf::ForOp outermost) {
  RowLoops nest;
  for (scf::ForOp loop = outermost; loop;) {
    auto lower = getConstantIntValue(loop.getLowerBound());
    auto upper = getConstantIntValue(loop.getUpperBound());
    auto step = getConstantIntValue(loop.getStep());
    if (!lower || !upper || !step || *upper <= *lower || *lower < 0 ||
        !isParallel(loop))
      break;
    nest.loops.push_back(loop);
    nest.lower.push_back(*lower);
    nest.step.push_back(*step);
    nest.trips.push_back(llvm::divideCeil(*upper - *lower, *step));
    nest.rows *= nest.trips.back();
    scf::ForOp inner;
    bool alone = true;
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto next = dyn_cast<scf::ForOp>(op);
      if (next && !inner)
        inner = next;
      else if (next || containsShared(&op) || !isMemoryEffectFree(&op))
        alone = false;
    }
    loop = alone ? inner : scf::ForOp();
  }
  return nest;
}

class Mapper {
public:
  Mapper(func::FuncOp kernel, Executor executor)
      : kernel(kernel), executor(executor), builder(kernel.getContext()) {}
  LogicalResult run();

private:
  bool needsOneBlock();
  LogicalResult launchOneBlock(ArrayRef<Operation *> ops);
  LogicalResult launchRows(scf::ForOp outermost);
  LogicalResult inBlock(LaunchCode &code, Operation &op);
  LogicalResult inBlock(LaunchCode &code, Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(inBlock(code, op)))
        return failure();
    return success();
  }
  LogicalResult loopInBlock(LaunchCode &code, scf::ForOp loop);
  LogicalResult branchInBlock(LaunchCode &code, scf::IfOp branch);

  func::FuncOp kernel;
  Executor executor;
  OpBuilder builder;
  StartValues starts;
};

/// Shared memory that the buffers in `ops` and the sums of so many threads take
/// together.
int64_t sharedFor(ArrayRef<Operation *> ops, int64_t threads) {
  int64_t buffers = 0;
  // Sums of a type take turns in the buffers of those with most results.
  llvm::SmallMapVector<Type, int64_t, 4> results;
  for (Operation *outer : ops)
    outer->walk([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        buffers += bytesOfBuffer(alloc.getType());
      auto work = dyn_cast<linalg::GenericOp>(op);
      if (!work || work.getNumReductionLoops() == 0)
        return;
      llvm::SmallMapVector<Type, int64_t, 4> own;
      for (Value init : work.getDpsInits())
        ++own[getElementTypeOrSelf(init.getType())];
      for (auto [type, count] : own)
        results[type] = std::max(results[type], count);
    });
  int64_t sums = 0;
  for (auto [type, count] : results)
    sums += count * bytesOfBuffer(MemRefType::get({threads}, type));
  return std::min(buffers, kMostShared) + sums;
}

/// Threads for blocks that execute what is in `ops`: fewer where their sums
/// would not fit into shared memory.
int64_t threadsFor(ArrayRef<Operation *> ops, int64_t most) {
  int64_t points = 1;
  for (Operation *op : ops)
    op->walk([&](linalg::GenericOp work) {
      points = std::max(points, pointsOf(work));
    });
  int64_t threads =
      std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(points / 2), kWarp, most);
  while (threads > kWarp && sharedFor(ops, threads) > kSharedOfBlock)
    threads /= 2;
  return threads;
}
} // namespace

//===----------------------------------------------------------------------===//
// Inside of a block
//===----------------------------------------------------------------------===//

LogicalResult Mapper::loopInBlock(LaunchCode &code, scf::ForOp loop) {
  SmallVector<Value> carried = llvm::map_to_vector(
      loop.getInitArgs(), [&](Value value) { return code.value(value); });
  LogicalResult done = success();
  SmallVector<Value> results = code.loop(
      code.value(loop.getLowerBound()), code.value(loop.getUpperBound()),
      code.value(loop.getStep()), carried, [&](Value iv, ValueRange now) {
        code.map(loop.getInductionVar(), iv);
        for (auto [from, to] : llvm::zip_equal(loop.getRegionIterArgs(), now))
          code.map(from, to);
        done = inBlock(code, *loop.getBody());
        return llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
          return succeeded(done) ? code.value(value) : Value();
        });
      });
  for (auto [from, to] : llvm::zip_equal(loop.getResults(), results))
    code.map(from, to);
  return done;
}

LogicalResult Mapper::branchInBlock(LaunchCode &code, scf::IfOp branch) {
  if (branch.getNumResults() != 0)
    return branch.emitOpError("cannot be mapped to threads of a GPU: it gives "
                              "values and has work in it");
  code.synchronize();
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(code.builder, branch.getLoc(),
                                code.value(branch.getCondition()), hasElse);
  OpBuilder::InsertionGuard guard(code.builder);
  code.builder.setInsertionPoint(copy.thenYield());
  if (failed(inBlock(code, *branch.thenBlock())))
    return failure();
  code.synchronize();
  if (!hasElse)
    return success();
  code.builder.setInsertionPoint(copy.elseYield());
  if (failed(inBlock(code, *branch.elseBlock())))
    return failure();
  code.synchronize();
  return success();
}

LogicalResult Mapper::inBlock(LaunchCode &code, Operation &op) {
  if (auto work = dyn_cast<linalg::GenericOp>(op)) {
    executeInBlock(code, work, starts);
    return success();
  }
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    code.map(alloc, code.shared(alloc.getType(), kMostShared));
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    code.section([&](Value thread) {
      Value first = arith::CmpIOp::create(code.builder, op.getLoc(),
                                          arith::CmpIPredicate::eq, thread,
                                          code.index(0));
      code.when(first, [&] { code.clone(op); });
    });
    return success();
  }
  if (!containsShared(&op)) {
    if (isMemoryEffectFree(&op))
      code.clone(op);
    else
      code.readAlike([&] { code.clone(op); });
    return success();
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loopInBlock(code, loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return branchInBlock(code, branch);
  return op.emitOpError("cannot be mapped to threads of a GPU");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// A launch for rows: a block computes one after the other those that are the
/// number of blocks apart.
LogicalResult Mapper::launchRows(scf::ForOp outermost) {
  RowLoops nest = rowLoopsFrom(outermost);
  scf::ForOp innermost = nest.loops.back();
  int64_t bytes = 0;
  innermost.walk(
      [&](memref::AllocOp alloc) { bytes += bytesOfBuffer(alloc.getType()); });
  int64_t blocks =
      bytes > kMostShared ? std::min(nest.rows, kMostLargeBlocks) : nest.rows;
  int64_t threads = threadsFor(innermost.getOperation(), 512);
  int64_t warps = 1;
  if (threads == kWarp && nest.rows >= kLeastRowsOfWarps)
    warps = std::min<int64_t>(
        kWarpsOfBlock, llvm::bit_floor<uint64_t>(kMostShared / 2 /
                                                 std::max<int64_t>(bytes, 1)));
  LaunchCode code(builder, outermost.getLoc(), executor, blocks, threads,
                  std::max<int64_t>(warps, 1));
  LogicalResult done = success();
  auto computeRow = [&](Value row) {
    SmallVector<Value> at = code.delinearize(row, nest.trips);
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      scf::ForOp loop = nest.loops[i];
      Value iv = code.mul(at[i], nest.step[i]);
      if (nest.lower[i] != 0)
        iv = code.add(iv, code.index(nest.lower[i]));
      code.map(loop.getInductionVar(), iv);
      if (loop == innermost)
        done = inBlock(code, *loop.getBody());
      else
        for (Operation &op : loop.getBody()->without_terminator())
          if (!isa<scf::ForOp>(op))
            code.clone(op);
    }
  };
  if (blocks == nest.rows)
    computeRow(code.block);
  else
    code.loop(code.block, code.index(nest.rows), code.index(blocks),
              computeRow);
  code.finish();
  return done;
}

LogicalResult Mapper::launchOneBlock(ArrayRef<Operation *> ops) {
  LaunchCode code(builder, ops.front()->getLoc(), executor, 1,
                  threadsFor(ops, 1024));
  for (Operation *op : ops)
    if (failed(inBlock(code, *op)))
      return failure();
  code.finish();
  return success();
}

/// True for a copy that is made only where two buffers are not one
/// (protectAliases), which the host decides.
static bool isGuardedCopy(Operation &op) {
  auto guard = dyn_cast<scf::IfOp>(op);
  auto compare =
      guard ? guard.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  return compare &&
         compare.getLhs()
             .getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>();
}

/// Scalars that are computed by loops, or read from what the kernel writes,
/// cannot be computed again in each launch.
bool Mapper::needsOneBlock() {
  llvm::DenseSet<Value> written;
  kernel.walk([&](Operation *op) {
    if (auto work = dyn_cast<linalg::GenericOp>(op))
      for (Value init : work.getDpsInits())
        written.insert(rootBuffer(init));
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written.insert(rootBuffer(store.getMemRef()));
  });
  return llvm::any_of(kernel.getBody().front(), [&](Operation &op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return written.contains(rootBuffer(load.getMemRef()));
    return isa<scf::SCFDialect>(op.getDialect()) && op.getNumResults() > 0;
  });
}

LogicalResult Mapper::run() {
  WalkResult unknown = kernel.walk([&](Operation *op) {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    if (isa<memref::AllocaOp, memref::ReallocOp>(op) ||
        (alloc && (!alloc.getType().hasStaticShape() ||
                   !alloc.getType().getLayout().isIdentity()))) {
      kernel.emitOpError("is a kernel that needs a buffer of unknown size: ")
          << op->getResult(0).getType();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (unknown.wasInterrupted() || failed(normalize(kernel, starts)))
    return failure();
  Block &body = kernel.getBody().front();
  if (needsOneBlock()) {
    SmallVector<Operation *> all;
    for (Operation &op : body.without_terminator())
      if (!isa<memref::AllocOp>(op))
        all.push_back(&op);
    builder.setInsertionPoint(body.getTerminator());
    if (failed(launchOneBlock(all)))
      return failure();
    for (Operation *op : llvm::reverse(all))
      op->erase();
    return success();
  }
  SmallVector<Operation *> work;
  for (Operation &op : body.without_terminator())
    if (isGuardedCopy(op))
      for (auto copy :
           cast<scf::IfOp>(op).thenBlock()->getOps<linalg::GenericOp>())
        work.push_back(copy);
    else if (isa<linalg::GenericOp, memref::StoreOp>(op) ||
             (op.getNumRegions() > 0 && containsShared(&op)))
      work.push_back(&op);
    else if (!isa<memref::AllocOp, memref::LoadOp>(op) &&
             !isMemoryEffectFree(&op))
      return op.emitOpError("cannot be mapped to launches on a GPU");
  for (size_t at = 0; at < work.size(); ++at) {
    Operation *op = work[at];
    builder.setInsertionPoint(op);
    // What puts tensors together is one launch instead of one for each, and so
    // are updates that were joined.
    auto joined =
        kernel->hasAttr(kCudaTogether) ? countTogether : countJoinedCopies;
    if (size_t count = joined(ArrayRef(work).drop_front(at)); count > 1) {
      SmallVector<linalg::GenericOp> copies;
      for (Operation *copy : ArrayRef(work).slice(at, count))
        copies.push_back(cast<linalg::GenericOp>(copy));
      builder.setInsertionPoint(copies.back());
      launchTogether(builder, copies, executor);
      for (linalg::GenericOp copy : copies)
        copy->erase();
      at += count - 1;
      continue;
    }
    LogicalResult done = success();
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (generic.getNumReductionLoops() != 0)
        launchSums(builder, generic, starts, executor);
      else if (!launchTransposed(builder, generic, executor))
        launchElementwise(builder, generic, executor);
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && !rowLoopsFrom(loop).loops.empty()) {
      done = launchRows(loop);
    } else if (std::optional<IndependentColumns> columns =
                   loop ? independentColumns(loop) : std::nullopt) {
      launchColumns(builder, loop, *columns, kernel, executor);
    } else {
      done = launchOneBlock(op);
    }
    if (failed(done))
      return failure();
    op->erase();
  }
  return success();
}

LogicalResult baechi::mapKernel(func::FuncOp kernel, Executor executor) {
  return Mapper(kernel, executor).run();
}
