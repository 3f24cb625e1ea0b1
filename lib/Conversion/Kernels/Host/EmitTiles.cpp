//===- EmitTiles.cpp - Code of register tiles -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
using Term = PointerCode::Term;

class TileEmitter {
public:
  TileEmitter(OpBuilder &builder, Location loc, const TilePlan &plan,
              const TilePointers &pointers)
      : code(builder, loc, plan.unit.lanes), builder(builder), loc(loc),
        plan(plan), lanes(plan.unit.lanes), pointers(pointers),
        rowBuffer(pointers.scratch) {
    rowElements = plan.packedRows();
    panelElements = plan.packedPanel();
    panelBuffer =
        code.at(rowBuffer, rowElements * int64_t(plan.operands.factors.size()));
    startValue = code.constant(plan.operands.startValue);
  }

  void emit();

private:
  /// Where the loops that are open have got to in A and B of one product.
  struct Factors {
    Value a, b;
    /// In the next panel of B, which comes from memory meanwhile; or null.
    Value next;
  };
  /// In all products, in the result and in what it starts from.
  struct Position {
    SmallVector<Factors, 1> factors;
    Value c, start;
  };

  void advance(Position &at, Value iv, const ProductLoop &loop) {
    for (Factors &factors : at.factors) {
      factors.a = code.at(factors.a, {Term(iv, loop.a)});
      factors.b = code.at(factors.b, {Term(iv, loop.b)});
    }
    at.c = code.at(at.c, {Term(iv, loop.c)});
    if (at.start)
      at.start = code.at(at.start, {Term(iv, loop.c)});
  }
  Value enter(Position &at, const ProductLoop &loop) {
    if (loop.size == 1)
      return code.index(0);
    Value iv = code.enterLoop(loop.size);
    advance(at, iv, loop);
    return iv;
  }
  /// Runs `body` for all iterations of `loops`.
  void nest(const Position &at, ArrayRef<ProductLoop> loops,
            function_ref<void(Position)> body) {
    OpBuilder::InsertionGuard guard(builder);
    Position inside = at;
    for (const ProductLoop &loop : loops)
      enter(inside, loop);
    body(inside);
  }
  /// Runs `body` for whole parts of `loop`, which are so far apart in A, and
  /// for what is left.
  void split(const Position &at, const ProductLoop &loop, int64_t part,
             int64_t partStrideA, function_ref<void(Position, int64_t)> body);

  void emitBlocks(Position at);
  void emitPanel(Position at, int64_t columns);
  void packRows(const Position &at);
  SmallVector<Value> readTile(Value from, int64_t rows, Columns columns);
  void writeTile(ArrayRef<Value> tile, Value to, int64_t rows, Columns columns);
  /// What the terms of this block are added to.
  SmallVector<Value> beginTile(const Position &at, int64_t rows,
                               Columns columns);
  void emitTile(const Position &at, int64_t rows, Columns columns,
                ArrayRef<ProductLoop> sums);
  SmallVector<Value> sum(Factors at, int64_t rows, Columns columns,
                         ArrayRef<ProductLoop> sums, SmallVector<Value> tile);

  VectorCode code;
  OpBuilder &builder;
  Location loc;
  const TilePlan &plan;
  int64_t lanes;
  const TilePointers &pointers;
  Value rowBuffer, panelBuffer, startValue;
  /// True in the first of the blocks; null when there is one only.
  Value isFirst;
  /// How tiles move through A: the loops around them, and from row to row, as
  /// it is or packed.
  ProductLoops aroundRows, sums;
  int64_t rowStride = 0, tileStride = 0;
  /// Of the packed operands of one product.
  int64_t rowElements = 0, panelElements = 0;
  /// The iterations of the outermost loop of the sum inside this block.
  Value trips;
};

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Adds to `tile` what the loops `sums`, the innermost ones, add up.
SmallVector<Value> TileEmitter::sum(Factors at, int64_t rows, Columns columns,
                                    ArrayRef<ProductLoop> sums,
                                    SmallVector<Value> tile) {
  if (!sums.empty()) {
    OpBuilder::InsertionGuard guard(builder);
    const ProductLoop &loop = sums.front();
    // The panel that is next is not packed yet.
    const ProductLoop &plain = plan.sums[plan.sums.size() - sums.size()];
    bool isOutermost = &plain == plan.sums.begin();
    auto entered = scf::ForOp::create(
        builder, loc, code.index(0),
        isOutermost ? trips : code.index(loop.size), code.index(1), tile);
    builder.setInsertionPointToStart(entered.getBody());
    Value iv = entered.getInductionVar();
    at.a = code.at(at.a, {Term(iv, loop.a)});
    at.b = code.at(at.b, {Term(iv, loop.b)});
    if (at.next)
      at.next = code.at(at.next, {Term(iv, plain.b)});
    SmallVector<Value> sum =
        this->sum(at, rows, columns, sums.drop_front(),
                  SmallVector<Value>(entered.getRegionIterArgs()));
    scf::YieldOp::create(builder, loc, sum);
    return SmallVector<Value>(entered.getResults());
  }
  if (at.next)
    for (int64_t index = 0; index < columns.vectors(); ++index)
      LLVM::Prefetch::create(builder, loc, code.at(at.next, index * lanes),
                             /*rw=*/0, /*hint=*/2, /*cache=*/1);
  SmallVector<Value> factors;
  // What was packed has no partial vectors.
  Columns read = columns;
  if (plan.packPanel)
    read.count = columns.vectors() * lanes;
  for (int64_t index = 0; index < columns.vectors(); ++index)
    factors.push_back(code.load(at.b, read, index));
  for (int64_t row = 0; row < rows; ++row) {
    Value scalar = LLVM::LoadOp::create(builder, loc, builder.getF32Type(),
                                        code.at(at.a, row * rowStride));
    Value factor = code.splat(scalar);
    for (auto [index, other] : llvm::enumerate(factors)) {
      Value &element = tile[row * columns.vectors() + index];
      element = LLVM::FMulAddOp::create(builder, loc, factor, other, element);
    }
  }
  return tile;
}

