//===- RowWriter.h - Rows of tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_ROWWRITER_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_ROWWRITER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace baechi {

/// A part of a tensor; at first all of it.
struct Place {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes, strides;

  Place(mlir::OpBuilder &builder, llvm::ArrayRef<int64_t> shape);
};

/// Writes what takes and puts rows of tensors, from the first up to an end.
class RowWriter {
public:
  using Rows = std::pair<int64_t, int64_t>;

  RowWriter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t of);
  mlir::Value empty(mlir::RankedTensorType type);
  mlir::Value rowsOf(mlir::Value tensor, unsigned dimension, Rows rows);
  mlir::Value putRows(mlir::Value rows, mlir::Value into, unsigned dimension,
                      int64_t at);
  /// \p tensor as an operator of its own, called \p name. A copy that is
  /// nothing else would become a part of the block that takes it, and this
  /// would be sent all that the rows are of.
  mlir::Value copyOf(mlir::Value tensor, unsigned dimension,
                     const llvm::Twine &name);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_ROWWRITER_H
