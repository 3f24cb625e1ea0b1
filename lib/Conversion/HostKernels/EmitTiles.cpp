//===- EmitTiles.cpp - Code of register tiles -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointerCode.h"
#include "Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;

namespace {
using Term = PointerCode::Term;

/// Vectors of columns: all full but the last, which may have fewer elements.
struct Columns {
  int64_t count;
  int64_t lanes;

  int64_t vectors() const { return llvm::divideCeil(count, lanes); }
  bool isPartial(int64_t vector) const { return (vector + 1) * lanes > count; }
  int64_t lanesOf(int64_t vector) const {
    return std::min(lanes, count - vector * lanes);
  }
};

class TileEmitter {
public:
  TileEmitter(OpBuilder &builder, func::FuncOp function, const TilePlan &plan)
      : code(builder, function.getLoc()), builder(builder),
        loc(function.getLoc()), plan(plan), lanes(plan.unit.lanes),
        vector(VectorType::get({plan.unit.lanes}, builder.getF32Type())),
        rowBuffer(function.getArguments().back()) {
    rowElements = plan.packedRows();
    panelElements = plan.packedPanel();
    panelBuffer =
        code.at(rowBuffer, rowElements * int64_t(plan.operands.factors.size()));
    zero = LLVM::ConstantOp::create(
        builder, loc, vector,
        DenseElementsAttr::get(
            vector, builder.getF32FloatAttr(plan.operands.startValue)));
    padding = LLVM::ZeroOp::create(builder, loc, vector);
  }

  void emit(func::FuncOp function);

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
  void packRows(Value from, Value to, ArrayRef<ProductLoop> around,
                ArrayRef<ProductLoop> packed);
  void packPanel(Value from, Value to, Columns columns,
                 ArrayRef<ProductLoop> packed);
  void packTransposed(Value from, Value to, Columns columns,
                      const ProductLoop &source, const ProductLoop &packed,
                      Value trips);
  SmallVector<Value> readTile(Value from, int64_t rows, Columns columns);
  void writeTile(ArrayRef<Value> tile, Value to, int64_t rows, Columns columns);
  void emitTile(const Position &at, int64_t rows, Columns columns,
                ArrayRef<ProductLoop> sums);
  SmallVector<Value> sum(Factors at, int64_t rows, Columns columns,
                         ArrayRef<ProductLoop> sums, SmallVector<Value> tile);

  Value mask(int64_t count);
  Value load(Value pointer, Columns columns, int64_t index);
  void store(Value value, Value pointer, Columns columns, int64_t index);
  Value splat(Value scalar);
  void transposeSquare(MutableArrayRef<Value> rows);

  PointerCode code;
  OpBuilder &builder;
  Location loc;
  const TilePlan &plan;
  int64_t lanes;
  VectorType vector;
  Value rowBuffer, panelBuffer, zero, padding;
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
// Vectors
//===----------------------------------------------------------------------===//

Value TileEmitter::mask(int64_t count) {
  SmallVector<bool> bits(lanes, false);
  std::fill_n(bits.begin(), count, true);
  auto type = VectorType::get({lanes}, builder.getI1Type());
  return LLVM::ConstantOp::create(builder, loc, type,
                                  DenseElementsAttr::get(type, bits));
}

Value TileEmitter::load(Value pointer, Columns columns, int64_t index) {
  pointer = code.at(pointer, index * lanes);
  if (!columns.isPartial(index))
    return LLVM::LoadOp::create(builder, loc, vector, pointer,
                                /*alignment=*/4);
  return LLVM::MaskedLoadOp::create(builder, loc, vector, pointer,
                                    mask(columns.count % lanes), padding,
                                    /*alignment=*/4);
}

void TileEmitter::store(Value value, Value pointer, Columns columns,
                        int64_t index) {
  pointer = code.at(pointer, index * lanes);
  if (columns.isPartial(index))
    LLVM::MaskedStoreOp::create(builder, loc, value, pointer,
                                mask(columns.count % lanes), /*alignment=*/4);
  else
    LLVM::StoreOp::create(builder, loc, value, pointer, /*alignment=*/4);
}

Value TileEmitter::splat(Value scalar) {
  Value empty = LLVM::PoisonOp::create(builder, loc, vector);
  Value first =
      LLVM::InsertElementOp::create(builder, loc, empty, scalar, code.i32(0));
  return LLVM::ShuffleVectorOp::create(builder, loc, first, empty,
                                       SmallVector<int32_t>(lanes, 0));
}

/// Transposes a square of vectors by exchanging ever smaller blocks.
void TileEmitter::transposeSquare(MutableArrayRef<Value> rows) {
  for (int64_t distance = lanes / 2; distance >= 1; distance /= 2) {
    SmallVector<int32_t> low, high;
    for (int32_t j = 0; j < lanes; ++j) {
      bool upper = j & distance;
      low.push_back(upper ? lanes + j - distance : j);
      high.push_back(upper ? lanes + j : j + distance);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      Value one = rows[i], other = rows[i + distance];
      rows[i] = LLVM::ShuffleVectorOp::create(builder, loc, one, other, low);
      rows[i + distance] =
          LLVM::ShuffleVectorOp::create(builder, loc, one, other, high);
    }
  }
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Copies `trips` iterations of `source`, which runs along B's memory, for all
/// columns: columns become neighbours.
void TileEmitter::packTransposed(Value from, Value to, Columns columns,
                                 const ProductLoop &source,
                                 const ProductLoop &packed, Value trips) {
  OpBuilder::InsertionGuard guard(builder);
  Value zero = code.index(0), one = code.index(1), group = code.index(lanes);
  Value whole = zero;
  if (source.b == 1)
    whole = arith::SubIOp::create(
        builder, loc, trips,
        arith::RemUIOp::create(builder, loc, trips, group));
  // Columns beyond the last repeat it: what they add up to is not stored.
  auto last = columns.count - 1;

  auto groups = scf::ForOp::create(builder, loc, zero, whole, group);
  builder.setInsertionPointToStart(groups.getBody());
  Value iv = groups.getInductionVar();
  Value source0 = code.at(from, {Term(iv, source.b)});
  Value target0 = code.at(to, {Term(iv, packed.b)});
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t column = std::min(index * lanes + lane, last);
      square.push_back(LLVM::LoadOp::create(
          builder, loc, vector, code.at(source0, column * plan.column.b), 4));
    }
    transposeSquare(square);
    for (int64_t lane = 0; lane < lanes; ++lane)
      LLVM::StoreOp::create(builder, loc, square[lane],
                            code.at(target0, lane * packed.b + index * lanes),
                            4);
  }

