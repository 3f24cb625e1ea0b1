//===- BlockSums.h - Long sums in blocks ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_BLOCKSUMS_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_BLOCKSUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// Whether every result of \p op is one sum in single precision.
bool addsUp(mlir::linalg::GenericOp op);

/// The extents of \p op's loops in a block of its sums, where these are long;
/// empty where they are not, or run through no blocks. \p isChain: its sum is
/// an exact product's (`isOneChain`).
llvm::SmallVector<int64_t> blockOf(mlir::linalg::GenericOp op, bool isChain);

/// Lets a long sum of \p op (`kShortSum`), on buffers in single precision, run
/// in blocks, which are added up in double precision: terms that are added one
/// after the other are rounded to what has been added up by then (Higham,
/// "Accuracy and Stability of Numerical Algorithms", 4.2). Those of an
/// exact product are added up in single precision, as register tiles do it.
/// Returns the operation that adds up each block; \p op itself where no sum is
/// long.
///
/// The blocks depend on the reductions and on the order of the loops, not on
/// the extents of the others, as exact sums need it (Analysis/ExactSums.h).
llvm::SmallVector<mlir::linalg::GenericOp>
sumInBlocks(mlir::RewriterBase &rewriter, mlir::linalg::GenericOp op,
            bool isChain);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_BLOCKSUMS_H