/// The vectors of `rows` rows of the result, row after row.
SmallVector<Value> TileEmitter::readTile(Value from, int64_t rows,
                                         Columns columns) {
  SmallVector<Value> tile(rows * columns.vectors());
  auto at = [&](int64_t row, int64_t index) -> Value & {
    return tile[row * columns.vectors() + index];
  };
  if (plan.column.c == 1) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t index = 0; index < columns.vectors(); ++index)
        at(row, index) =
            code.load(code.at(from, row * plan.row.c), columns, index);
    return tile;
  }
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square(lanes, code.constant(0));
    for (int64_t lane = 0; lane < columns.lanesOf(index); ++lane)
      square[lane] =
          code.load(code.at(from, (index * lanes + lane) * plan.column.c),
                    {rows, lanes}, 0);
    code.transposeSquare(square);
    for (int64_t row = 0; row < rows; ++row)
      at(row, index) = square[row];
  }
  return tile;
}

void TileEmitter::writeTile(ArrayRef<Value> tile, Value to, int64_t rows,
                            Columns columns) {
  auto at = [&](int64_t row, int64_t index) {
    return tile[row * columns.vectors() + index];
  };
  if (plan.column.c == 1) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t index = 0; index < columns.vectors(); ++index)
        code.store(at(row, index), code.at(to, row * plan.row.c), columns,
                   index);
    return;
  }
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square(lanes, code.constant(0));
    for (int64_t row = 0; row < rows; ++row)
      square[row] = at(row, index);
    code.transposeSquare(square);
    for (int64_t lane = 0; lane < columns.lanesOf(index); ++lane)
      code.store(square[lane],
                 code.at(to, (index * lanes + lane) * plan.column.c),
                 {rows, lanes}, 0);
  }
}

