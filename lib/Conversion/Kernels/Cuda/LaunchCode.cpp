//===- LaunchCode.cpp - Writing the code of a launch -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchCode.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

LaunchCode::LaunchCode(OpBuilder &builder, Location loc, Executor executor,
                       int64_t blocks, int64_t threads, int64_t warps)
    : builder(builder), loc(loc), blocks(blocks), threads(threads),
      warps(warps), executor(executor) {
  assert((warps == 1 || threads == kWarp) && "a block that is no warp");
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  function = dyn_cast<func::FuncOp>(parent);
  if (!function)
    function = parent->getParentOfType<func::FuncOp>();
  if (executor != Executor::Device) {
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(blocks), index(1));
    outermost = loop;
    builder.setInsertionPointToStart(loop.getBody());
    block = ordered(loop.getInductionVar(), blocks);
    return;
  }
  Value one = index(1);
  launch = gpu::LaunchOp::create(builder, loc,
                                 index(llvm::divideCeil(blocks, warps)), one,
                                 one, index(warps * threads), one, one);
  outermost = launch;
  builder.setInsertionPointToStart(&launch.getBody().front());
  auto end = gpu::TerminatorOp::create(builder, loc);
  builder.setInsertionPoint(end);
  block = launch.getBlockIds().x;
  thread = launch.getThreadIds().x;
  if (warps == 1)
    return;
  warp = div(thread, kWarp);
  thread = rem(thread, kWarp);
  block = add(mul(block, warps), warp);
  if (blocks % warps == 0)
    return;
  auto known = scf::IfOp::create(builder, loc, less(block, index(blocks)));
  builder.setInsertionPoint(known.thenYield());
}

void LaunchCode::finish() { builder.setInsertionPointAfter(outermost); }

/// Loop counters of the host, in the order asked for.
Value LaunchCode::ordered(Value iv, int64_t count) {
  if (executor == Executor::Ascending)
    return iv;
  return arith::SubIOp::create(builder, loc, index(count - 1), iv);
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

void LaunchCode::barrierIfPending() {
  if (pending && executor == Executor::Device && warps == 1)
    gpu::BarrierOp::create(builder, loc);
  else if (pending && executor == Executor::Device)
    NVVM::SyncWarpOp::create(
        builder, loc,
        LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                 builder.getI32IntegerAttr(-1)));
  pending = false;
}

void LaunchCode::readAlike(function_ref<void()> reads) {
  barrierIfPending();
  reads();
  pending = true;
}

void LaunchCode::section(function_ref<void(Value)> body) {
  barrierIfPending();
  run(body);
}

void LaunchCode::proceed(function_ref<void(Value)> body) { run(body); }

void LaunchCode::run(function_ref<void(Value)> body) {
  if (executor == Executor::Device) {
    body(thread);
  } else {
    OpBuilder::InsertionGuard guard(builder);
    auto loop =
        scf::ForOp::create(builder, loc, index(0), index(threads), index(1));
    builder.setInsertionPointToStart(loop.getBody());
    body(ordered(loop.getInductionVar(), threads));
  }
  pending = true;
}

