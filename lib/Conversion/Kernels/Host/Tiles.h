//===- Tiles.h - Kernels as products of register tiles -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_TILES_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_TILES_H

#include "Common/StridedProduct.h"
#include "llvm/Support/MathExtras.h"

namespace baechi {

/// The vector unit that tiles are made for.
struct VectorUnit {
  /// Single-precision elements in a register.
  int64_t lanes = 4;
  int64_t registers = 16;
};
/// The vector unit of this host.
VectorUnit hostVectorUnit();

/// A kernel as products of register tiles: some rows by some vectors of columns
/// of the result stay in registers while the sums run (Goto, van de Geijn,
/// "Anatomy of High-Performance Matrix Multiplication", 2008). B is the operand
/// whose columns the vectors run along. From the outside:
///
///     for around, blocks:
///       pack the rows of A
///       for panels of columns:
///         pack the panel of B
///         for aroundRows, tiles of rows:
///           for sums: tile += A * B
///
/// Where several products are added, all of them add to a tile in turn.
struct TilePlan {
  ProductOperands operands;
  VectorUnit unit;
  /// The loops that a tile is made of. Where column.c is not 1, row.c is, and
  /// tiles are transposed on their way to the result.
  ProductLoop row, column;
  int64_t rowsPerTile = 1, vectorsPerTile = 1;
  /// Loops that move B, and those that do not, around the tiles.
  ProductLoops around, aroundRows;
  /// Loops of the sum outside the tiles, through parts of the result that have
  /// to be read again, and inside. The outermost one inside runs over `chunk`
  /// iterations at a time; the innermost of `blocks` steps from one to the next
  /// where that is not all.
  ProductLoops blocks, sums;
  int64_t chunk = 1;
  /// Terms are added in the order of the loops, each to all before it; else
  /// each block's by themselves.
  bool inOrder = false;
  bool packRows = false, packPanel = false;
  /// Ask for the next panel of B while the tiles of this one are computed.
  bool prefetchPanel = false;

  int64_t columnsPerTile() const { return vectorsPerTile * unit.lanes; }
  int64_t rowTiles() const { return llvm::divideCeil(row.size, rowsPerTile); }
  /// Iterations of the sum inside.
  int64_t depth() const;
  /// Elements of the packed rows and of the packed panel of one product, as
  /// they lie in the scratch: the rows of all products, then the panels.
  int64_t packedRows() const;
  int64_t packedPanel() const;
  /// Of all of those.
  int64_t scratchBytes() const;
};

/// The plan for a product; nothing where no loop runs along the result's rows.
/// \p inOrder: the sums run in the order of their loops.
std::optional<TilePlan> planTiles(StridedProduct product, VectorUnit unit,
                                  bool inOrder = false);

/// The same for a kernel that is one product; nothing for other kernels, nor
/// where tiles would sum in another order than the kernel asks for.
std::optional<TilePlan> planTiles(mlir::func::FuncOp kernel, VectorUnit unit);

/// The pointers that a product is computed on: as its operands number them, its
/// result's and those to `TilePlan::scratchBytes()` for packed operands.
struct TilePointers {
  llvm::SmallVector<mlir::Value> arguments;
  mlir::Value result, scratch;
};

/// Writes code that executes `plan` at the insertion point of `builder`.
void emitTiles(mlir::OpBuilder &builder, mlir::Location loc,
               const TilePlan &plan, const TilePointers &pointers);

/// Writes a function on pointers (arguments, result, scratch) named as `kernel`
/// that executes `plan`.
mlir::func::FuncOp emitTiles(mlir::OpBuilder &builder,
                             mlir::func::FuncOp kernel, const TilePlan &plan);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_TILES_H
