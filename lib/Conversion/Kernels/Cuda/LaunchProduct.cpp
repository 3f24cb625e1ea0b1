//===- LaunchProduct.cpp - Products by generated tiles -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scheme of a tiled product on a GPU: a block keeps a tile of the result in
// its threads' registers and goes through the sum in slices, which it copies to
// shared memory. Rows, columns and sums are numbered through all loops of their
// kind, so a convolution is such a product whose operands' elements lie where
// the loops' strides say ("implicit GEMM": Chetlur et al., "cuDNN: Efficient
// Primitives for Deep Learning", 2014, section 3.2).
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Common/PointerCode.h"
#include "Mapping.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace baechi;

namespace {
/// A block's threads form a square; each has up to 4 x 4 numbers of the tile,
/// kSide apart in both directions.
constexpr int64_t kSide = 16, kMostPerThread = 4, kSlice = 16;
constexpr int64_t kManyBlocks = 264;
/// Slices of a long sum that a thread adds up in single precision: their sums
/// are added up in double precision (see Common/BlockSums.h).
constexpr int64_t kSlicesOfBlock = 64;

int64_t sizeOf(const ProductLoops &loops) {
  int64_t size = 1;
  for (const ProductLoop &loop : loops)
    size *= loop.size;
  return size;
}

/// What is moved through by one loop fastest is numbered by it last.
void order(ProductLoops &loops, int64_t ProductLoop::*stride) {
  llvm::stable_sort(loops, [&](const ProductLoop &a, const ProductLoop &b) {
    return a.*stride > b.*stride;
  });
}

struct Tiling {
  ProductLoops batch, rows, columns, sums;
  int64_t m, n, k, batches;
  /// Numbers of the tile that a thread has, in each direction.
  int64_t ofRow, ofColumn;
  int64_t tilesM, tilesN;
  /// Blocks that share a sum, and the slices of each.
  int64_t parts, slices;
  /// A and B have changed places.
  bool swapped = false;
  /// Along what neighbouring threads read.
  bool rowsOfAFast, columnsOfBFast;

  int64_t tileM() const { return kSide * ofRow; }
  int64_t tileN() const { return kSide * ofColumn; }
  int64_t elements() const { return batches * m * n; }
  bool isLong() const { return k > kShortSum; }
};

Tiling planTiling(const StridedProduct &product) {
  Tiling t;
  t.batch = product.batch;
  t.rows = product.rows;
  t.columns = product.columns;
  t.sums = product.sums;
  for (ProductLoops *loops : {&t.batch, &t.rows, &t.columns, &t.sums})
    collapseLoops(*loops);
  order(t.rows, &ProductLoop::c);
  order(t.columns, &ProductLoop::c);
  auto contiguous = [](const ProductLoops &loops,
                       int64_t ProductLoop::*stride) {
    return llvm::any_of(
        loops, [&](const ProductLoop &loop) { return loop.*stride == 1; });
  };
  // Threads along x write neighbours of the result.
  if (contiguous(t.rows, &ProductLoop::c) &&
      !contiguous(t.columns, &ProductLoop::c)) {
    t.swapped = true;
    std::swap(t.rows, t.columns);
    for (ProductLoops *loops : {&t.batch, &t.rows, &t.columns, &t.sums})
      for (ProductLoop &loop : *loops)
        std::swap(loop.a, loop.b);
  }
  bool sumsInA = contiguous(t.sums, &ProductLoop::a);
  order(t.sums, sumsInA ? &ProductLoop::a : &ProductLoop::b);
  t.rowsOfAFast = !sumsInA && contiguous(t.rows, &ProductLoop::a);
  t.columnsOfBFast = contiguous(t.columns, &ProductLoop::b);
  t.m = sizeOf(t.rows);
  t.n = sizeOf(t.columns);
  t.k = sizeOf(t.sums);
  t.batches = sizeOf(t.batch);
  auto perThread = [](int64_t size) {
    return size > 2 * kSide ? kMostPerThread : size > kSide ? 2 : 1;
  };
  t.ofRow = perThread(t.m);
  t.ofColumn = perThread(t.n);
  t.tilesM = llvm::divideCeil(t.m, t.tileM());
  t.tilesN = llvm::divideCeil(t.n, t.tileN());
  int64_t blocks = t.tilesM * t.tilesN * t.batches;
  int64_t allSlices = llvm::divideCeil(t.k, kSlice);
  t.parts =
      std::clamp<int64_t>(std::min(kManyBlocks / blocks, allSlices / 8), 1, 64);
  t.slices = llvm::divideCeil(allSlices, t.parts);
  t.parts = llvm::divideCeil(allSlices, t.slices);
  return t;
}

class Emitter {
public:
  Emitter(OpBuilder &builder, func::FuncOp function, const Tiling &tiling,
          Executor executor)
      : builder(builder), loc(function.getLoc()), emit(builder, loc),
        function(function), t(tiling), executor(executor) {}

