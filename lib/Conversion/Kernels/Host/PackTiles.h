//===- PackTiles.h - Copies of operands in the order of tiles -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_PACKTILES_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_PACKTILES_H

#include "Tiles.h"
#include "VectorCode.h"

namespace baechi {

/// Builds the copies that tiles read in place of A and B.
struct TilePacking {
  VectorCode &code;
  const TilePlan &plan;
  /// The iterations of the outermost loop of the sum in this block.
  mlir::Value trips;

  /// Copies a panel of B: \p packed are the loops of the sum through the copy.
  void packPanel(mlir::Value from, mlir::Value to, Columns columns,
                 llvm::ArrayRef<ProductLoop> packed);
  /// Copies the rows of A in this block: \p around and \p packed are the loops
  /// around rows and those of the sum through the copy.
  void packRows(mlir::Value from, mlir::Value to,
                llvm::ArrayRef<ProductLoop> around,
                llvm::ArrayRef<ProductLoop> packed);

private:
  void packTransposed(mlir::Value from, mlir::Value to, Columns columns,
                      const ProductLoop &source, const ProductLoop &packed,
                      mlir::Value trips);
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_PACKTILES_H