SmallVector<Value>
LaunchCode::loop(Value from, Value to, Value step, ValueRange carried,
                 function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  barrierIfPending();
  auto loop = scf::ForOp::create(builder, loc, from, to, step, carried);
  OpBuilder::InsertionGuard guard(builder);
  if (carried.empty())
    builder.setInsertionPoint(loop.getBody()->getTerminator());
  else
    builder.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  barrierIfPending();
  if (!carried.empty())
    scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

void LaunchCode::loop(Value from, Value to, Value step,
                      function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void LaunchCode::when(Value condition, function_ref<void()> body) {
  auto guarded = scf::IfOp::create(builder, loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(guarded.thenBlock());
  body();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// A buffer of the function's own: a part of the scratch, and on the host also
/// what is on chip on the device.
Value LaunchCode::bufferOfFunction(MemRefType type) {
  OpBuilder entry = OpBuilder::atBlockBegin(&function.getBody().front());
  return memref::AllocOp::create(entry, loc, type, entry.getI64IntegerAttr(64));
}

/// The block's part of a buffer of all blocks, whatever warp of theirs it is.
Value LaunchCode::inScratch(MemRefType type, int64_t bytes) {
  Value all =
      bufferOfFunction(MemRefType::get({blocks * bytes}, builder.getI8Type()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(block);
  return memref::ViewOp::create(builder, loc, type, all, mul(block, bytes),
                                ValueRange());
}

std::optional<int64_t> baechi::bytesOf(ShapedType type) {
  Type element = type.getElementType();
  auto buffer = dyn_cast<MemRefType>(type);
  if (!type.hasStaticShape() || !element.isIntOrFloat() ||
      (buffer && !buffer.getLayout().isIdentity()))
    return std::nullopt;
  return type.getNumElements() *
         llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

int64_t baechi::bytesOfBuffer(MemRefType type) {
  return llvm::alignTo(type.getNumElements() *
                           llvm::divideCeil(type.getElementTypeBitWidth(), 8),
                       kBufferAlignment);
}

Value LaunchCode::shared(MemRefType type, int64_t most) {
  for (Value &known : freeShared)
    if (known.getType() == type) {
      Value again = known;
      freeShared.erase(&known);
      return again;
    }
  int64_t bytes = bytesOfBuffer(type);
  if (usedShared + warps * bytes > most)
    return inScratch(type, bytes);
  usedShared += warps * bytes;
  if (executor != Executor::Device)
    return bufferOfFunction(type);
  auto onChip = [&](ArrayRef<int64_t> shape, Type element) {
    return MemRefType::get(
        shape, element, MemRefLayoutAttrInterface(),
        gpu::AddressSpaceAttr::get(builder.getContext(),
                                   gpu::AddressSpace::Workgroup));
  };
  MemRefType own = onChip(type.getShape(), type.getElementType());
  OpBuilder::InsertionGuard guard(builder);
  if (warps == 1) {
    Value buffer = launch.addWorkgroupAttribution(own, loc);
    builder.setInsertionPointToStart(&launch.getBody().front());
    return memref::MemorySpaceCastOp::create(builder, loc, type, buffer);
  }
  Value all = launch.addWorkgroupAttribution(
      onChip({warps * bytes}, builder.getI8Type()), loc);
  builder.setInsertionPointAfterValue(warp);
  Value part = memref::ViewOp::create(builder, loc, own, all, mul(warp, bytes),
                                      ValueRange());
  return memref::MemorySpaceCastOp::create(builder, loc, type, part);
}

void LaunchCode::release(Value shared) { freeShared.push_back(shared); }

LaunchCode::Private LaunchCode::privateValues(Type type, int64_t count) {
  if (executor != Executor::Device)
    return {bufferOfFunction(MemRefType::get({threads, count}, type))};
  auto own =
      MemRefType::get({1, count}, type, MemRefLayoutAttrInterface(),
                      gpu::AddressSpaceAttr::get(builder.getContext(),
                                                 gpu::AddressSpace::Private));
  return {launch.addPrivateAttribution(own, loc)};
}

Value LaunchCode::load(Private values, Value thread, int64_t at) {
  Value row = executor == Executor::Device ? index(0) : thread;
  return memref::LoadOp::create(builder, loc, values.buffer,
                                ValueRange{row, index(at)});
}

void LaunchCode::store(Value value, Private values, Value thread, int64_t at) {
  Value row = executor == Executor::Device ? index(0) : thread;
  memref::StoreOp::create(builder, loc, value, values.buffer,
                          ValueRange{row, index(at)});
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

/// Registers have 32 bits: shorter values go in one, longer ones in two.
Value LaunchCode::shuffleDown(Value value, int64_t distance) {
  Type type = value.getType(), i32 = builder.getI32Type();
  auto number = [&](int64_t of) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i32,
                                    builder.getI32IntegerAttr(of));
  };
  auto shuffle = [&](Value word) -> Value {
    return NVVM::ShflOp::create(builder, loc, i32, number(-1), word,
                                number(distance), number(kWarp - 1),
                                NVVM::ShflKind::down, UnitAttr());
  };
  unsigned bits = type.getIntOrFloatBitWidth();
  Type word = builder.getIntegerType(bits);
  if (type != word)
    value = arith::BitcastOp::create(builder, loc, word, value);
  if (bits <= 32) {
    if (bits < 32)
      value = arith::ExtUIOp::create(builder, loc, i32, value);
    value = shuffle(value);
    if (bits < 32)
      value = arith::TruncIOp::create(builder, loc, word, value);
  } else {
    Value half = arith::ConstantIntOp::create(builder, loc, word, 32);
    Value low = arith::TruncIOp::create(builder, loc, i32, value);
    Value high = arith::TruncIOp::create(
        builder, loc, i32, arith::ShRUIOp::create(builder, loc, value, half));
    low = arith::ExtUIOp::create(builder, loc, word, shuffle(low));
    high = arith::ExtUIOp::create(builder, loc, word, shuffle(high));
    high = arith::ShLIOp::create(builder, loc, high, half);
    value = arith::OrIOp::create(builder, loc, low, high);
  }
  return type == word
             ? value
             : Value(arith::BitcastOp::create(builder, loc, type, value));
}

void LaunchCode::combineInWarps(
    ArrayRef<Private> values, int64_t distance,
    function_ref<SmallVector<Value>(ValueRange, ValueRange)> combine) {
  assert(threads % kWarp == 0 && "threads without a whole warp");
  auto mineOf = [&](ArrayRef<Private> all, Value thread) {
    return llvm::map_to_vector(
        all, [&](Private each) { return load(each, thread, 0); });
  };
  auto keep = [&](ArrayRef<Private> all, Value thread, ValueRange next) {
    for (auto [each, value] : llvm::zip_equal(all, next))
      store(value, each, thread, 0);
  };
  if (executor == Executor::Device) {
    // What a thread has in registers needs no barrier, whoever writes memory.
    SmallVector<Value> mine = mineOf(values, thread), others;
    for (Value value : mine)
      others.push_back(shuffleDown(value, distance));
    return keep(values, thread, combine(mine, others));
  }
  // The host's threads follow each other: what all had before is put aside.
  SmallVector<Private> before;
  for (Private each : values)
    before.push_back(privateValues(
        cast<MemRefType>(each.buffer.getType()).getElementType(), 1));
  section([&](Value thread) { keep(before, thread, mineOf(values, thread)); });
  section([&](Value thread) {
    Value other = add(thread, index(distance));
    Value inWarp = less(rem(thread, kWarp), index(kWarp - distance));
    other = arith::SelectOp::create(builder, loc, inWarp, other, thread);
    keep(values, thread,
         combine(mineOf(before, thread), mineOf(before, other)));
  });
}

//===----------------------------------------------------------------------===//
// Values of the function
//===----------------------------------------------------------------------===//

Value LaunchCode::value(Value value) {
  if (Value known = values.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || executor != Executor::Device || isa<memref::AllocOp>(op) ||
      outermost->isAncestor(op))
    return value;
  for (Value operand : op->getOperands())
    (void)this->value(operand);
  OpBuilder::InsertionGuard guard(builder);
  if (lastComputed)
    builder.setInsertionPointAfter(lastComputed);
  else
    builder.setInsertionPointToStart(&launch.getBody().front());
  lastComputed = builder.clone(*op, values);
  return values.lookup(value);
}

void LaunchCode::clone(Operation &op) {
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op.isAncestor(operand.getParentBlock()->getParentOp()) ||
          &op == inner)
        values.map(operand, value(operand));
  });
  builder.clone(op, values);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value LaunchCode::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}
Value LaunchCode::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}
Value LaunchCode::mul(Value a, int64_t b) {
  return b == 1 ? a : Value(arith::MulIOp::create(builder, loc, a, index(b)));
}
Value LaunchCode::div(Value a, int64_t b) {
  return b == 1 ? a : Value(arith::DivUIOp::create(builder, loc, a, index(b)));
}
Value LaunchCode::rem(Value a, int64_t b) {
  return b == 1 ? index(0)
                : Value(arith::RemUIOp::create(builder, loc, a, index(b)));
}
Value LaunchCode::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
}
Value LaunchCode::minimum(Value a, Value b) {
  return arith::MinUIOp::create(builder, loc, a, b);
}

SmallVector<Value> LaunchCode::delinearize(Value linear,
                                           ArrayRef<int64_t> sizes) {
  SmallVector<Value> indices(sizes.size());
  size_t first = 0;
  while (first < sizes.size() && sizes[first] == 1)
    ++first;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    bool outermostDim = dim <= first;
    indices[dim] = sizes[dim] == 1 ? index(0)
                   : outermostDim  ? linear
                                   : rem(linear, sizes[dim]);
    if (sizes[dim] != 1 && !outermostDim)
      linear = div(linear, sizes[dim]);
  }
  return indices;
}