  builder.setInsertionPointAfter(groups);
  auto rest = scf::ForOp::create(builder, loc, whole, trips, one);
  builder.setInsertionPointToStart(rest.getBody());
  source0 = code.at(from, {Term(rest.getInductionVar(), source.b)});
  target0 = code.at(to, {Term(rest.getInductionVar(), packed.b)});
  Value column = code.enterLoop(columns.vectors() * lanes);
  Value clamped =
      arith::MinUIOp::create(builder, loc, column, code.index(last));
  Value element =
      LLVM::LoadOp::create(builder, loc, builder.getF32Type(),
                           code.at(source0, {Term(clamped, plan.column.b)}));
  LLVM::StoreOp::create(builder, loc, element, code.at(target0, column));
}

void TileEmitter::packPanel(Value from, Value to, Columns columns,
                            ArrayRef<ProductLoop> packed) {
  OpBuilder::InsertionGuard guard(builder);
  // The loop along B's memory goes innermost, if there is one.
  bool contiguous = plan.column.b == 1;
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(packed.size()));
  if (!contiguous) {
    auto *along = llvm::find_if(
        order, [&](size_t loop) { return plan.sums[loop].b == 1; });
    if (along != order.end())
      std::rotate(along, along + 1, order.end());
  }
  auto tripsOf = [&](size_t loop) {
    return loop == 0 ? trips : code.index(plan.sums[loop].size);
  };
  for (size_t loop : ArrayRef(order).drop_back(contiguous ? 0 : 1)) {
    auto entered = scf::ForOp::create(builder, loc, code.index(0),
                                      tripsOf(loop), code.index(1));
    builder.setInsertionPointToStart(entered.getBody());
    Value iv = entered.getInductionVar();
    from = code.at(from, {Term(iv, plan.sums[loop].b)});
    to = code.at(to, {Term(iv, packed[loop].b)});
  }
  if (!contiguous)
    return packTransposed(from, to, columns, plan.sums[order.back()],
                          packed[order.back()], tripsOf(order.back()));
  for (int64_t index = 0; index < columns.vectors(); ++index)
    LLVM::StoreOp::create(builder, loc, load(from, columns, index),
                          code.at(to, index * lanes), /*alignment=*/4);
}

//===----------------------------------------------------------------------===//
// Loops
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
    factors.push_back(load(at.b, read, index));
  for (int64_t row = 0; row < rows; ++row) {
    Value scalar = LLVM::LoadOp::create(builder, loc, builder.getF32Type(),
                                        code.at(at.a, row * rowStride));
    Value factor = splat(scalar);
    for (auto [index, other] : llvm::enumerate(factors)) {
      Value &element = tile[row * columns.vectors() + index];
      element = LLVM::FMAOp::create(builder, loc, factor, other, element);
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
        at(row, index) = load(code.at(from, row * plan.row.c), columns, index);
    return tile;
  }
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square(lanes, padding);
    for (int64_t lane = 0; lane < columns.lanesOf(index); ++lane)
      square[lane] = load(code.at(from, (index * lanes + lane) * plan.column.c),
                          {rows, lanes}, 0);
    transposeSquare(square);
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
        store(at(row, index), code.at(to, row * plan.row.c), columns, index);
    return;
  }
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square(lanes, padding);
    for (int64_t row = 0; row < rows; ++row)
      square[row] = at(row, index);
    transposeSquare(square);
    for (int64_t lane = 0; lane < columns.lanesOf(index); ++lane)
      store(square[lane], code.at(to, (index * lanes + lane) * plan.column.c),
            {rows, lanes}, 0);
  }
}