  void launchTiles(const ProductOperands &operands, Value result,
                   Value partial);
  void launchAddition(const ProductOperands &operands, Value result,
                      Value partial);

private:
  using Stride = int64_t ProductLoop::*;
  Value offsetOf(LaunchCode &code, Value number, const ProductLoops &loops,
                 Stride stride);
  Value loadOr0(LaunchCode &code, Value inside, Value pointer, Value offset);
  void fetch(LaunchCode &code, Value thread, Value tile, int64_t width,
             bool wideFast, Value first, int64_t bound, Value firstTerm,
             Value lastTerm, const ProductLoops &wide, Stride stride,
             Value pointer);
  void multiply(LaunchCode &code, Value thread, Value tileA, Value tileB,
                LaunchCode::Private sums);

  OpBuilder &builder;
  Location loc;
  PointerCode emit;
  func::FuncOp function;
  const Tiling &t;
  Executor executor;
};
} // namespace

Value Emitter::offsetOf(LaunchCode &code, Value number,
                        const ProductLoops &loops, Stride stride) {
  SmallVector<int64_t> sizes;
  for (const ProductLoop &loop : loops)
    sizes.push_back(loop.size);
  Value offset = code.index(0);
  for (auto [loop, counter] :
       llvm::zip_equal(loops, code.delinearize(number, sizes)))
    if (loop.*stride != 0)
      offset = code.add(offset, code.mul(counter, loop.*stride));
  return offset;
}

Value Emitter::loadOr0(LaunchCode &code, Value inside, Value pointer,
                       Value offset) {
  Type f32 = builder.getF32Type();
  auto guarded = scf::IfOp::create(builder, loc, f32, inside, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(guarded.thenBlock());
  Value loaded =
      LLVM::LoadOp::create(builder, loc, f32, emit.at(pointer, offset));
  scf::YieldOp::create(builder, loc, loaded);
  builder.setInsertionPointToStart(guarded.elseBlock());
  scf::YieldOp::create(builder, loc, emit.f32(0));
  return guarded.getResult(0);
}

/// Copies a slice of an operand to `tile`, [term][row or column].
void Emitter::fetch(LaunchCode &code, Value thread, Value tile, int64_t width,
                    bool wideFast, Value first, int64_t bound, Value firstTerm,
                    Value lastTerm, const ProductLoops &wide, Stride stride,
                    Value pointer) {
  for (int64_t i = 0; i < width * kSlice / kBlockThreads; ++i) {
    Value at = code.add(thread, code.index(i * kBlockThreads));
    Value across = wideFast ? code.rem(at, width) : code.div(at, kSlice);
    Value along = wideFast ? code.div(at, width) : code.rem(at, kSlice);
    Value number = code.add(first, across), term = code.add(firstTerm, along);
    Value inside = arith::AndIOp::create(builder, loc,
                                         code.less(number, code.index(bound)),
                                         code.less(term, lastTerm));
    Value offset = code.add(offsetOf(code, number, wide, stride),
                            offsetOf(code, term, t.sums, stride));
    Value value = loadOr0(code, inside, pointer, offset);
    memref::StoreOp::create(builder, loc, value, tile,
                            ValueRange{along, across});
  }
}

void Emitter::multiply(LaunchCode &code, Value thread, Value tileA, Value tileB,
                       LaunchCode::Private sums) {
  Value row = code.div(thread, kSide), column = code.rem(thread, kSide);
  int64_t count = t.ofRow * t.ofColumn;
  SmallVector<Value> held;
  for (int64_t i = 0; i < count; ++i)
    held.push_back(code.load(sums, thread, i));
  auto loop = scf::ForOp::create(builder, loc, code.index(0),
                                 code.index(kSlice), code.index(1), held);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value term = loop.getInductionVar();
    auto read = [&](Value tile, Value at, int64_t i) -> Value {
      return memref::LoadOp::create(
          builder, loc, tile,
          ValueRange{term, code.add(at, code.index(i * kSide))});
    };
    SmallVector<Value> a, b, next;
    for (int64_t i = 0; i < t.ofRow; ++i)
      a.push_back(read(tileA, row, i));
    for (int64_t j = 0; j < t.ofColumn; ++j)
      b.push_back(read(tileB, column, j));
    for (int64_t i = 0; i < count; ++i)
      next.push_back(math::FmaOp::create(builder, loc, a[i / t.ofColumn],
                                         b[i % t.ofColumn],
                                         loop.getRegionIterArgs()[i]));
    scf::YieldOp::create(builder, loc, next);
  }
  for (int64_t i = 0; i < count; ++i)
    code.store(loop.getResult(i), sums, thread, i);
}