SmallVector<Value> TileEmitter::beginTile(const Position &at, int64_t rows,
                                          Columns columns) {
  SmallVector<Value> tile(rows * columns.vectors(), startValue);
  if (at.start) {
    Value from = at.start;
    if (isFirst)
      from = LLVM::SelectOp::create(builder, loc, isFirst, from, at.c);
    return readTile(from, rows, columns);
  }
  if (!isFirst)
    return tile;
  auto begun = scf::IfOp::create(builder, loc, TypeRange(ValueRange(tile)),
                                 isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(begun.thenBlock());
  scf::YieldOp::create(builder, loc, tile);
  builder.setInsertionPointToStart(begun.elseBlock());
  scf::YieldOp::create(builder, loc, readTile(at.c, rows, columns));
  return SmallVector<Value>(begun.getResults());
}

void TileEmitter::emitTile(const Position &at, int64_t rows, Columns columns,
                           ArrayRef<ProductLoop> sums) {
  // Blocks are summed by themselves: terms that are added to all before them
  // are rounded to what these add up to.
  bool byThemselves = isFirst && !plan.inOrder;
  SmallVector<Value> tile;
  if (byThemselves)
    tile.assign(rows * columns.vectors(), code.constant(0));
  else
    tile = beginTile(at, rows, columns);
  for (const Factors &factors : at.factors)
    tile = sum(factors, rows, columns, sums, std::move(tile));
  if (byThemselves)
    for (auto [element, before] :
         llvm::zip_equal(tile, beginTile(at, rows, columns)))
      element = LLVM::FAddOp::create(builder, loc, before, element);
  writeTile(tile, at.c, rows, columns);
}

void TileEmitter::split(const Position &at, const ProductLoop &loop,
                        int64_t part, int64_t partStrideA,
                        function_ref<void(Position, int64_t)> body) {
  ProductLoop parts{loop.size / part, partStrideA, loop.b * part,
                    loop.c * part};
  if (parts.size > 0)
    nest(at, parts, [&](Position inside) { body(std::move(inside), part); });
  if (int64_t left = loop.size % part) {
    Position behind = at;
    advance(behind, code.index(parts.size), parts);
    body(behind, left);
  }
}

/// Copies the rows of A in this block so that what a tile reads at a time lies
/// together: tile after tile, in each iteration of the sum after iteration.
void TileEmitter::packRows(const Position &at) {
  OpBuilder::InsertionGuard guard(builder);
  ProductLoops packed = sums;
  int64_t stride = plan.rowsPerTile;
  for (ProductLoop &loop : llvm::reverse(packed)) {
    loop.a = stride;
    stride *= loop.size;
  }
  tileStride = plan.depth() * plan.rowsPerTile;
  stride = tileStride * plan.rowTiles();
  ProductLoops around = plan.aroundRows;
  for (ProductLoop &loop : llvm::reverse(around)) {
    loop.a = stride;
    stride *= loop.size;
  }

  TilePacking packing{code, plan, trips};
  for (auto [index, factors] : llvm::enumerate(at.factors))
    packing.packRows(factors.a, code.at(rowBuffer, index * rowElements), around,
                     packed);
  aroundRows = std::move(around);
  sums = std::move(packed);
  rowStride = 1;
}

void TileEmitter::emitPanel(Position at, int64_t count) {
  Columns columns{count, lanes};
  ProductLoops inside = sums;
  if (plan.prefetchPanel)
    for (Factors &factors : at.factors)
      factors.next = code.at(factors.b, plan.columnsPerTile());
  if (plan.packPanel) {
    int64_t stride = columns.vectors() * lanes;
    for (ProductLoop &loop : llvm::reverse(inside)) {
      loop.b = stride;
      stride *= loop.size;
    }
    for (auto [index, factors] : llvm::enumerate(at.factors)) {
      Value panel = code.at(panelBuffer, index * panelElements);
      TilePacking{code, plan, trips}.packPanel(factors.b, panel, columns,
                                               inside);
      factors.b = panel;
    }
  }
  if (plan.packRows)
    for (auto [index, factors] : llvm::enumerate(at.factors))
      factors.a = code.at(rowBuffer, index * rowElements);
  nest(at, aroundRows, [&](const Position &around) {
    split(around, plan.row, plan.rowsPerTile, tileStride,
          [&](const Position &tile, int64_t rows) {
            emitTile(tile, rows, columns, inside);
          });
  });
}

void TileEmitter::emitBlocks(Position at) {
  OpBuilder::InsertionGuard guard(builder);
  isFirst = nullptr;
  const ProductLoop &outermost = plan.sums.front();
  trips = code.index(plan.chunk);
  for (const ProductLoop &loop : plan.blocks) {
    if (loop.size == 1)
      continue;
    Value iv = enter(at, loop);
    Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        iv, code.index(0));
    isFirst =
        isFirst ? arith::AndIOp::create(builder, loc, isFirst, first) : first;
    bool steps = &loop == &plan.blocks.back() && plan.chunk < outermost.size;
    if (!steps || outermost.size % plan.chunk == 0)
      continue;
    Value done =
        arith::MulIOp::create(builder, loc, iv, code.index(plan.chunk));
    Value left =
        arith::SubIOp::create(builder, loc, code.index(outermost.size), done);
    trips = arith::MinUIOp::create(builder, loc, trips, left);
  }
  aroundRows = plan.aroundRows;
  sums = plan.sums;
  rowStride = plan.row.a;
  tileStride = plan.row.a * plan.rowsPerTile;
  if (plan.packRows)
    packRows(at);
  split(at, plan.column, plan.columnsPerTile(), 0,
        [&](Position panel, int64_t columns) {
          emitPanel(std::move(panel), columns);
        });
}

void TileEmitter::emit() {
  const ProductOperands &operands = plan.operands;
  Position at;
  for (const ProductFactors &factors : operands.factors)
    at.factors.push_back(
        {code.at(pointers.arguments[factors.argumentA], factors.offsetA),
         code.at(pointers.arguments[factors.argumentB], factors.offsetB),
         Value()});
  at.c = pointers.result;
  if (operands.start == ProductOperands::Start::Argument)
    at.start = code.at(pointers.arguments[operands.startArgument],
                       operands.startOffset);
  nest(at, plan.around,
       [&](Position inside) { emitBlocks(std::move(inside)); });
}
} // namespace

void baechi::emitTiles(OpBuilder &builder, Location loc, const TilePlan &plan,
                       const TilePointers &pointers) {
  OpBuilder::InsertionGuard guard(builder);
  TileEmitter(builder, loc, plan, pointers).emit();
}

func::FuncOp baechi::emitTiles(OpBuilder &builder, func::FuncOp kernel,
                               const TilePlan &plan) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function =
      createPointerKernel(builder, kernel, plan.scratchBytes());
  unsigned arguments = kernel.getNumArguments();
  emitTiles(builder, kernel.getLoc(), plan,
            {SmallVector<Value>(function.getArguments().take_front(arguments)),
             function.getArgument(arguments),
             function.getArgument(arguments + 1)});
  func::ReturnOp::create(builder, kernel.getLoc());
  return function;
}