void TileEmitter::emitTile(const Position &at, int64_t rows, Columns columns,
                           ArrayRef<ProductLoop> sums) {
  SmallVector<Value> tile(rows * columns.vectors(), zero);
  if (at.start) {
    Value from = at.start;
    if (isFirst)
      from = LLVM::SelectOp::create(builder, loc, isFirst, from, at.c);
    tile = readTile(from, rows, columns);
  } else if (isFirst) {
    auto begun = scf::IfOp::create(builder, loc, TypeRange(ValueRange(tile)),
                                   isFirst, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(begun.thenBlock());
    scf::YieldOp::create(builder, loc, tile);
    builder.setInsertionPointToStart(begun.elseBlock());
    scf::YieldOp::create(builder, loc, readTile(at.c, rows, columns));
    tile = SmallVector<Value>(begun.getResults());
  }
  for (const Factors &factors : at.factors)
    tile = sum(factors, rows, columns, sums, std::move(tile));
  writeTile(tile, at.c, rows, columns);
}

void TileEmitter::split(const Position &at, const ProductLoop &loop,
                        int64_t part, int64_t partStrideA,
                        function_ref<void(Position, int64_t)> body) {
  ProductLoop parts{loop.size / part, partStrideA, loop.b * part,
                    loop.c * part};
  if (parts.size > 0)
    nest(at, parts, [&](Position inside) { body(inside, part); });
  if (int64_t left = loop.size % part) {
    Position behind = at;
    advance(behind, code.index(parts.size), parts);
    body(behind, left);
  }
}

/// Copies the rows of one operand to where the loops `around` and `packed` find
/// them.
void TileEmitter::packRows(Value from, Value to, ArrayRef<ProductLoop> around,
                           ArrayRef<ProductLoop> packed) {
  OpBuilder::InsertionGuard guard(builder);
  for (auto [source, target] : llvm::zip_equal(plan.aroundRows, around)) {
    Value iv = code.enterLoop(source.size);
    from = code.at(from, {Term(iv, source.a)});
    to = code.at(to, {Term(iv, target.a)});
  }
  auto copyTile = [&](Value from, Value to, int64_t rows) {
    OpBuilder::InsertionGuard guard(builder);
    for (auto [index, source] : llvm::enumerate(sums)) {
      auto entered = scf::ForOp::create(
          builder, loc, code.index(0),
          index == 0 ? trips : code.index(source.size), code.index(1));
      builder.setInsertionPointToStart(entered.getBody());
      Value iv = entered.getInductionVar();
      from = code.at(from, {Term(iv, source.a)});
      to = code.at(to, {Term(iv, packed[index].a)});
    }
    Columns elements{rows, lanes};
    for (int64_t index = 0; index < elements.vectors(); ++index)
      store(load(from, elements, index), to, elements, index);
  };
  int64_t whole = plan.row.size / plan.rowsPerTile;
  {
    OpBuilder::InsertionGuard guard(builder);
    Value tile = code.enterLoop(whole);
    copyTile(code.at(from, {Term(tile, plan.rowsPerTile * plan.row.a)}),
             code.at(to, {Term(tile, tileStride)}), plan.rowsPerTile);
  }
  if (int64_t left = plan.row.size % plan.rowsPerTile)
    copyTile(code.at(from, whole * plan.rowsPerTile * plan.row.a),
             code.at(to, whole * tileStride), left);
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

  for (auto [index, factors] : llvm::enumerate(at.factors))
    packRows(factors.a, code.at(rowBuffer, index * rowElements), around,
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
      packPanel(factors.b, panel, columns, inside);
      factors.b = panel;
    }
  }
  if (plan.packRows)
    for (auto [index, factors] : llvm::enumerate(at.factors))
      factors.a = code.at(rowBuffer, index * rowElements);
  nest(at, aroundRows, [&](Position around) {
    split(around, plan.row, plan.rowsPerTile, tileStride,
          [&](Position tile, int64_t rows) {
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
        [&](Position panel, int64_t columns) { emitPanel(panel, columns); });
}

void TileEmitter::emit(func::FuncOp function) {
  const ProductOperands &operands = plan.operands;
  Position at;
  for (const ProductFactors &factors : operands.factors)
    at.factors.push_back(
        {code.at(function.getArgument(factors.argumentA), factors.offsetA),
         code.at(function.getArgument(factors.argumentB), factors.offsetB),
         Value()});
  at.c = function.getArgument(function.getNumArguments() - 2);
  if (operands.start == ProductOperands::Start::Argument)
    at.start = code.at(function.getArgument(operands.startArgument),
                       operands.startOffset);
  nest(at, plan.around, [&](Position inside) { emitBlocks(inside); });
}
} // namespace

func::FuncOp baechi::emitTiles(OpBuilder &builder, func::FuncOp kernel,
                               const TilePlan &plan) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createPointerKernel(
      builder, kernel,
      (plan.packedRows() + plan.packedPanel()) *
          int64_t(plan.operands.factors.size() * sizeof(float)));
  TileEmitter(builder, function, plan).emit(function);
  func::ReturnOp::create(builder, kernel.getLoc());
  return function;
}