void Emitter::launchTiles(const ProductOperands &operands, Value result,
                          Value partial) {
  LaunchCode code(builder, loc, executor,
                  t.tilesM * t.tilesN * t.batches * t.parts, kBlockThreads);
  FloatType f32 = builder.getF32Type(), f64 = builder.getF64Type();
  Value tileA = code.shared(MemRefType::get({kSlice, t.tileM()}, f32));
  Value tileB = code.shared(MemRefType::get({kSlice, t.tileN()}, f32));
  const int64_t count = t.ofRow * t.ofColumn;
  auto sums = code.privateValues(f32, count);
  // Of the blocks so far, where there are several.
  std::optional<LaunchCode::Private> totals;
  if (t.isLong() && t.slices > kSlicesOfBlock)
    totals = code.privateValues(f64, count);
  SmallVector<Value> block =
      code.delinearize(code.block, {t.parts, t.batches, t.tilesM, t.tilesN});
  Value part = block[0], batch = block[1];
  Value firstRow = code.mul(block[2], t.tileM());
  Value firstColumn = code.mul(block[3], t.tileN());
  Value firstTerm = code.mul(part, t.slices * kSlice);
  Value lastTerm = code.minimum(
      code.add(firstTerm, code.index(t.slices * kSlice)), code.index(t.k));

  code.section([&](Value thread) {
    for (int64_t i = 0; i < count; ++i) {
      code.store(emit.f32(0), sums, thread, i);
      if (totals)
        code.store(inPrecision(code, f64, emit.f32(0)), *totals, thread, i);
    }
  });
  for (const ProductFactors &factors : operands.factors) {
    Value a = emit.at(
        emit.at(function.getArgument(factors.argumentA), factors.offsetA),
        offsetOf(code, batch, t.batch, &ProductLoop::a));
    Value b = emit.at(
        emit.at(function.getArgument(factors.argumentB), factors.offsetB),
        offsetOf(code, batch, t.batch, &ProductLoop::b));
    auto addSlices = [&](Value from, Value to) {
      code.loop(from, to, code.index(kSlice), [&](Value term) {
        code.section([&](Value thread) {
          fetch(code, thread, tileA, t.tileM(), t.rowsOfAFast, firstRow, t.m,
                term, lastTerm, t.rows, &ProductLoop::a, a);
          fetch(code, thread, tileB, t.tileN(), t.columnsOfBFast, firstColumn,
                t.n, term, lastTerm, t.columns, &ProductLoop::b, b);
        });
        code.section(
            [&](Value thread) { multiply(code, thread, tileA, tileB, sums); });
      });
    };
    if (!totals) {
      addSlices(firstTerm, lastTerm);
      continue;
    }
    Value size = code.index(kSlicesOfBlock * kSlice);
    code.loop(firstTerm, lastTerm, size, [&](Value term) {
      addSlices(term, code.minimum(code.add(term, size), lastTerm));
      code.proceed([&](Value thread) {
        for (int64_t i = 0; i < count; ++i) {
          Value sum = inPrecision(code, f64, code.load(sums, thread, i));
          sum = arith::AddFOp::create(builder, loc,
                                      code.load(*totals, thread, i), sum);
          code.store(sum, *totals, thread, i);
          code.store(emit.f32(0), sums, thread, i);
        }
      });
    });
  }
  code.section([&](Value thread) {
    for (int64_t i = 0; i < count; ++i) {
      Value row = code.add(code.div(thread, kSide), firstRow);
      Value column = code.add(code.rem(thread, kSide), firstColumn);
      row = code.add(row, code.index(i / t.ofColumn * kSide));
      column = code.add(column, code.index(i % t.ofColumn * kSide));
      Value inside =
          arith::AndIOp::create(builder, loc, code.less(row, code.index(t.m)),
                                code.less(column, code.index(t.n)));
      code.when(inside, [&] {
        Value sum =
            inPrecision(code, f32, code.load(totals.value_or(sums), thread, i));
        if (partial) {
          Value at = code.add(code.mul(part, t.batches), batch);
          at = code.add(code.mul(at, t.m), row);
          at = code.add(code.mul(at, t.n), column);
          LLVM::StoreOp::create(builder, loc, sum, emit.at(partial, at));
          return;
        }
        Value at = code.add(offsetOf(code, row, t.rows, &ProductLoop::c),
                            offsetOf(code, column, t.columns, &ProductLoop::c));
        at = code.add(at, offsetOf(code, batch, t.batch, &ProductLoop::c));
        Value place = emit.at(result, at);
        if (!operands.startsFromZero())
          sum = arith::AddFOp::create(
              builder, loc, LLVM::LoadOp::create(builder, loc, f32, place),
              sum);
        LLVM::StoreOp::create(builder, loc, sum, place);
      });
    }
  });
  code.finish();
}

