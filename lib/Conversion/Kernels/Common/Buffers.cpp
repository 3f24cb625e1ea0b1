//===- Buffers.cpp - The buffers of bufferized kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Common/Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr int64_t kAlignment = 64;
/// LLVM keeps apart what lies on the stack, so row buffers belong there; a
/// device's thread has the usual stack of a few MiB.
constexpr int64_t kLargestStackBuffer = 16 << 10;
constexpr int64_t kMostStack = 128 << 10;

/// Bytes of a buffer of static shape; an i1 takes one byte.
int64_t bytesOf(MemRefType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// The buffer that `value` is, seen through casts and through loops that carry
/// it unchanged.
Value carriedBuffer(Value value) {
  while (true) {
    if (auto cast = value.getDefiningOp<memref::CastOp>()) {
      value = cast.getSource();
      continue;
    }
    auto loop = value.getDefiningOp<scf::ForOp>();
    if (!loop)
      return value;
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (carriedBuffer(loop.getYieldedValues()[index]) !=
        loop.getRegionIterArg(index))
      return value;
    value = loop.getInitArgs()[index];
  }
}

Value allocateLike(OpBuilder &builder, Location loc, MemRefType type) {
  auto contiguous = MemRefType::get(type.getShape(), type.getElementType());
  return memref::AllocOp::create(builder, loc, contiguous,
                                 builder.getI64IntegerAttr(kAlignment));
}

Value castTo(OpBuilder &builder, Location loc, Value buffer, Type type) {
  if (buffer.getType() == type)
    return buffer;
  return memref::CastOp::create(builder, loc, type, buffer);
}

/// Copies the buffers that `carried` (operands of a region's terminator) hands
/// to the block arguments `arguments` into buffers that nothing else writes.
void separate(Operation *terminator, MutableOperandRange carried,
              ValueRange arguments) {
  OpBuilder builder(terminator);
  Location loc = terminator->getLoc();
  SmallVector<OpOperand *> moved;
  for (auto [index, operand] : llvm::enumerate(carried)) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    Value buffer = carriedBuffer(operand.get());
    if (index < arguments.size() && buffer == arguments[index])
      continue;
    moved.push_back(&operand);
  }
  auto copyToNew = [&](Value source, Type type) {
    Value own = allocateLike(builder, loc, cast<MemRefType>(type));
    memref::CopyOp::create(builder, loc, source, own);
    return castTo(builder, loc, own, type);
  };
  // What is not computed in this iteration may be a buffer that another copy
  // below overwrites: two loop values that change places.
  for (OpOperand *operand : moved)
    if (!carriedBuffer(operand->get()).getDefiningOp<memref::AllocOp>())
      operand->set(copyToNew(operand->get(), operand->get().getType()));
  for (OpOperand *operand : moved)
    operand->set(copyToNew(operand->get(), operand->get().getType()));
}
} // namespace

void baechi::separateCarriedBuffers(func::FuncOp kernel) {
  // Post order: carriedBuffer looks through inner loops that were done.
  kernel.walk<WalkOrder::PostOrder>([](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
      separate(yield, yield.getResultsMutable(), loop.getRegionIterArgs());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      separate(loop.getConditionOp(), loop.getConditionOp().getArgsMutable(),
               loop.getBeforeArguments());
      separate(loop.getYieldOp(), loop.getYieldOp().getResultsMutable(),
               loop.getAfterArguments());
    }
  });
}

void baechi::separateResults(func::FuncOp kernel) {
  Operation *end = kernel.getBody().front().getTerminator();
  OpBuilder builder(end);
  llvm::SmallDenseSet<Value> seen;
  for (OpOperand &operand : end->getOpOperands()) {
    if (seen.insert(carriedBuffer(operand.get())).second)
      continue;
    Type type = operand.get().getType();
    Value own = allocateLike(builder, end->getLoc(), cast<MemRefType>(type));
    memref::CopyOp::create(builder, end->getLoc(), operand.get(), own);
    operand.set(castTo(builder, end->getLoc(), own, type));
  }
}

