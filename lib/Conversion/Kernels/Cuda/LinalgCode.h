//===- LinalgCode.h - Linalg operations on threads -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_LINALGCODE_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_LINALGCODE_H

#include "LaunchCode.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// The scalars that reductions start from, where a fill before them was folded:
/// for (operation, number of the result).
using StartValues =
    llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, mlir::Value>;

/// How the loops of an operation on buffers run through memory.
struct LoopOrder {
  explicit LoopOrder(mlir::linalg::GenericOp op);

  /// The loops, such that the last one runs along rows where one does: of the
  /// results (parallel), of what is read (sums).
  llvm::SmallVector<unsigned> parallel, sums;
  llvm::SmallVector<int64_t> parallelSizes, sumSizes;
  int64_t outputs = 1, terms = 1;
  /// Whether neighbours in memory are terms of one sum, not of several.
  bool rowsAreSums = false;
};

/// What the body of `op` yields at the point `indices` of its loops when its
/// results hold `held` (without: what their buffers hold) and operand `read`,
/// if given, is `value` there.
llvm::SmallVector<mlir::Value>
evaluate(LaunchCode &code, mlir::linalg::GenericOp op, mlir::ValueRange indices,
         mlir::ValueRange held = {}, mlir::OpOperand *read = nullptr,
         mlir::Value value = {});

/// The element of `operand` at that point.
mlir::Value loadOperand(LaunchCode &code, mlir::linalg::GenericOp op,
                        mlir::OpOperand &operand, mlir::ValueRange indices);

/// What the results hold at the start.
llvm::SmallVector<mlir::Value> startValues(LaunchCode &code,
                                           mlir::linalg::GenericOp op,
                                           mlir::ValueRange indices,
                                           const StartValues &starts);

void storeResults(LaunchCode &code, mlir::linalg::GenericOp op,
                  mlir::ValueRange indices, mlir::ValueRange results);

/// The operations that combine what a result holds with a term: one a result,
/// associative and with a neutral element. Empty when some have none.
llvm::SmallVector<mlir::Operation *> combiners(mlir::linalg::GenericOp op);

mlir::Value combine(LaunchCode &code, mlir::Operation *combiner, mlir::Value a,
                    mlir::Value b);

/// The indices of all loops of `op` from those of `order`'s two groups.
llvm::SmallVector<mlir::Value> joinIndices(const LoopOrder &order,
                                           mlir::ValueRange parallel,
                                           mlir::ValueRange sums);

/// Whether `op` is a sum in single precision of so many terms that adding them
/// one after the other would tell (kShortSum).
bool isLongSum(mlir::linalg::GenericOp op, const LoopOrder &order);

/// A sum in another precision, or as it is where it has that.
mlir::Value inPrecision(LaunchCode &code, mlir::FloatType type,
                        mlir::Value value);
llvm::SmallVector<mlir::Value>
inPrecision(LaunchCode &code, mlir::FloatType type, mlir::ValueRange values);

/// Code by which the threads of one block execute `op`.
void executeInBlock(LaunchCode &code, mlir::linalg::GenericOp op,
                    const StartValues &starts);

/// How the terms of sums are shared out among threads.
struct SumShares {
  /// Threads that add up one output, a power of two; and outputs that a block's
  /// threads work on side by side.
  int64_t lanes = 1, outputs = 1;
  /// Terms that a lane adds up, at most.
  int64_t termsOfLane = 1;
  /// Neighbouring threads have neighbouring terms, not outputs.
  bool lanesAreNeighbours = false;
};

/// Adds up terms [from, to) of `op`, and what `start` gives, for
/// shares.outputs outputs from the first on that are below order.outputs; hands
/// the sums to `finish`, on one thread each.
void sumOutputs(
    LaunchCode &code, mlir::linalg::GenericOp op, const LoopOrder &order,
    const SumShares &shares, mlir::Value firstOutput, mlir::Value from,
    mlir::Value to,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange indices)>
        start,
    llvm::function_ref<void(mlir::Value output, mlir::ValueRange indices,
                            mlir::ValueRange sums)>
        finish);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_LINALGCODE_H
