//===- PackTiles.cpp - Copies of operands in the order of tiles -*- C++ -*-===//
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

using Term = PointerCode::Term;

/// Copies `trips` iterations of `source`, which runs along B's memory, for all
/// columns: columns become neighbours.
void TilePacking::packTransposed(Value from, Value to, Columns columns,
                                 const ProductLoop &source,
                                 const ProductLoop &packed, Value trips) {
  OpBuilder::InsertionGuard guard(code.builder);
  Value zero = code.index(0), one = code.index(1),
        group = code.index(code.lanes);
  Value whole = zero;
  if (source.b == 1)
    whole = arith::SubIOp::create(
        code.builder, code.loc, trips,
        arith::RemUIOp::create(code.builder, code.loc, trips, group));
  // Columns beyond the last repeat it: what they add up to is not stored.
  auto last = columns.count - 1;

  auto groups = scf::ForOp::create(code.builder, code.loc, zero, whole, group);
  code.builder.setInsertionPointToStart(groups.getBody());
  Value iv = groups.getInductionVar();
  Value source0 = code.at(from, {Term(iv, source.b)});
  Value target0 = code.at(to, {Term(iv, packed.b)});
  for (int64_t index = 0; index < columns.vectors(); ++index) {
    SmallVector<Value> square;
    for (int64_t lane = 0; lane < code.lanes; ++lane) {
      int64_t column = std::min(index * code.lanes + lane, last);
      square.push_back(
          LLVM::LoadOp::create(code.builder, code.loc, code.vector,
                               code.at(source0, column * plan.column.b), 4));
    }
    code.transposeSquare(square);
    for (int64_t lane = 0; lane < code.lanes; ++lane)
      LLVM::StoreOp::create(
          code.builder, code.loc, square[lane],
          code.at(target0, lane * packed.b + index * code.lanes), 4);
  }

  code.builder.setInsertionPointAfter(groups);
  auto rest = scf::ForOp::create(code.builder, code.loc, whole, trips, one);
  code.builder.setInsertionPointToStart(rest.getBody());
  source0 = code.at(from, {Term(rest.getInductionVar(), source.b)});
  target0 = code.at(to, {Term(rest.getInductionVar(), packed.b)});
  Value column = code.enterLoop(columns.vectors() * code.lanes);
  Value clamped =
      arith::MinUIOp::create(code.builder, code.loc, column, code.index(last));
  Value element =
      LLVM::LoadOp::create(code.builder, code.loc, code.builder.getF32Type(),
                           code.at(source0, {Term(clamped, plan.column.b)}));
  LLVM::StoreOp::create(code.builder, code.loc, element,
                        code.at(target0, column));
}

void TilePacking::packPanel(Value from, Value to, Columns columns,
                            ArrayRef<ProductLoop> packed) {
  OpBuilder::InsertionGuard guard(code.builder);
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
    auto entered = scf::ForOp::create(code.builder, code.loc, code.index(0),
                                      tripsOf(loop), code.index(1));
    code.builder.setInsertionPointToStart(entered.getBody());
    Value iv = entered.getInductionVar();
    from = code.at(from, {Term(iv, plan.sums[loop].b)});
    to = code.at(to, {Term(iv, packed[loop].b)});
  }
  if (!contiguous)
    return packTransposed(from, to, columns, plan.sums[order.back()],
                          packed[order.back()], tripsOf(order.back()));
  for (int64_t index = 0; index < columns.vectors(); ++index)
    LLVM::StoreOp::create(code.builder, code.loc,
                          code.load(from, columns, index),
                          code.at(to, index * code.lanes), /*alignment=*/4);
}

void TilePacking::packRows(Value from, Value to, ArrayRef<ProductLoop> around,
                           ArrayRef<ProductLoop> packed) {
  OpBuilder::InsertionGuard guard(code.builder);
  for (auto [source, target] : llvm::zip_equal(plan.aroundRows, around)) {
    Value iv = code.enterLoop(source.size);
    from = code.at(from, {Term(iv, source.a)});
    to = code.at(to, {Term(iv, target.a)});
  }
  auto copyTile = [&](Value from, Value to, int64_t rows) {
    OpBuilder::InsertionGuard guard(code.builder);
    for (auto [index, source] : llvm::enumerate(plan.sums)) {
      auto entered = scf::ForOp::create(
          code.builder, code.loc, code.index(0),
          index == 0 ? trips : code.index(source.size), code.index(1));
      code.builder.setInsertionPointToStart(entered.getBody());
      Value iv = entered.getInductionVar();
      from = code.at(from, {Term(iv, source.a)});
      to = code.at(to, {Term(iv, packed[index].a)});
    }
    Columns elements{rows, code.lanes};
    for (int64_t index = 0; index < elements.vectors(); ++index)
      code.store(code.load(from, elements, index), to, elements, index);
  };
  int64_t whole = plan.row.size / plan.rowsPerTile;
  {
    OpBuilder::InsertionGuard guard(code.builder);
    Value tile = code.enterLoop(whole);
    copyTile(code.at(from, {Term(tile, plan.rowsPerTile * plan.row.a)}),
             code.at(to, {Term(tile, plan.depth() * plan.rowsPerTile)}),
             plan.rowsPerTile);
  }
  if (int64_t left = plan.row.size % plan.rowsPerTile)
    copyTile(code.at(from, whole * plan.rowsPerTile * plan.row.a),
             code.at(to, whole * plan.depth() * plan.rowsPerTile), left);
}
