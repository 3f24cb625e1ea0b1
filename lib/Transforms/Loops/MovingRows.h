//===- MovingRows.h - Arrays that move between blocks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_MOVINGROWS_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_MOVINGROWS_H

#include "Baechi/Loops/Schedule.h"
#include "RowWriter.h"

namespace baechi {

/// An array of which each block takes the rows that it touches, from whoever
/// had them last.
class MovingRows {
public:
  /// \p whole: the array as it is before the first block.
  MovingRows(RowWriter &writer, std::string name, unsigned dimension,
             mlir::Value whole);

  /// \p span, at the beginning of a tensor of \p length rows.
  mlir::Value gather(loops::Span span, int64_t length);
  /// From here on \p span is in \p tensor of a block, which begins with row
  /// \p begin.
  void put(loops::Span span, mlir::Value tensor, int64_t begin);
  mlir::Value all();

private:
  struct Part {
    loops::Span rows;
    mlir::Value tensor;
    int64_t begin = 0; ///< the row that the tensor begins with
    bool ofBlock = false;
  };

  mlir::Value collect(loops::Span span, int64_t length, bool apart);

  RowWriter &writer;
  std::string name;
  unsigned dimension;
  mlir::RankedTensorType type;
  llvm::SmallVector<Part> parts; ///< one after the other, of all rows
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_MOVINGROWS_H