void baechi::flattenEmptyArguments(func::FuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<MemRefType>(argument.getType());
    if (type.getNumElements() != 0 || type.getRank() == 1)
      continue;
    argument.setType(MemRefType::get({0}, type.getElementType()));
    if (argument.use_empty())
      continue;
    auto whole = memref::ReinterpretCastOp::create(
        builder, kernel.getLoc(), type, argument, /*offset=*/0, type.getShape(),
        type.getStridesAndOffset().first);
    argument.replaceAllUsesExcept(whole, whole);
  }
  kernel.setFunctionType(builder.getFunctionType(
      kernel.getBody().getArgumentTypes(), kernel.getResultTypes()));
}

//===----------------------------------------------------------------------===//
// Results in the buffers of arguments
//===----------------------------------------------------------------------===//

namespace {
/// Views of all elements in their order.
bool isReshape(Operation *op) {
  return isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
      op);
}

/// The function argument that `value` is all of, element for element.
Value wholeArgument(Value value) {
  while (Operation *view = value.getDefiningOp()) {
    if (!isReshape(view))
      return {};
    value = view->getOperand(0);
  }
  return value;
}

/// The operations that read or write the buffer of `argument`; nullopt when a
/// part of it is viewed.
std::optional<SmallVector<Operation *>> accesses(Value argument) {
  SmallVector<Operation *> result;
  SmallVector<Value> worklist{argument};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (isReshape(user))
        worklist.push_back(user->getResult(0));
      else if (isa<linalg::LinalgOp, memref::CopyOp>(user))
        result.push_back(user);
      else
        return std::nullopt;
    }
  return result;
}

bool isCopy(Operation *op, Value from, Value to) {
  auto copy = dyn_cast<memref::CopyOp>(op);
  return copy && wholeArgument(copy.getSource()) == from &&
         wholeArgument(copy.getTarget()) == to;
}

/// True when `op` runs exactly once: what comes after it in its block comes
/// after it in time.
bool runsOnce(Operation *op) { return isa<func::FuncOp>(op->getParentOp()); }

/// True when the kernel starts by copying the argument into the result, and
/// does nothing else with the argument: it changes the result, a copy.
bool isChangedCopy(Value argument, Value result) {
  Operation *copy = nullptr;
  SmallVector<Value> views{argument};
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (isReshape(user))
        views.push_back(user->getResult(0));
      else if (copy || !isCopy(user, argument, result))
        return false;
      else
        copy = user;
    }
  if (!copy || !runsOnce(copy))
    return false;
  views.assign({result});
  while (!views.empty())
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (isReshape(user))
        views.push_back(user->getResult(0));
      else if (user != copy &&
               !copy->isBeforeInBlock(
                   copy->getBlock()->findAncestorOpInBlock(*user)))
        return false;
    }
  return true;
}

/// One buffer for both is right when the kernel touches them only by copies of
/// the argument into the result and, after those, by one elementwise operation
/// on both (or by operations that no longer read the argument).
bool isSafeInPlace(Value argument, Value result) {
  if (isChangedCopy(argument, result))
    return true;
  auto reads = accesses(argument), writes = accesses(result);
  if (!reads || !writes)
    return false;
  Operation *reader = nullptr;
  for (Operation *op : *reads) {
    if (isCopy(op, argument, result) || op == reader)
      continue;
    if (reader || isa<memref::CopyOp>(op))
      return false;
    reader = op;
  }
  if (reader &&
      !isElementwiseInPlace(cast<linalg::LinalgOp>(reader), argument, result))
    return false;
  // What writes the result before the argument was read destroys it.
  for (Operation *op : *writes) {
    if (isCopy(op, argument, result) || op == reader)
      continue;
    for (Operation *read : *reads)
      if (!runsOnce(op) || !runsOnce(read) || op->isBeforeInBlock(read))
        return false;
  }
  return true;
}
/// An argument's copy into the result that may lie in the same buffer is only
/// needed when it does not.
void guardCopy(memref::CopyOp copy) {
  OpBuilder builder(copy);
  Location loc = copy.getLoc();
  auto address = [&](Value buffer) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  };
  Value differ = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       address(copy.getSource()),
                                       address(copy.getTarget()));
  auto guard = scf::IfOp::create(builder, loc, differ);
  copy->moveBefore(guard.thenBlock()->getTerminator());
}
} // namespace

