//===- Selection.h - Reductions that pick one of their terms -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_SELECTION_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_SELECTION_H

#include "LinalgCode.h"

namespace baechi {

/// A reduction each of whose results keeps what it holds or takes the term's
/// value, by comparisons among these: the largest element and where it is.
/// Parts of consecutive terms, each from the start value, combined in their
/// order give what the terms give one after the other, bit for bit.
struct Selection {
  /// What the results take, in the body.
  llvm::SmallVector<mlir::Value> terms;
  /// The operations of the body between these and what is yielded.
  llvm::SmallVector<mlir::Operation *> steps;
};

/// Nothing for other reductions, and where that cannot be shown or the start
/// values are no constants.
std::optional<Selection> matchSelection(mlir::linalg::GenericOp op,
                                        const StartValues &starts);

/// As sumOutputs does, for all terms of a selection.
void selectOutputs(
    LaunchCode &code, mlir::linalg::GenericOp op, const LoopOrder &order,
    const Selection &selection, const SumShares &shares,
    mlir::Value firstOutput,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange indices)>
        start,
    llvm::function_ref<void(mlir::Value output, mlir::ValueRange indices,
                            mlir::ValueRange results)>
        finish);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_SELECTION_H
