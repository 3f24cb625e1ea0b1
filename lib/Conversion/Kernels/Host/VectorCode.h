//===- VectorCode.h - Building code on vectors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_HOST_VECTORCODE_H
#define BAECHI_LIB_CONVERSION_KERNELS_HOST_VECTORCODE_H

#include "Common/PointerCode.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace baechi {

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

/// Builds code on vectors of single-precision data.
class VectorCode : public PointerCode {
public:
  VectorCode(mlir::OpBuilder &builder, mlir::Location loc, int64_t lanes);

  /// A vector of one number.
  mlir::Value constant(float value);
  mlir::Value splat(mlir::Value scalar);
  /// Vector `index` of the columns that begin at `pointer`; beyond the last
  /// column it is zero when loaded, and not stored.
  mlir::Value load(mlir::Value pointer, Columns columns, int64_t index);
  void store(mlir::Value value, mlir::Value pointer, Columns columns,
             int64_t index);
  /// Transposes as many vectors as a vector has elements.
  void transposeSquare(llvm::MutableArrayRef<mlir::Value> rows);

  int64_t lanes;
  mlir::VectorType vector;

private:
  mlir::Value mask(int64_t count);
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_HOST_VECTORCODE_H