/// Adds up the parts of the sums, in their order.
void Emitter::launchAddition(const ProductOperands &operands, Value result,
                             Value partial) {
  FloatType f32 = builder.getF32Type();
  FloatType precision = t.isLong() ? builder.getF64Type() : f32;
  int64_t elements = t.elements();
  LaunchCode code(builder, loc, executor,
                  llvm::divideCeil(elements, kBlockThreads), kBlockThreads);
  code.section([&](Value thread) {
    Value number = code.add(code.mul(code.block, kBlockThreads), thread);
    code.when(code.less(number, code.index(elements)), [&] {
      SmallVector<Value> at = code.delinearize(number, {t.batches, t.m, t.n});
      Value offset =
          code.add(offsetOf(code, at[1], t.rows, &ProductLoop::c),
                   offsetOf(code, at[2], t.columns, &ProductLoop::c));
      offset =
          code.add(offset, offsetOf(code, at[0], t.batch, &ProductLoop::c));
      Value place = emit.at(result, offset);
      Value start = operands.startsFromZero()
                        ? emit.f32(0)
                        : Value(LLVM::LoadOp::create(builder, loc, f32, place));
      start = inPrecision(code, precision, start);
      auto loop = scf::ForOp::create(builder, loc, code.index(0),
                                     code.index(t.parts), code.index(1), start);
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(loop.getBody());
        Value from =
            code.add(arith::MulIOp::create(builder, loc, loop.getInductionVar(),
                                           code.index(elements)),
                     number);
        Value term =
            LLVM::LoadOp::create(builder, loc, f32, emit.at(partial, from));
        Value sum =
            arith::AddFOp::create(builder, loc, loop.getRegionIterArg(0),
                                  inPrecision(code, precision, term));
        scf::YieldOp::create(builder, loc, sum);
      }
      LLVM::StoreOp::create(builder, loc,
                            inPrecision(code, f32, loop.getResult(0)), place);
    });
  });
  code.finish();
}

void baechi::launchProduct(OpBuilder &builder, func::FuncOp kernel,
                           const StridedProduct &product, Executor executor) {
  OpBuilder::InsertionGuard guard(builder);
  Tiling tiling = planTiling(product);
  ProductOperands operands = product.operands;
  if (tiling.swapped)
    for (ProductFactors &factors : operands.factors)
      factors.transpose();
  int64_t partialBytes = tiling.parts > 1 ? tiling.parts * tiling.elements() *
                                                int64_t(sizeof(float))
                                          : 0;
  func::FuncOp function = createProductFunction(builder, kernel, partialBytes);
  Value result = function.getArgument(kernel.getNumArguments());
  Value partial;
  if (partialBytes > 0)
    partial = function.getArgument(kernel.getNumArguments() + 1);
  launchStart(builder, function, operands, result,
              cast<RankedTensorType>(kernel.getResultTypes()[0]), executor);
  Emitter emitter(builder, function, tiling, executor);
  emitter.launchTiles(operands, result, partial);
  if (partial)
    emitter.launchAddition(operands, result, partial);
  func::ReturnOp::create(builder, kernel.getLoc());
}