bool baechi::isElementwiseInPlace(linalg::LinalgOp op, Value argument,
                                  Value result) {
  if (op.getNumLoops() != op.getNumParallelLoops())
    return false;
  AffineMap read, written;
  for (OpOperand &operand : op->getOpOperands()) {
    Value whole = wholeArgument(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!whole || (whole != argument && whole != result))
      continue;
    // Through a reshape only the identity keeps the order of the elements.
    if (!(operand.get() == whole ? map.isPermutation() : map.isIdentity()))
      return false;
    AffineMap &seen = whole == argument ? read : written;
    if (seen && seen != map)
      return false;
    seen = map;
  }
  return read && written && read == written;
}

void baechi::protectAliases(func::FuncOp kernel,
                            const KernelSignature &signature) {
  Block &body = kernel.getBody().front();
  for (auto [result, arguments] : llvm::enumerate(signature.mayAlias)) {
    Value target = kernel.getArgument(signature.numArguments + result);
    bool safe = llvm::all_of(arguments, [&](unsigned argument) {
      return isSafeInPlace(kernel.getArgument(argument), target);
    });
    if (safe) {
      SmallVector<memref::CopyOp> copies(body.getOps<memref::CopyOp>());
      for (memref::CopyOp copy : copies)
        for (unsigned argument : arguments)
          if (isCopy(copy, kernel.getArgument(argument), target))
            guardCopy(copy);
      continue;
    }
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    Value own = allocateLike(builder, kernel.getLoc(),
                             cast<MemRefType>(target.getType()));
    target.replaceAllUsesWith(own);
    builder.setInsertionPoint(body.getTerminator());
    memref::CopyOp::create(builder, kernel.getLoc(), own, target);
  }
}

//===----------------------------------------------------------------------===//
// Stack and scratch
//===----------------------------------------------------------------------===//

LogicalResult baechi::placeAllocations(func::FuncOp kernel) {
  SmallVector<memref::AllocOp> allocations;
  WalkResult unknown = kernel.walk([&](Operation *op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      if (alloc.getType().hasStaticShape() &&
          alloc.getType().getLayout().isIdentity()) {
        allocations.push_back(alloc);
        return WalkResult::advance();
      }
    }
    if (isa<memref::AllocOp, memref::AllocaOp, memref::ReallocOp>(op)) {
      kernel.emitOpError("is a kernel that needs a buffer of unknown size: ")
          << op->getResult(0).getType();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (unknown.wasInterrupted())
    return failure();

  // Offsets first: the scratch argument's type says its size.
  int64_t stackBytes = 0, scratchBytes = 0;
  SmallVector<std::pair<memref::AllocOp, int64_t>> inScratch;
  OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
  for (memref::AllocOp alloc : allocations) {
    int64_t bytes = llvm::alignTo(bytesOf(alloc.getType()), kAlignment);
    if (bytes > kLargestStackBuffer || stackBytes + bytes > kMostStack) {
      inScratch.emplace_back(alloc, scratchBytes);
      scratchBytes += bytes;
      continue;
    }
    stackBytes += bytes;
    Value onStack =
        memref::AllocaOp::create(entry, alloc.getLoc(), alloc.getType(),
                                 entry.getI64IntegerAttr(kAlignment));
    alloc.replaceAllUsesWith(onStack);
    alloc.erase();
  }

  auto bytes = MemRefType::get({scratchBytes}, entry.getI8Type());
  if (failed(kernel.insertArgument(kernel.getNumArguments(), bytes,
                                   DictionaryAttr::get(kernel.getContext()),
                                   kernel.getLoc())))
    return failure();
  Value scratch = kernel.getArguments().back();
  for (auto [alloc, offset] : inScratch) {
    Value at = arith::ConstantIndexOp::create(entry, alloc.getLoc(), offset);
    Value view = memref::ViewOp::create(entry, alloc.getLoc(), alloc.getType(),
                                        scratch, at, ValueRange());
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }
  kernel->setAttr(BaechiDialect::kKernelScratch,
                  entry.getI64IntegerAttr(scratchBytes));
  return success();
}
